"""The loop as a whole, on LineEnv with a tiny real policy."""

import json
import re
import shutil
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig

from prover import checkpoint, group_store
from prover.chat import Ask, Usage
from prover.config import RunConfig, effective_yaml, load_config
from prover.errors import CheckpointError, ConfigError, FailureShareError, ServiceError
from prover.folder import RunFolder
from prover.policies.codec import HFCodec
from prover.policies.hf import HFPolicy
from prover.records import Group, NoProposal, Proposal
from prover.rollout import Rollout
from prover.testing import LineEnv
from prover.testing.backend import ScriptedBackend
from prover.train import TrainResult, _judge_usage, train


class RaisingJudge:
    """A judge that is out of order."""

    name = "raising"

    async def propose(self, group: Group, *, seed: int) -> Proposal | NoProposal:
        """Fail."""
        raise RuntimeError("the judge is down")


class DownBackend(ScriptedBackend):
    """A chat model whose account is empty."""

    def __init__(self) -> None:
        super().__init__([ServiceError("no money left", "payment")], repeat=True)


class ProbeBackend(ScriptedBackend):
    """A chat model that always names the first turn, and cites the first failed run that it is shown."""

    def __init__(self) -> None:
        super().__init__([self.first], repeat=True)

    @staticmethod
    def first(ask: Ask) -> str:
        """Turn 0."""
        found = re.search(r"^run (\w+): failed", ask.messages[1].content, re.MULTILINE)
        assert found is not None
        reply = {"failure_mode": "lost", "evidence": [{"trajectory": found[1], "turn": 0}], "reason": "first step"}
        return json.dumps(reply | {"start_turn": 0, "end_turn": 0, "confidence": 0.5})


class BrokenEnv(LineEnv):
    """An environment that fails in every step."""

    def step(self, action: str) -> Any:
        """Fail."""
        raise ValueError("no answer today")


def configure(folder: Path, policy: Path, *overrides: str) -> RunConfig:
    """A run of three updates that takes a second or two."""
    return load_config(
        None,
        [
            "env.kind=line",
            f"policy.path={policy}",
            "rollout.groups=3",
            "rollout.group_size=4",
            "rollout.max_turns=12",
            "optim.updates=3",
            "optim.lr=0.003",
            "optim.microbatch=4",
            "verify.continuations=2",
            "verify.null_probe=1.0",
            "verify.eligible_max=3",
            "evaluation.episodes=9",
            "evaluation.temperatures=[1.0]",
            f"run={folder}",
            *overrides,
        ],
    )


def weights(result: TrainResult) -> dict[str, torch.Tensor]:
    """Weights of the run's last checkpoint."""
    return load_file(checkpoint.complete(result.folder.checkpoints)[-1].path / "model.safetensors")


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    """Whether all weights are equal bit for bit."""
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def metrics(result: TrainResult) -> list[dict[str, Any]]:
    """Lines of the run's metrics file."""
    return [json.loads(line) for line in (result.folder.path / "metrics.jsonl").read_text().splitlines()]


