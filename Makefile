# make train   set up .venv and train the small policy on the built-in households
# make test    set up .venv with the developers' tools and run everything that CI runs

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip
# Options for `make train`, e.g. make train ARGS="optim.updates=2 --run runs/try"
ARGS ?=
# Tests run in two processes of one thread each.
TEST := OMP_NUM_THREADS=1 $(BIN)/

.PHONY: train test

train: .venv/train.stamp
	$(BIN)/prover train examples/households.yaml $(ARGS)

test: .venv/test.stamp
	$(TEST)ruff check .
	$(TEST)ruff format --check .
	$(TEST)mypy
	$(TEST)lint-imports
	$(TEST)interrogate --quiet prover
	$(TEST)interrogate --quiet --whitelist-regex "^test_" tests
	$(TEST)pytest --quiet benchmarks/speed
	$(TEST)pytest --numprocesses 2

# Stamps are newer than what they were made from, so that a second call installs nothing.
.venv/train.stamp: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) install --quiet --upgrade "pip>=25.1"
	$(PIP) install --quiet -c constraints.txt -e ".[train]"
	touch $@

.venv/test.stamp: .venv/train.stamp
	$(PIP) install --quiet -c constraints.txt --group dev
	$(PIP) install --quiet -c constraints.txt --no-deps xgrammar apache-tvm-ffi # without triton, which is for GPUs
	touch $@
