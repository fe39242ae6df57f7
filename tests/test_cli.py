"""The command line: exit codes, messages, and what reaches the commands' bodies."""

import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from prover import build, cli
from prover.config import effective_yaml, load_config
from prover.evaluate import Episode, Evaluation
from prover.study.plan import load_plan
from prover.testing import UniformPolicy

_CORRIDOR = ("benchmarks/studies/corridor.yaml", "--records", "benchmarks/studies/corridor.jsonl")


class Uniform(UniformPolicy):
    """Chance, as if it were a model."""

    def forget(self) -> None:
        """Nothing is kept."""


def run(*words: str) -> int:
    """Exit code of a command line."""
    with pytest.raises(SystemExit) as caught:
        cli.main(words)
    return int(caught.value.code or 0)


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder that looks like a model; commands run beside it."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    return "policy.path=model"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, bool]]:
    """Configs that reach the training loop, which is left out, each with ``resume``."""
    seen: list[tuple[Any, bool]] = []

    class Display:
        def __init__(self, updates: int, *, resumed: bool) -> None:
            self.watch = None

        def __enter__(self) -> "Display":
            return self

        def __exit__(self, *error: object) -> None:
            pass

    loop, display = ModuleType("prover.train"), ModuleType("prover.display")
    loop.__dict__["train"] = lambda config, *, resume, watch: seen.append((config, resume))
    display.__dict__.update(Display=Display, print_result=lambda result: None)
    monkeypatch.setitem(sys.modules, "prover.train", loop)
    monkeypatch.setitem(sys.modules, "prover.display", display)
    return seen


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """``prover version`` prints the version and succeeds."""
    assert run("version") == 0
    assert capsys.readouterr().out == "0.1.0\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "nowhere.yaml"], "error: There is no config file nowhere.yaml."),
        (["train", "optim.lrr=3"], "error: config: unknown key 'lrr' in section 'optim': did you mean 'lr'?\n"),
        (["train", "env.kind=linne"], "error: There is no environment of kind 'linne'. Did you mean 'line'?"),
        (["train", "env.kind=line", "policy.path=no"], "error: Expected a folder with a model"),
        (["train", "env.kind=line", "--resume"], "error: Expected --run DIR with --resume"),
        (["eval", "env.kind=line", "--policy", "no"], "error: expected a policy (random, expert, default, "),
        (["sft"], "error: config: out is missing"),
        (["compare", "a", "b"], "error: "),
        (["train", "--nonsense"], "Usage: prover train"),
    ],
)
def test_faults_in_what_was_asked_for_exit_with_2(
    words: list[str], message: str, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message is one paragraph without a traceback, and nothing was begun."""
    assert run(*words) == 2
    error = capsys.readouterr().err
    assert error.startswith(message)
    assert "Traceback" not in error
    assert not Path("runs").exists()


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """``--debug`` shows where an error came from; the exit code stays."""
    assert run("--debug", "train", "nowhere.yaml") == 2
    assert "Traceback" in capsys.readouterr().err


def test_other_errors_exit_with_1(
    model: str, calls: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What goes wrong in a run is named, with a hint how to see more."""

    def fail(*arguments: object, **options: object) -> None:
        raise RuntimeError("the loop broke")

    monkeypatch.setattr(sys.modules["prover.train"], "train", fail)
    assert run("train", "env.kind=line", model) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: RuntimeError: the loop broke\n")
    assert "--debug" in error
    assert "Traceback" not in error


def test_train_hands_on_file_overrides_and_folder(model: str, calls: list[Any]) -> None:
    """The file is read, overrides win, and ``--run`` names the folder."""
    Path("line.yaml").write_text("{env: {kind: line}, seed: 3, optim: {updates: 2}}")
    assert run("train", "line.yaml", model, "optim.updates=5", "--run", "there") == 0
    config, resume = calls[0]
    assert (config.env.kind, config.seed, config.optim.updates, config.run) == ("line", 3, 5, Path("there"))
    assert resume is False


def test_train_makes_up_a_folder(model: str, calls: list[Any]) -> None:
    """Without a folder, one is made under ``runs`` that begins with the method."""
    assert run("train", "env.kind=line", model, "method=grpo") == 0
    assert calls[0][0].run.parent == Path("runs")
    assert calls[0][0].run.name.startswith("grpo-")


def test_a_folder_with_a_run_is_resumed_or_refused(
    model: str, calls: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """A run is never overwritten; ``--resume`` takes its own config."""
    Path("old").mkdir()
    stored = load_config(None, ["env.kind=line", "seed=8", model])
    Path("old/config.yaml").write_text(effective_yaml(stored))
    assert run("train", "env.kind=line", model, "--run", "old") == 2
    assert "which holds a run" in capsys.readouterr().err
    assert run("train", "--run", "old", "--resume") == 0
    assert [(config.seed, config.run, resume) for config, resume in calls] == [(8, Path("old"), True)]


def result(successes: str, temperature: float = 1.0) -> Evaluation:
    """An evaluation of one episode per task; 1 is a success."""
    episodes = tuple(
        Episode(task=f"t{i}", kind="", seed=i, success=mark == "1", reward=float(mark), turns=3, invalid=0)
        for i, mark in enumerate(successes)
    )
    return Evaluation(split="test", temperature=temperature, episodes=episodes)


def test_compare_takes_files_and_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Results are paired by split and temperature; of a run, the last ones count."""
    folder = tmp_path / "run" / "evaluations"
    folder.mkdir(parents=True)
    result("0000").save(folder / "update-000000-T1.json")
    result("1110").save(folder / "update-000040-T1.json")
    result("1111", 0.5).save(folder / "update-000040-T0.5.json")
    result("1000").save(tmp_path / "single.json")
    assert run("compare", str(tmp_path / "single.json"), str(tmp_path / "run")) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if "success  " in line)
    # Two gains and no loss of two tasks: p = 2 / 2**2.
    assert row.split()[:6] == ["test", "1", "success", "25.0", "75.0", "+50.0"]
    assert row.strip().split("]")[1].split(maxsplit=2) == ["0.500", "4", "no difference shown"]


def test_compare_needs_something_in_common(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Results of different temperatures are not compared."""
    result("10").save(tmp_path / "a.json")
    result("10", 0.5).save(tmp_path / "b.json")
    assert run("compare", str(tmp_path / "a.json"), str(tmp_path / "b.json")) == 2
    assert "Evaluate both alike" in capsys.readouterr().err


def test_eval_measures_at_every_temperature(
    model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each temperature has its own result of as many episodes as asked for, the same when it is done again."""
    monkeypatch.setattr(build, "policy", lambda config: Uniform())
    settings = ["env.kind=line", model, "evaluation.episodes=18", "evaluation.temperatures=[1.0, 0.5]", "--allow-leak"]
    for folder in ("first", "second"):
        assert run("eval", *settings, "--out", folder) == 0
    shown = capsys.readouterr().out
    assert shown.count("LEAKED SPLIT: split 'test' shares 9 ids") == 2
    stored = [
        [json.loads(Path(f"{folder}/test-model-T{heat}-s0.json").read_text()) for heat in ("1", "0.5")]
        for folder in ("first", "second")
    ]
    assert [(one["n"], one["temperature"], one["split"]) for one in stored[0]] == [(18, 1.0, "test"), (18, 0.5, "test")]
    assert [one["episodes"] for one in stored[0]] == [one["episodes"] for one in stored[1]]
    assert load_config("first/test.config.yaml").evaluation.episodes == 18


def test_eval_refuses_a_leaked_split(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The toy walk has the same tasks in every split; the message counts them and says what to do."""
    assert run("eval", "env.kind=line", "--policy", "random") == 2
    assert re.search(r"leaked split: split 'test' shares 9 ids .* --allow-leak", capsys.readouterr().err)


def test_eval_keeps_results_and_goes_on(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is overwritten; with --resume what is there is shown again, without it the command ends."""
    words = ["eval", "env.kind=line", "--policy", "random", "--allow-leak", "--out", "results", "--episodes", "9"]
    assert run(*words) == 0
    first = Path("results/test-random-s0.json").read_bytes()
    assert run(*words) == 2
    assert "holds one; choose another with --out" in capsys.readouterr().err
    assert run(*words, "--resume") == 0
    assert Path("results/test-random-s0.json").read_bytes() == first
    assert run(*words[:5], "--resume") == 2
    assert "Expected --out DIR with --resume" in capsys.readouterr().err


@pytest.mark.parametrize(("passed", "code"), [(True, 0), (False, 1)])
def test_check_env_reports(
    passed: bool, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report is printed, and an environment that fails makes the command fail."""

    class Report(SimpleNamespace):
        def __str__(self) -> str:
            return f"report on {self.factory}"

    checks = ModuleType("prover.checks")
    checks.__dict__["load_factory"] = lambda name: f"factory of {name}"
    checks.__dict__["check_text_env"] = lambda factory, raises: Report(factory=factory, passed=passed)
    monkeypatch.setitem(sys.modules, "prover.checks", checks)
    assert run("check-env", "line") == code
    assert "report on factory of line" in capsys.readouterr().out


def test_a_wrong_config_loads_no_torch(tmp_path: Path) -> None:
    """The command ends before anything heavy is imported."""
    program = (
        "import sys\nfrom prover.cli import main\ntry:\n    main(['train', 'env.kind=line', 'policy.path=no'])\n"
        "except SystemExit as end:\n    print(end.code, 'torch' in sys.modules, 'transformers' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == ["2", "False", "False"]


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What reaches the comparison of judges, which is left out, and then what is printed of it."""
    seen: list[Any] = []
    logic, table = ModuleType("prover.rejudge"), ModuleType("prover.judge_table")

    def rejudge(plan: Any, watch: Any) -> str:
        watch(3, 7)
        seen.append(plan)
        return "summary"

    logic.__dict__.update(Plan=SimpleNamespace, rejudge=rejudge)
    table.__dict__["print_summary"] = lambda summary, out: seen.append((summary, out))
    monkeypatch.setitem(sys.modules, "prover.rejudge", logic)
    monkeypatch.setitem(sys.modules, "prover.judge_table", table)
    return seen


def test_judge_compares_judges_on_a_run(model: str, plans: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    """Kinds and files become judges beside the control, in the folder of the run where no other is named."""
    Path("old").mkdir()
    Path("old/config.yaml").write_text(effective_yaml(load_config(None, ["env.kind=line", model])))
    Path("short.yaml").write_text("judge: {kind: contrast, max_length: 1}")
    options = ["--judge", "contrast", "--judge", "short.yaml", "--groups", "9", "--seed", "4", "--continuations", "3"]
    assert run("judge", "old", *options, "--any-policy") == 0
    plan = plans[0]
    assert [(name, judge.name) for name, judge in plan.judges.items()] == [
        ("random_segment", "random"),
        ("contrast", "contrast"),
        ("short", "contrast"),
    ]
    assert (plan.settings["short"]["kind"], plan.settings["short"]["max_length"]) == ("contrast", 1)
    assert (plan.run, plan.out, plan.config.env.kind) == (Path("old"), Path("old/judged"), "line")
    assert (plan.groups, plan.seed, plan.continuations, plan.any_policy) == (9, 4, 3, True)
    assert plans[1] == ("summary", Path("old/judged"))
    assert "3 of 7 groups judged" in capsys.readouterr().out


def test_judge_takes_the_judge_of_the_run_by_default(model: str, plans: list[Any]) -> None:
    """Without a judge, the run's own is compared with random segments."""
    Path("old").mkdir()
    stored = load_config(None, ["env.kind=line", model, "judge.kind=contrast", "judge.max_length=2"])
    Path("old/config.yaml").write_text(effective_yaml(stored))
    assert run("judge", "old", "--out", "there") == 0
    assert list(plans[0].judges) == ["random_segment", "contrast"]
    assert (plans[0].judges["contrast"].max_length, plans[0].out, plans[0].groups) == (2, Path("there"), None)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["judge"], "error: Expected the folder of a run, got none."),
        (["judge", "nowhere"], "error: There is no config file nowhere/config.yaml."),
        (
            ["judge", "old", "--judge", "contrat"],
            "error: There is no judge of kind 'contrat'. Did you mean 'contrast'?",
        ),
        (["judge", "--check"], "error: Expected --judge with --check, got none."),
    ],
)
def test_judge_names_what_is_missing(
    words: list[str], message: str, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A fault in what was asked for ends the command before anything is loaded."""
    Path("old").mkdir()
    Path("old/config.yaml").write_text(effective_yaml(load_config(None, ["env.kind=line", model])))
    assert run(*words) == 2
    assert capsys.readouterr().err.startswith(message)


def test_judge_check_asks_each_judge(capsys: pytest.CaptureFixture[str]) -> None:
    """No run is needed; every judge is asked, and one that proposes nothing makes the command fail."""
    assert run("judge", "--check", "--judge", "contrast", "--judge", "fixed") == 0
    assert capsys.readouterr().out.count("Proposal: turns") == 2
    assert run("judge", "--check", "--judge", "none", "--judge", "contrast") == 1
    told = capsys.readouterr().out
    assert "No proposal: no_judge" in told
    assert "Proposal: turns" in told


def test_an_interrupted_comparison_says_how_it_goes_on(
    model: str, plans: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C ends it without a traceback, with the exit code that shells expect."""

    def stop(plan: Any, watch: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["prover.rejudge"], "rejudge", stop)
    Path("old").mkdir()
    Path("old/config.yaml").write_text(effective_yaml(load_config(None, ["env.kind=line", model])))
    assert run("judge", "old") == 130
    assert capsys.readouterr().err == "stopped; the same command goes on\n"


@pytest.fixture
def diagnoses(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What reaches the diagnosis, which is left out, and then what is printed of it."""
    seen: list[Any] = []
    logic, table = ModuleType("prover.diagnosis.diagnose"), ModuleType("prover.diagnosis.table")

    def diagnose(plan: Any, watch: Any) -> str:
        watch(2, 5)
        seen.append(plan)
        return "summary"

    logic.__dict__.update(Diagnosis=SimpleNamespace, diagnose=diagnose)
    table.__dict__["print_summary"] = lambda summary, out: seen.append((summary, out))
    monkeypatch.setitem(sys.modules, "prover.diagnosis.diagnose", logic)
    monkeypatch.setitem(sys.modules, "prover.diagnosis.table", table)
    return seen


def test_diagnose_hands_on_config_batches_and_folder(
    model: str, diagnoses: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """Overrides reach the config; without a folder one is made up beside the runs."""
    words = ["env.kind=line", model, "verify.continuations=3"]
    assert run("diagnose", *words, "--batches", "5", "--out", "there") == 0
    plan, printed = diagnoses
    assert (plan.config.verify.continuations, plan.batches, plan.out) == (3, 5, Path("there"))
    assert printed == ("summary", Path("there"))
    assert "2 of 5 batches" in capsys.readouterr().out
    assert run("diagnose", *words) == 0
    assert diagnoses[2].batches == 64
    assert re.fullmatch(r"runs/diagnosis-\d{8}-\d{6}", str(diagnoses[2].out))


def test_an_interrupted_diagnosis_says_how_it_goes_on(
    model: str, diagnoses: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C ends it without a traceback and names the folder, also one that was made up."""

    def stop(plan: Any, watch: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["prover.diagnosis.diagnose"], "diagnose", stop)
    assert run("diagnose", "env.kind=line", model) == 130
    assert re.fullmatch(r"stopped; the same command with --out runs/diagnosis-\S+ goes on\n", capsys.readouterr().err)


@pytest.mark.parametrize("name", ["alfworld", "corridor", "households"])
def test_a_study_shows_stored_records(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The published figures are those of the published records; tables, records and curves are left in the folder."""
    plan, records = (f"benchmarks/studies/{name}.{suffix}" for suffix in ("yaml", "jsonl"))
    assert run("study", plan, "--records", records, "--show", "--out", str(tmp_path)) == 0
    shown = [_cells(line) for line in capsys.readouterr().out.splitlines()]
    told = {_cells(line) for line in Path("docs/results.md").read_text("utf-8").splitlines()}
    starts = [*load_plan(Path(plan)).starts]
    seeds = str(load_plan(Path(plan)).seeds)
    results = [row for row in shown if row[2:3] == (seeds,) and row[0] in starts]
    differences = [
        row for row in shown if row[3:4] == (seeds,) and row[0] == (starts if not starts[1:] else ["all starts"])[0]
    ]
    assert len(results) == len(starts) * len(load_plan(Path(plan)).methods)
    assert len(differences) > 1
    # The docs name a start where there are several, and never the number of seeds, which is said above the table.
    for row in results:
        assert (*row[:2][-len(starts) :], *row[3:]) in told
    for row in differences:
        assert (*row[1:3], *row[4:]) in told
    assert {path.name for path in tmp_path.iterdir()} == {"report.md", "records.jsonl", *(f"{s}.svg" for s in starts)}
    assert (tmp_path / "records.jsonl").read_text() == Path(records).read_text()


def _cells(line: str) -> tuple[str, ...]:
    """Of a row of a table: the docs write names in code and columns as narrow as they are."""
    return tuple(cell.strip(" `") for cell in line.strip("| ").split("|"))


def test_a_study_draws_no_curves_without_matplotlib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tables are shown all the same, with a word on what is missing."""
    monkeypatch.setattr("prover.study.charts.find_spec", lambda name: None)
    assert run("study", *_CORRIDOR, "--show", "--out", str(tmp_path)) == 0
    assert "no curves: they take the extra `plots`" in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {"report.md", "records.jsonl"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nothing",), "Name toy, or a plan in a YAML file"),
        (("benchmarks/studies/corridor.yaml", "--show"), "Leave out --show to train them"),
        # No start policy has been made here: said at once, not after hours.
        (("benchmarks/studies/corridor.yaml",), "runs/plain"),
        (("toy", "--processes", "2"), "an option of plans"),
        (("benchmarks/studies/corridor.yaml", "--seeds", "3"), "A plan says `seeds: N`"),
        (("benchmarks/studies/corridor.yaml", "--rate", "8"), "for toy only"),
    ],
)
def test_a_study_that_cannot_be_is_refused(
    words: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, before anything is trained."""
    assert run("study", *words, "--out", str(tmp_path / "out")) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