def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the module ``tests_train_module`` hold the judges and chat models above."""
    module = types.ModuleType("tests_train_module")
    vars(module).update(RaisingJudge=RaisingJudge, DownBackend=DownBackend, ProbeBackend=ProbeBackend)
    monkeypatch.setitem(sys.modules, "tests_train_module", module)


@pytest.fixture(scope="module")
def grpo(line_policy: Path, tmp_path_factory: pytest.TempPathFactory) -> TrainResult:
    """A run of plain GRPO to compare with."""
    return train(configure(tmp_path_factory.mktemp("grpo"), line_policy, "method=grpo"))


@pytest.mark.parametrize(
    "overrides",
    [
        ("judge.kind=random_segment", "credit.weight=0"),
        ("judge.kind=none",),
        ("judge.kind=none", "verify.train_continuations=true"),
        ("judge.kind=tests_train_module:RaisingJudge",),
        ("judge.kind=llm", "judge.backend={kind: 'tests_train_module:DownBackend'}"),
        ("judge.kind=llm", "judge.backend={kind: local}", "judge.mode=single", "judge.reply_tokens=8"),
        ("verify.max_turns=1", "judge.kind=random_segment"),
        ("verify.max_tokens=1", "judge.kind=random_segment"),
    ],
    ids=["weight 0", "no proposals", "no continuation", "bad judge", "bad service", "poor judge", "turns", "tokens"],
)
def test_prover_without_credit_equals_grpo_bit_for_bit(
    grpo: TrainResult,
    line_policy: Path,
    tmp_path: Path,
    overrides: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With weight 0, no proposals, a failing judge or no budget, three updates end in the weights of GRPO exactly."""
    planted(monkeypatch)
    result = train(configure(tmp_path, line_policy, *overrides))
    assert same(weights(result), weights(grpo))
    outcomes = {name for line in metrics(result) for name in line["outcomes"]}
    expected = {"none": "no_proposal", "tests_train_module:RaisingJudge": "judge_failed", "llm": "no_proposal:"}
    expected["1"] = "over_budget"
    wanted = expected.get(overrides[0].partition("=")[2], "measured")
    assert any(outcome.startswith(wanted) for outcome in outcomes)


