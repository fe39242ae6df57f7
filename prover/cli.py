"""The command line: thin commands, short messages, exit code 2 where the fault is in what was asked for.

Nothing heavy is imported before the config, the names and the data have been checked.
"""

import os
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from prover import __version__, build, preflight
from prover.config import effective_yaml, load_config, load_sft_config
from prover.errors import ConfigError, DataError, ProverError, UnknownNameError
from prover.folder import RunFolder
from prover.judge_config import JudgeConfig, load_judges

app = typer.Typer(
    help="Train LLM agents with reinforcement learning and measure which of their decisions mattered.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="CONFIG SECTION.KEY=VALUE", help="YAML file, then overrides.", show_default=False),
]
RunOption = Annotated[Path | None, typer.Option("--run", help="Folder of the run.", show_default=False)]


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Options of every command; ``main`` reads them."""


@app.command()
def train(
    words: Words = None,
    run: RunOption = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --run.")] = False,
) -> None:
    """Train a policy."""
    path, overrides = _config_and_overrides(words)
    if resume and path is None and run is not None:
        path = run / "config.yaml"
    config = load_config(path, overrides)
    folder = run or config.run
    if folder is None and resume:
        raise ConfigError("Expected --run DIR with --resume, got none. Name the folder of the run to go on with.")
    folder = folder or Path("runs") / f"{config.method}-{time.strftime('%Y%m%d-%H%M%S')}"
    preflight.check_config(config)
    RunFolder(folder).check(effective_yaml(config), resume=resume)

    from prover.display import Display, print_result
    from prover.train import train

    print(
        f"method {config.method}, seed {config.seed}, {config.env.kind} split {config.env.split}, policy "
        f"{config.policy.path}, decoding {config.policy.decoding}, transcript {config.transcript.mode}, run {folder}"
    )
    try:
        with Display(config.optim.updates, resumed=resume) as display:
            result = train(config.model_copy(update={"run": folder}), resume=resume, watch=display.watch)
    except KeyboardInterrupt:
        print(f"stopped; `prover train --resume --run {folder}` goes on after the last checkpoint", file=sys.stderr)
        raise typer.Exit(130) from None
    print_result(result)


@app.command()
def sft(words: Words = None) -> None:
    """Make a small policy from demonstrations."""
    path, overrides = _config_and_overrides(words)
    config = load_sft_config(path, overrides)
    preflight.check_packages()
    build.env_tasks(config.env)
    preflight.check_new_policy(config.out)
    build.probe_env(config.env)

    from prover import sft

    path = sft.run(config, watch=_print_event)
    print(f"Policy: {path} (train it further with policy.path={path})")


@app.command(name="eval")
def evaluate_policy(
    words: Words = None,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy", help="random, expert, default, a model's or run's folder, or a YAML file.", show_default=False
        ),
    ] = None,
    episodes: Annotated[
        int | None, typer.Option(min=1, help="Episodes of each measurement.", show_default=False)
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Measurements with other seeds.", show_default=False)] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder of the results.", show_default=False)] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what was interrupted in --out.")] = False,
    turns: Annotated[bool, typer.Option("--turns", help="Keep what was said in every turn.")] = False,
    allow_leak: Annotated[bool, typer.Option("--allow-leak", help="Measure on a leaked split; marks it.")] = False,
) -> None:
    """Measure a policy's success on a suite (a manifest) or as the config of a run says."""
    from prover.bench import command, report

    path, overrides = _config_and_overrides(words)
    if resume and out is None:
        raise ConfigError("Expected --out DIR with --resume, got none. Name the folder of what was interrupted.")
    folder = out or Path("runs") / f"eval-{time.strftime('%Y%m%d-%H%M%S')}"
    try:
        found = command.evaluate(
            path,
            overrides,
            policy,
            folder,
            episodes=episodes,
            seeds=seeds,
            resume=resume,
            allow_leak=allow_leak,
            keep_turns=turns,
        )
    except KeyboardInterrupt:
        print(f"stopped; the same command with --resume --out {folder} goes on", file=sys.stderr)
        raise typer.Exit(130) from None
    report.print_all(report.summary(found))
    print(f"95% intervals. Results with every episode: {folder}")


@app.command(name="compare")
def compare_results(
    before: Annotated[Path, typer.Argument(help="Run folder, folder of results, or one result file.")],
    after: Annotated[Path, typer.Argument(help="What to compare with it.")],
) -> None:
    """Compare two runs or results, task by task."""
    from prover.bench import report, results

    report.print_all(report.comparison(results.pairs(results.read(before), results.read(after))))
    print(
        "Success in %, on the tasks that both played; p of McNemar's exact test where each task was played once, of a "
        f"permutation test otherwise.\nBefore: {before}, after: {after}; of a run, its last evaluation."
    )


