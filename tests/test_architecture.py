"""Sizes, names and imports of the whole code base. Layers are kept by import-linter, see pyproject.toml."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "prover"
MODULES = sorted(PACKAGE.rglob("*.py"))
FILES = [*MODULES, *sorted((ROOT / "tests").rglob("*.py")), *sorted((ROOT / "benchmarks").rglob("*.py"))]

HEAVY = {"torch", "transformers", "tokenizers", "safetensors", "vllm"}
MAY_BE_HEAVY = {
    "objective.py",
    "train.py",
    "sft.py",
    "checkpoint.py",
    "update.py",
    "group_store.py",
    "origin.py",
    "retrieval/dense.py",
}
OWN_GENERATORS = {"Generator", "default_rng", "SeedSequence", "PCG64", "BitGenerator"}
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def name(path: Path) -> str:
    """Path from the top of the project."""
    return str(path.relative_to(ROOT))


def nodes(path: Path) -> Iterator[ast.AST]:
    """All nodes of a file's syntax tree."""
    return ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path)))


def imported(path: Path) -> set[str]:
    """Top-level packages that a file imports anywhere."""
    found: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


def dotted(node: ast.AST) -> str:
    """``a.b.c`` of an attribute chain; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (owner := dotted(node.value)):
        return f"{owner}.{node.attr}"
    return ""


def code_lines(function: FunctionNode) -> int:
    """Lines of a function without its docstring."""
    lines = (function.end_lineno or 0) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function, clean=False) is not None:
        lines -= (first.end_lineno or 0) - first.lineno + 1
    return lines


def test_files_stop_at_500_lines() -> None:
    """No file is longer than 500 lines."""
    assert [name(path) for path in FILES if len(path.read_text(encoding="utf-8").splitlines()) > 500] == []


def test_functions_stop_at_80_lines() -> None:
    """No function is longer than 80 lines, its docstring left out."""
    long = [
        f"{name(path)}:{node.lineno} {node.name}"
        for path in FILES
        for node in nodes(path)
        if isinstance(node, FunctionNode) and code_lines(node) > 80
    ]
    assert long == []


def test_no_module_is_a_junk_drawer() -> None:
    """Every module is named for what it holds."""
    junk = {"utils", "util", "helpers", "helper", "common", "misc", "managers", "manager", "tools", "lib"}
    assert [name(path) for path in FILES if {path.stem, path.parent.name} & junk] == []


def test_no_class_is_named_for_nothing() -> None:
    """No class is a Manager, Helper or Util."""
    vague = [
        f"{name(path)} {node.name}"
        for path in FILES
        for node in nodes(path)
        if isinstance(node, ast.ClassDef) and re.search(r"(Manager|Helper|Utils?)$", node.name)
    ]
    assert vague == []


def test_tests_mirror_the_package() -> None:
    """Every module has its test file at the same place."""
    missing = []
    for path in MODULES:
        inside = path.relative_to(PACKAGE)
        if path.name != "__init__.py" and not (ROOT / "tests" / inside.parent / f"test_{inside.name}").is_file():
            missing.append(str(inside))
    assert missing == []


def test_no_exception_vanishes() -> None:
    """No handler is bare, and none passes over every exception in silence."""
    found = []
    for path in FILES:
        for node in nodes(path):
            if isinstance(node, ast.ExceptHandler):
                wide = node.type is None or dotted(node.type) in ("Exception", "BaseException")
                silent = all(isinstance(line, ast.Pass) for line in node.body)
                if node.type is None or (wide and silent):
                    found.append(f"{name(path)}:{node.lineno}")
    assert found == []


def test_heavy_packages_stay_in_their_files() -> None:
    """Torch and its company are imported by the files that compute with it and by no others."""
    wrong = [
        f"{name(path)}: {', '.join(sorted(imported(path) & HEAVY))}"
        for path in MODULES
        if imported(path) & HEAVY
        and path.relative_to(PACKAGE).as_posix() not in MAY_BE_HEAVY
        and PACKAGE / "policies" not in path.parents
        and not (path.parent == PACKAGE / "backends" and path.name.startswith("local"))
    ]
    assert wrong == []


def test_no_global_generator_is_used() -> None:
    """All randomness comes from generators of one's own."""
    found = []
    for path in MODULES:
        if "random" in imported(path):
            found.append(f"{name(path)}: import random")
        for node in nodes(path):
            chain = dotted(node) if isinstance(node, ast.Attribute) else ""
            of_numpy = re.fullmatch(r"(?:np|numpy)\.random\.(\w+)", chain)
            if (of_numpy and of_numpy[1] not in OWN_GENERATORS) or re.fullmatch(
                r"torch\.(?:random|cuda)?\.?(?:manual_seed(?:_all)?|seed|set_rng_state)", chain
            ):
                found.append(f"{name(path)}:{node.lineno} {chain}")
    assert found == []


def test_silenced_checks_give_their_reason() -> None:
    """Every ``type: ignore`` and ``noqa`` names its code and says why."""
    wrong = []
    for path in FILES:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            comment = re.search(r"#\s*(type:\s*ignore|noqa)\b.*", line)
            if comment and not re.match(
                r"#\s*(?:type:\s*ignore\[[\w, -]+\]\s+#\s*\S+|noqa:\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*\s+(?:#|-)\s*\S+)",
                comment[0],
            ):
                wrong.append(f"{name(path)}:{number}")
    assert wrong == []


def test_nothing_is_left_to_do() -> None:
    """No file holds a note about unfinished work."""
    marks = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX)\b")
    assert [name(path) for path in FILES if marks.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    "module", ["prover", "prover.cli", "prover.preflight", "prover.testing", "prover.bench.plugin"]
)
def test_light_modules_load_nothing_heavy(module: str) -> None:
    """Importing the package, its command line or its test doubles loads no torch."""
    program = f"import {module}, sys; print(*sorted(set(sys.modules) & {HEAVY!r}))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout.strip() == ""