def test_a_judge_that_answers_too_rarely_stops_the_run_if_asked_to(
    line_policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run warns of the outage, stops when its window is full, and leaves the reason in its records."""
    planted(monkeypatch)
    rules = ("judge.kind=llm", "judge.backend={kind: 'tests_train_module:DownBackend'}", "verify.stop_below=0.5")
    with pytest.raises(FailureShareError, match=r"got 0 of the last 2 groups .*\(payment 2\)"):
        train(configure(tmp_path, line_policy, *rules, "verify.answered_window=2", "optim.updates=30"))
    assert "no money left" in (tmp_path / "trajectories.jsonl").read_text()
    capsys.readouterr()


def test_a_judge_tells_what_it_took_and_is_not_paid_twice(
    line_policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens stand in the metrics; a run that replays the stored judgements ends in the same weights."""
    planted(monkeypatch)
    own = ("judge.kind=llm", "judge.backend={kind: 'tests_train_module:ProbeBackend'}", "credit.sign=signed")
    first = train(configure(tmp_path / "a", line_policy, *own))
    told = [line["judge"] for line in metrics(first)]
    assert sum(line["prompt_tokens"] for line in told) > 0
    stored = tmp_path / "a" / "judge_cache.jsonl"
    assert len(stored.read_text().splitlines()) == sum(line["judged"] for line in told) > 0
    replay = (*own, "judge.cache=replay", f"judge.cache_path={stored}")
    second = train(configure(tmp_path / "b", line_policy, *replay))
    again = [line["judge"] for line in metrics(second)]
    assert (sum(line["requests"] for line in again), sum(line["judged"] for line in again)) == (0, 0)
    assert same(weights(first), weights(second))
    assert [line["outcomes"] for line in metrics(first)] == [line["outcomes"] for line in metrics(second)]


def test_what_a_judge_has_used_up_counts_after_a_resume(
    line_policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what was used in updates that a resume cuts away, and however often it is resumed."""
    planted(monkeypatch)
    own = ("judge.kind=llm", "judge.backend={kind: 'tests_train_module:ProbeBackend'}", "judge.mode=single")
    assert _judge_usage(RunFolder(tmp_path)) == Usage()
    train(configure(tmp_path, line_policy, *own, "checkpoint.every=3"))
    spent = _judge_usage(RunFolder(tmp_path))
    assert spent.prompt_tokens > 0
    shutil.rmtree(tmp_path / "checkpoints")
    # All judgements come from the cache now: nothing is used, and nothing is forgotten.
    train(configure(tmp_path, line_policy, *own, "checkpoint.every=3"), resume=True)
    assert _judge_usage(RunFolder(tmp_path)) == spent


def test_trust_credits_without_continuations(grpo: TrainResult, line_policy: Path, tmp_path: Path) -> None:
    """Nothing is measured, every proposal earns weight times the constant, and the weights are others."""
    rules = ("judge.kind=random_segment", "verify.mode=trust", "verify.trusted_delta=0.5", "credit.weight=8")
    result = train(configure(tmp_path, line_policy, *rules))
    lines = metrics(result)
    assert sum(line["outcomes"].get("trusted", 0) for line in lines) > 0
    assert sum(line["measured"] + line["verifier_turns"] + line["probes"] for line in lines) == 0
    assert {line["mean_credit"] for line in lines} <= {4.0, None}
    assert not same(weights(result), weights(grpo))


def test_credit_changes_the_weights(grpo: TrainResult, line_policy: Path, tmp_path: Path) -> None:
    """With signed credit of weight 8 the same seeds end in other weights, and the measurements are on record."""
    result = train(
        configure(tmp_path, line_policy, "judge.kind=random_segment", "credit.weight=8", "credit.sign=signed")
    )
    assert not same(weights(result), weights(grpo))
    lines = [json.loads(line) for line in (tmp_path / "trajectories.jsonl").read_text().splitlines()]
    judged = [judgement for line in lines for judgement in line["judgements"]]
    credited = [judgement for judgement in judged if judgement["credit"]]
    assert credited
    for judgement in credited:
        rates = [judgement[side]["successes"] / judgement[side]["n"] for side in ("before", "after")]
        assert judgement["credit"] == pytest.approx(8 * (rates[1] - rates[0]))


def test_evaluation_leaves_training_bit_identical(grpo: TrainResult, line_policy: Path, tmp_path: Path) -> None:
    """Evaluating after every update changes no weight."""
    result = train(configure(tmp_path, line_policy, "method=grpo", "evaluation.every=1", "evaluation.episodes=5"))
    assert same(weights(result), weights(grpo))
    assert (result.folder.evaluations / "update-000002-T1.json").exists()


@pytest.mark.parametrize("method", ["grpo", "prover"])
def test_no_update_starts_from_caches_of_others(
    line_policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """What evaluations, continuations and older weights left in the cache could round differently: it is gone."""
    kept: list[int] = []
    groups = Rollout.groups

    async def spy(self: Any, *args: Any, **kwargs: Any) -> list[Group]:
        kept.append(len(self.policy._engine.store))
        found = await groups(self, *args, **kwargs)
        assert len(self.policy._engine.store) > 0
        return found

    monkeypatch.setattr(Rollout, "groups", spy)
    train(configure(tmp_path, line_policy, f"method={method}", "evaluation.every=1"))
    assert kept == [0, 0, 0]


@pytest.mark.parametrize("decoding", ["free", "admissible"])
@pytest.mark.parametrize("mode", ["append", "window"])
def test_rows_are_trained_in_the_context_they_were_sampled_in(
    line_policy: Path, tmp_path: Path, mode: str, decoding: str
) -> None:
    """In either mode of the transcript and of decoding, and at another temperature, the ratio of all tokens is 1."""
    rules = (f"transcript.mode={mode}", "transcript.window=1", f"policy.decoding={decoding}", "policy.temperature=0.7")
    # With a KL term all rows are scored, those of groups without contrast too.
    result = train(configure(tmp_path, line_policy, *rules, "optim.kl=0.01", "optim.updates=2", "rollout.max_turns=5"))
    for line in metrics(result):
        assert line["trained_tokens"] == line["tokens"] > 0
        assert line["ratio"] == pytest.approx(1.0, abs=1e-5)
        assert (line["ratio_outside"], line["kl_old"]) == (0.0, pytest.approx(0.0, abs=1e-8))
        assert line["verifier_failures"] == line["probe_failures"] == 0


def test_a_run_repeats_itself(grpo: TrainResult, line_policy: Path, tmp_path: Path) -> None:
    """The same config gives the same weights and the same metrics but for the seconds."""
    again = train(configure(tmp_path, line_policy, "method=grpo"))
    assert same(weights(again), weights(grpo))
    for first, second in zip(metrics(again), metrics(grpo), strict=True):
        seconds = ("cpu_seconds", "wall_seconds")
        assert {k: v for k, v in first.items() if k not in seconds} == {
            k: v for k, v in second.items() if k not in seconds
        }


def test_a_resumed_run_equals_an_unbroken_one(grpo: TrainResult, line_policy: Path, tmp_path: Path) -> None:
    """Stopped after two updates and resumed, the run takes up its tasks and ends in the same weights and metrics."""
    train(configure(tmp_path, line_policy, "method=grpo", "optim.updates=2"))
    files = ("metrics.jsonl", "trajectories.jsonl")
    for file in files:  # What was written between the last checkpoint and the end of the process.
        with (tmp_path / file).open("a") as lines:
            lines.write('{"update": 2, "stale": true}\n{"update": 2, "st')
    result = train(configure(tmp_path, line_policy, "method=grpo"), resume=True)
    assert same(weights(result), weights(grpo))
    assert [line["loss"] for line in metrics(result)] == [line["loss"] for line in metrics(grpo)]
    assert (tmp_path / files[1]).read_text() == (grpo.folder.path / files[1]).read_text()


@pytest.mark.parametrize("mode", ["append", "window"])
def test_continuations_are_trained_on_and_a_resume_does_not_show(
    grpo: TrainResult, line_policy: Path, tmp_path: Path, mode: str
) -> None:
    """Without credit the weights are others than GRPO's, the ratio of all tokens is 1, and halves make the whole."""
    own = ("judge.kind=random_segment", "credit.weight=0", "verify.train_continuations=true", f"transcript.mode={mode}")
    whole = train(configure(tmp_path / "whole", line_policy, *own))
    assert not same(weights(whole), weights(grpo))
    lines = metrics(whole)
    assert sum(line["continuation_rows"] for line in lines) > 0
    assert all(line["trained_tokens"] >= line["continuation_tokens"] for line in lines)
    assert {line["ratio_outside"] for line in lines if line["trained_tokens"]} == {0.0}
    train(configure(tmp_path / "halves", line_policy, *own, "optim.updates=2"))
    result = train(configure(tmp_path / "halves", line_policy, *own), resume=True)
    assert same(weights(result), weights(whole))
    assert [line["continuation_tokens"] for line in metrics(result)] == [line["continuation_tokens"] for line in lines]


def test_a_hybrid_model_trains(line_policy: Path, tmp_path: Path) -> None:
    """Qwen3.5, whose linear layers keep recurrent states, is trained on exactly what it sampled: ratio 1."""
    tokenizer = HFPolicy.load(line_policy).codec.tokenizer
    heads = dict.fromkeys(("linear_num_key_heads", "linear_num_value_heads", "num_attention_heads"), 2)
    sizes = {"linear_key_head_dim": 16, "linear_value_head_dim": 16, "head_dim": 16, "num_key_value_heads": 1}
    config = Qwen3_5TextConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=4,
        max_position_embeddings=1024,
        eos_token_id=tokenizer.eos_token_id,
        **heads,
        **sizes,
    )
    model = Qwen3_5ForCausalLM(config).eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0.0, 0.1, generator=generator)
    HFPolicy(model, HFCodec(tokenizer)).save(tmp_path / "policy")
    near = ["env.tasks=[start-6, start-7, start-8]", "rollout.max_turns=6", "judge.kind=random_segment"]
    result = train(configure(tmp_path / "run", tmp_path / "policy", *near, "optim.updates=2"))
    trained = [line for line in metrics(result) if line["trained_tokens"]]
    assert trained
    assert all(line["ratio"] == pytest.approx(1.0, abs=1e-4) for line in trained)
    assert sum(line["measured"] for line in metrics(result)) > 0