@app.command(name="judge")
def judge_again(
    run: Annotated[Path | None, typer.Argument(help="Folder of the run.", show_default=False)] = None,
    judges: Annotated[
        list[str] | None,
        typer.Option("--judge", help="A kind or a YAML file; may be repeated.", show_default="the run's own"),
    ] = None,
    groups: Annotated[int | None, typer.Option(min=1, help="Groups to judge.", show_default="all")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Entropy of judges and continuations.")] = 0,
    continuations: Annotated[
        int | None, typer.Option(min=1, help="Continuations per arm.", show_default="as in the run")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the results.", show_default="RUN/judged")] = None,
    any_policy: Annotated[bool, typer.Option("--any-policy", help="Let the nearest checkpoint play.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Ask the judge about one known group and stop.")] = False,
) -> None:
    """Compare judges on the stored groups of a run."""
    config = None if run is None else load_config(run / "config.yaml")
    settings = load_judges(judges or [], default=config.judge if config else None)
    if check:
        _check_judges({name: settings[name] for name in settings if name != "random_segment"})
        return
    if run is None or config is None:
        raise ConfigError("Expected the folder of a run, got none. Name one, or check a judge alone with --check.")
    preflight.check_packages()
    build.probe_env(config.env)
    folder = out or run / "judged"
    env = config.env.kept_in(run)  # Whoever plays sees what the episodes of the run saw.
    made = {name: build.judge(section, env=env, folder=folder) for name, section in settings.items()}

    from prover.judge_table import print_summary
    from prover.rejudge import Plan, rejudge

    plan = Plan(
        config=config,
        run=run,
        out=folder,
        judges=made,
        settings={name: section.model_dump(mode="json") for name, section in settings.items()},
        groups=groups,
        seed=seed,
        continuations=continuations,
        any_policy=any_policy,
    )
    try:
        summary = rejudge(plan, watch=lambda done, total: print(f"{done} of {total} groups judged", flush=True))
    except KeyboardInterrupt:
        print("stopped; the same command goes on", file=sys.stderr)
        raise typer.Exit(130) from None
    print_summary(summary, folder)


def _check_judges(sections: Mapping[str, JudgeConfig]) -> None:
    """Send one known group to each judge, print what comes back, and fail if one of them makes no valid proposal."""
    if not sections:
        raise ConfigError("Expected --judge with --check, got none. Name the judge to check, a kind or a YAML file.")
    from prover.judge_check import check

    passed = [check(section, print) for section in sections.values()]
    if not all(passed):
        raise typer.Exit(1)


@app.command(name="diagnose")
def diagnose_task(
    words: Words = None,
    batches: Annotated[int, typer.Option("--batches", min=1, help="Batches to sample at the start policy.")] = 64,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of the results; goes on there.", show_default=False)
    ] = None,
) -> None:
    """Tell, before training, whether verified credit can pay, and with which judge."""
    path, overrides = _config_and_overrides(words)
    config = load_config(path, overrides)
    preflight.check_config(config)
    folder = out or Path("runs") / f"diagnosis-{time.strftime('%Y%m%d-%H%M%S')}"

    from prover.diagnosis.diagnose import Diagnosis, diagnose
    from prover.diagnosis.table import print_summary

    plan = Diagnosis(config=config, out=folder, batches=batches)
    try:
        summary = diagnose(plan, watch=lambda done, total: print(f"{done} of {total} batches", flush=True))
    except KeyboardInterrupt:
        print(f"stopped; the same command with --out {folder} goes on", file=sys.stderr)
        raise typer.Exit(130) from None
    print_summary(summary, folder)


@app.command(name="check-env")
def check_env(
    name: Annotated[str, typer.Argument(help="As in env.kind: a shipped name, module:Class, or a Gymnasium id.")],
) -> None:
    """Check that an environment keeps its contract."""
    from prover.checks import check_text_env, load_factory

    report = check_text_env(load_factory(name), raises=False)
    print(report)
    if not report.passed:
        raise typer.Exit(1)


@app.command(name="study")
def study(
    plan: Annotated[str, typer.Argument(help="A plan in YAML, or toy: two pivotal decisions, every value known.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of a plan's runs; goes on there.", show_default=False)
    ] = None,
    processes: Annotated[int, typer.Option("--processes", min=1, help="Runs of a plan side by side.")] = 1,
    records: Annotated[
        Path | None,
        typer.Option("--records", help="Stored records of a plan's runs; these are not trained.", show_default=False),
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Show what is done of a plan and train nothing.")] = False,
    seeds: Annotated[
        int | None, typer.Option("--seeds", min=2, help="Training runs per method, 24 by default; toy only.")
    ] = None,
    rate: Annotated[
        float | None, typer.Option("--rate", help="Learning rate, 8 by default, GRPO does best at 32; toy only.")
    ] = None,
) -> None:
    """Compare methods over many seeds."""
    if plan == "toy":
        if out or records or show or processes != 1:
            raise ConfigError("Expected --seeds and --rate at most for toy, got an option of plans. Leave it out.")
        _study_toy(seeds or 24, 8.0 if rate is None else rate)
        return
    if not plan.endswith((".yaml", ".yml")):
        raise UnknownNameError(f"There is no study {plan!r}. Name toy, or a plan in a YAML file.")
    if (seeds, rate) != (None, None):
        raise ConfigError("Expected --seeds and --rate for toy only. A plan says `seeds: N`, and optim.lr in `common`.")
    from prover.study.plan import jobs, load_plan

    asked = load_plan(Path(plan))
    folder = out or Path("runs") / f"study-{Path(plan).stem}"
    for (_, seed), block in jobs(asked, folder).items():
        if seed == asked.first_seed and not show:  # Seeds differ in nothing that could be missing.
            for job in block:
                preflight.check_config(job.config)

    from prover.study import charts, record, runs, table

    stored = record.read(records) if records else []
    try:
        found = (
            runs.finished(asked, folder, stored)
            if show
            else runs.run(asked, folder, processes=processes, watch=_print_runs, stored=stored)
        )
    except KeyboardInterrupt:
        print("stopped; the same command goes on", file=sys.stderr)
        raise typer.Exit(130) from None
    if not found:
        raise DataError(f"Expected finished runs of the plan in {folder}, found none. Leave out --show to train them.")
    text = table.report(found, asked.against, about=asked.about)
    print(text)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.md").write_text(text, encoding="utf-8")
    (folder / "records.jsonl").write_text("".join(run.json() + "\n" for run in found), encoding="utf-8")
    curves = charts.draw(found, folder) if charts.can_draw() else ["no curves: they take the extra `plots`"]
    print("\n".join(map(str, [folder / "report.md", folder / "records.jsonl", *curves])))


def _print_runs(done: int, total: int) -> None:
    print(f"{done} of {total} runs", flush=True)


def _study_toy(seeds: int, rate: float) -> None:
    from prover.study import toy_table

    console = Console()
    with console.status("training ...") as status:
        found = []
        for row in toy_table.rows(range(seeds), rate):
            found.append(row)
            status.update(f"trained {len(found)} of {len(toy_table.METHODS)} methods")
    toy_table.show(found, seeds, rate, console)


@app.command(name="serve-retriever")
def serve_retriever(
    source: Annotated[Path, typer.Argument(metavar="CONFIG_OR_DATA", help="YAML file, or a corpus or its folder.")],
    port: Annotated[int, typer.Option("--port", help="0 for a free one.")] = 8000,
    host: Annotated[str, typer.Option("--host", help="Address to listen at.")] = "127.0.0.1",
    dialect: Annotated[str, typer.Option("--dialect", help="search_r1, verl_agent or rerank.")] = "search_r1",
    topk: Annotated[int, typer.Option("--topk", min=1, help="Passages where a request does not say.")] = 3,
) -> None:
    """Serve passages to search over HTTP."""
    from prover.retrieval.server import serve
    from prover.retriever_config import ServedConfig
    from prover.sections import load

    is_config = source.suffix in (".yaml", ".yml")
    config = load(ServedConfig, source) if is_config else ServedConfig(corpus=source)
    serve(config, host=host, port=port, dialect=dialect, k=topk)


@app.command()
def version() -> None:
    """Print the version."""
    print(__version__)


def _config_and_overrides(words: Sequence[str] | None) -> tuple[Path | None, list[str]]:
    """The config file, if the first word is one, and the overrides."""
    if not words or "=" in words[0]:
        return None, list(words or [])
    return Path(words[0]), list(words[1:])


def _print_event(event: str, metrics: Mapping[str, Any]) -> None:
    values = (f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in metrics.items())
    print(f"{event}: {', '.join(values)}", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with 0, with 2 for a fault in what was asked for, or with 1 for any other."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    # Small models are slower on several threads than on one, and runs side by side slow each other down.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # As with `python -m`: an environment or judge of one's own may lie where the command is run.
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        app(words, prog_name="prover")
    except Exception as error:
        if "--debug" in words:
            traceback.print_exc()
        elif isinstance(error, ProverError):
            print(f"error: {error}", file=sys.stderr)
        else:
            hint = "Run `prover --debug ...` for the traceback."
            print(f"error: {type(error).__name__}: {error}\n{hint}", file=sys.stderr)
        sys.exit(2 if isinstance(error, (ConfigError, DataError, UnknownNameError)) else 1)
