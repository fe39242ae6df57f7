"""What ``--policy`` may name, and what each brings along."""

from pathlib import Path

import pytest

from prover.bench.contender import ApiConfig, contender, of_config
from prover.config import effective_yaml, load_config
from prover.errors import ConfigError, DataError, UnknownNameError

API = """
policy:
  kind: api
  backend: {kind: http, url: "http://localhost:1/v1", model: tiny, key_env: SOME_KEY}
  max_reply_tokens: 99
transcript: {mode: window, window: 3}
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder that looks like a model's."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


def test_chance_and_experts_need_nothing() -> None:
    """They have no temperature, and their rules are the suite's."""
    for name in ("random", "expert"):
        found = contender(name)
        assert (found.name, found.kind, found.sampled, found.path) == (name, name, False, None)
        assert found.under(load_config()) == load_config()


def test_the_shipped_policy_is_named_default() -> None:
    """Its folder is that of the package, under the suite's rules."""
    found = contender("default")
    assert (found.name, found.kind, found.sampled) == ("default", "hf", True)
    rules = load_config(overrides=["policy.context_limit=4096", "policy.decoding=free"])
    policy = found.under(rules).policy
    assert policy == rules.policy.model_copy(update={"path": str(found.path)})


def test_weights_and_settings_are_told_apart(model: Path) -> None:
    """The same files give the same fingerprint; other weights another, and what only training needs does not matter."""
    first = contender(str(model))
    (model / "optimizer.safetensors").write_bytes(b"momentum")
    (model / "state.json").write_text("{}")
    assert contender(str(model)).fingerprint == first.fingerprint
    (model / "model.safetensors").write_bytes(b"others")
    assert contender(str(model)).fingerprint != first.fingerprint


def test_of_a_run_the_last_complete_checkpoint_is_taken(tmp_path: Path) -> None:
    """With the run's own rules; an interrupted one is left aside, and a run without any is an error."""
    run = tmp_path / "grpo"
    settings = ["policy.max_reply_tokens=9", "format.kind=react", "policy.temperature=0.7"]
    for number in (20, 40, 60):
        folder = run / "checkpoints" / f"update-0000{number}"
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(f'{{"max_position_embeddings": 2048, "number": {number}}}')
    (run / "config.yaml").write_text(effective_yaml(load_config(overrides=settings)))
    with pytest.raises(DataError, match=r"complete checkpoint in .*checkpoints, got none"):
        contender(str(run))
    for number in (20, 40):
        (run / "checkpoints" / f"update-0000{number}" / "COMPLETE").touch()
    found = contender(str(run))
    assert (found.name, found.path) == ("grpo-update-000040", run / "checkpoints" / "update-000040")
    rules = found.under(load_config(overrides=["rollout.max_turns=3"]))
    assert (rules.policy.max_reply_tokens, rules.format.kind, rules.rollout.max_turns) == (9, "react", 3)
    assert rules.policy.temperature == 1.0
    # What the run needed is no limit of the policy; what the model can hold is.
    limits = [found.under(load_config(overrides=[f"policy.context_limit={limit}"])) for limit in (1500, 4096)]
    assert [rules.policy.context_limit for rules in limits] == [1500, 2048]
    assert contender(str(found.path)).name == "grpo-update-000040"


def test_a_config_says_what_plays_and_how(model: Path, tmp_path: Path) -> None:
    """Only what stands in it comes before the suite's rules."""
    (tmp_path / "mine.yaml").write_text(f"policy: {{path: {model}, decoding: free}}\n")
    found = contender(str(tmp_path / "mine.yaml"))
    rules = found.under(load_config(overrides=["policy.max_reply_tokens=9", "format.kind=react"]))
    assert (found.name, rules.policy.path, rules.policy.decoding) == ("mine", str(model), "free")
    assert (rules.policy.max_reply_tokens, rules.format.kind) == (9, "react")
    assert of_config(load_config(tmp_path / "mine.yaml")).fingerprint == found.fingerprint


def test_a_chat_model_brings_its_format(tmp_path: Path) -> None:
    """It has no context limit of ours; its name is that of the file."""
    (tmp_path / "tiny.yaml").write_text(API)
    found = contender(str(tmp_path / "tiny.yaml"))
    assert isinstance(found.config, ApiConfig)
    rules = found.under(load_config())
    assert (found.name, found.kind, found.sampled) == ("tiny", "api", True)
    assert (rules.format.kind, rules.transcript.window, rules.policy.max_reply_tokens) == ("think_action", 3, 99)


def test_what_a_service_costs_makes_no_other_model(tmp_path: Path) -> None:
    """A larger budget goes on with what a smaller one began; another model or address does not."""
    prints = set()
    for number, text in enumerate((API, API.replace("tiny,", "tiny, budget_tokens: 5, retries: 0,"))):
        (tmp_path / f"{number}.yaml").write_text(text)
        prints.add(contender(str(tmp_path / f"{number}.yaml")).fingerprint)
    assert len(prints) == 1
    (tmp_path / "other.yaml").write_text(API.replace("tiny", "large"))
    assert contender(str(tmp_path / "other.yaml")).fingerprint not in prints


def test_mistakes_are_named(tmp_path: Path) -> None:
    """What there may be is listed; a misspelt key of a file is an error."""
    with pytest.raises(UnknownNameError, match=r"expected a policy \(random, expert, default, .*, got 'rando'"):
        contender("rando")
    (tmp_path / "tiny.yaml").write_text(API + "formt: {kind: bare}\n")
    with pytest.raises(ConfigError, match="did you mean 'format'"):
        contender(str(tmp_path / "tiny.yaml"))