def test_a_resumed_run_keeps_the_reference_of_its_kl_term(line_policy: Path, tmp_path: Path) -> None:
    """The divergence is measured from the policy that the run began with, not from the checkpoint."""
    options = ("method=grpo", "optim.kl=0.5", "optim.lr=0.02")
    whole = train(configure(tmp_path / "whole", line_policy, *options))
    train(configure(tmp_path / "halves", line_policy, *options, "optim.updates=2"))
    result = train(configure(tmp_path / "halves", line_policy, *options), resume=True)
    assert same(weights(result), weights(whole))
    assert [line["kl_ref"] for line in metrics(result)] == [line["kl_ref"] for line in metrics(whole)]
    assert metrics(whole)[2]["kl_ref"] > 0


def test_what_was_not_measured_before_training_is_not_made_up(line_policy: Path, tmp_path: Path) -> None:
    """Trained weights are never measured as if they were the first ones: a lost result is an error on resume."""
    train(configure(tmp_path, line_policy, "method=grpo", "optim.updates=1"))
    lost = tmp_path / "evaluations" / "update-000000-T1.json"
    lost.unlink()
    with pytest.raises(ConfigError, match="expected what was measured after 0 updates"):
        train(configure(tmp_path, line_policy, "method=grpo"), resume=True)
    assert not lost.exists()


def test_a_resumed_run_is_measured_as_it_began(line_policy: Path, tmp_path: Path) -> None:
    """Other temperatures or episodes would compare unlike things; the message names the section."""
    train(configure(tmp_path, line_policy, "method=grpo", "optim.updates=1"))
    with pytest.raises(ConfigError, match="another one in evaluation"):
        train(configure(tmp_path, line_policy, "method=grpo", "evaluation.episodes=12"), resume=True)


def test_a_run_is_not_resumed_backwards(line_policy: Path, tmp_path: Path) -> None:
    """Fewer updates than were done are an error, not a relabelled result."""
    train(configure(tmp_path, line_policy, "method=grpo", "optim.updates=2"))
    with pytest.raises(ConfigError, match=r"expected optim\.updates of at least 2"):
        train(configure(tmp_path, line_policy, "method=grpo", "optim.updates=1"), resume=True)


def test_a_policy_that_cannot_say_the_actions_is_refused(line_policy: Path, tmp_path: Path) -> None:
    """Admissible decoding never turns into free decoding in silence, and no half-made run is left behind."""
    config = configure(tmp_path / "run", line_policy, "method=grpo", "policy.max_reply_tokens=1")
    with pytest.raises(ConfigError, match=r"can say none of 3 \(e\.g\. 'left'\)"):
        train(config)
    assert not (tmp_path / "run" / "config.yaml").exists()


def test_a_context_too_small_for_the_first_prompt_is_refused(line_policy: Path, tmp_path: Path) -> None:
    """An episode without a single turn is no failure of the policy, so the run does not start."""
    config = configure(tmp_path / "run", line_policy, "policy.max_reply_tokens=4", "policy.context_limit=6")
    with pytest.raises(ConfigError, match="expected a first prompt and a reply of 4 tokens"):
        train(config)


def test_resuming_with_other_tasks_is_refused(line_policy: Path, tmp_path: Path) -> None:
    """A changed task set is noticed, not silently offset."""
    train(configure(tmp_path, line_policy, "method=grpo", "optim.updates=1"))
    changed = configure(tmp_path, line_policy, "method=grpo", "env.tasks=[start-1, start-2, start-3]")
    (tmp_path / "config.yaml").write_text(effective_yaml(changed))
    with pytest.raises(CheckpointError, match="expected the training tasks of the run"):
        train(changed, resume=True)


def test_resuming_under_another_config_is_refused(line_policy: Path, tmp_path: Path) -> None:
    """A run goes on under the config it began with; the message names the section that differs."""
    train(configure(tmp_path, line_policy, "method=grpo", "optim.updates=1"))
    with pytest.raises(ConfigError, match="another one in optim"):
        train(configure(tmp_path, line_policy, "method=grpo", "optim.lr=0.1"), resume=True)


def test_a_broken_environment_stops_the_run(line_policy: Path, tmp_path: Path) -> None:
    """When every episode fails, the run stops and says where, instead of training on zeros."""
    config = configure(
        tmp_path, line_policy, "method=grpo", f"env.kind={BrokenEnv.__module__}:BrokenEnv", "rollout.retries=0"
    )
    with pytest.raises(FailureShareError, match=r"no answer today"):
        train(config)


def test_the_run_folder_tells_what_was_run(grpo: TrainResult) -> None:
    """Config, versions, seed, metrics, episodes, evaluations and checkpoints lie in the run folder."""
    path = grpo.folder.path
    assert load_config(path / "config.yaml").optim.updates == 3
    assert json.loads((path / "versions.json").read_text())["seed"] == 0
    assert [line["update"] for line in metrics(grpo)] == [0, 1, 2]
    first = json.loads((path / "trajectories.jsonl").read_text().splitlines()[0])
    assert first["opening"].startswith("You are in cell")
    assert first["turns"][0]["action"] in ("left", "look", "right")
    assert {file.name for file in grpo.folder.evaluations.iterdir()} == {
        "update-000000-T1.json",
        "update-000003-T1.json",
    }


def test_a_used_run_folder_is_refused(grpo: TrainResult, line_policy: Path) -> None:
    """A second run into the same folder is an error, before anything is overwritten."""
    with pytest.raises(ConfigError, match="holds a run"):
        train(configure(grpo.folder.path, line_policy, "method=grpo"))


def test_unchanged_weights_give_ratio_one(grpo: TrainResult) -> None:
    """On the first pass the new log-probabilities equal the sampled ones, so the importance ratio is 1."""
    trained = [line for line in metrics(grpo) if line["trained_tokens"]]
    assert trained
    for line in trained:
        assert line["ratio"] == pytest.approx(1.0, abs=1e-5)
        assert line["ratio_outside"] == 0.0


def test_a_failing_judge_is_named_once(line_policy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The log gives the reason of the first failure, and no line for every group."""
    train(configure(tmp_path, line_policy, f"judge.kind={RaisingJudge.__module__}:RaisingJudge"))
    shown = capsys.readouterr().out
    assert shown.count("judge failed, no credit for this group") == 1
    assert "RuntimeError: the judge is down" in shown


def test_the_groups_that_kept_checkpoints_sample_are_stored(line_policy: Path, tmp_path: Path) -> None:
    """Those of the start and of the first update after each kept checkpoint; what was played, exactly."""
    config = configure(
        tmp_path, line_policy, "method=grpo", "checkpoint.every=1", "optim.updates=4", "checkpoint.keep=2"
    )
    result = train(config)
    stored = group_store.stored(result.folder.groups)
    assert [found.update for found in stored] == [0, 3]
    assert [found.update for found in checkpoint.complete(result.folder.checkpoints)] == [3, 4]
    lines = [json.loads(line) for line in (tmp_path / "trajectories.jsonl").read_text().splitlines()]
    for found in stored:
        told = [
            (line["task"], [turn["action"] for turn in line["turns"]])
            for line in lines
            if line["update"] == found.update
        ]
        runs = [run for group in found.load() for run in group.trajectories]
        assert [(run.task.id, [turn.action for turn in run.turns]) for run in runs] == told


@pytest.mark.parametrize(("groups", "expected"), [(0, []), (2, [0, 1, 2, 3])])
def test_fewer_or_more_groups_are_stored_on_demand(
    line_policy: Path, tmp_path: Path, groups: int, expected: list[int]
) -> None:
    """None, or those of several updates after the start and after a checkpoint."""
    rules = (
        "method=grpo",
        "checkpoint.every=2",
        f"checkpoint.groups={groups}",
        "optim.updates=4",
        "rollout.max_turns=3",
    )
    result = train(configure(tmp_path, line_policy, *rules))
    assert [found.update for found in group_store.stored(result.folder.groups)] == expected


def test_a_resumed_run_stores_what_its_checkpoint_samples(line_policy: Path, tmp_path: Path) -> None:
    """The last checkpoint of a run samples nothing until the run goes on; then its groups are stored."""
    rules = ("method=grpo", "checkpoint.every=5", "rollout.max_turns=3")
    result = train(configure(tmp_path, line_policy, *rules, "optim.updates=2"))
    assert [found.update for found in group_store.stored(result.folder.groups)] == [0]
    train(configure(tmp_path, line_policy, *rules, "optim.updates=4"), resume=True)
    assert [found.update for found in group_store.stored(result.folder.groups)] == [0, 2]
