"""What ``prover eval`` does: suites and configs of runs, measured without pytest."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from prover import preflight
from prover.bench import measurement, report, results
from prover.bench.contender import Contender, contender, of_config
from prover.bench.suite import is_manifest, load_suite
from prover.config import effective_yaml, load_config
from prover.evaluate import Evaluation
from prover.folder import make_writable


def evaluate(
    path: Path | None,
    overrides: Sequence[str],
    policy: str | None,
    folder: Path,
    *,
    episodes: int | None = None,
    seeds: int | None = None,
    resume: bool = False,
    allow_leak: bool = False,
    keep_turns: bool = False,
) -> dict[results.Key, Evaluation]:
    """Measure at every temperature and seed of a manifest, or of the evaluation of a run's config.

    Args:
        path: manifest or config; None for the defaults of a config.
        overrides: ``section.key=value`` each.
        policy: what plays, see ``contender``; None for that of the config, or ``default`` for a manifest.
        folder: where result files go.
        episodes: episodes of each measurement, if not as many as the file says.
        seeds: measurements with other seeds.
        resume: go on with what was interrupted.
        allow_leak: measure on a leaked split as well.
        keep_turns: keep what was said in every turn as well.

    Raises:
        ConfigError: a file, an option or the place of a result is wrong.
        DataError: data are missing, or the split is leaked.
        FailureShareError: too many episodes failed.
    """
    who: Contender | None = None if policy is None else contender(policy)
    if path is not None and path.is_file() and is_manifest(path):
        suite = load_suite(path, overrides)
        who = who or contender("default")
        plan, heats, first = measurement.plan_of_suite(suite, episodes), suite.temperatures, suite.seeds
    else:
        more = [] if episodes is None else [f"evaluation.episodes={episodes}"]
        config = load_config(path, [*overrides, *more])
        who = who or of_config(config)
        plan, heats, first = (
            measurement.plan_of_config(config),
            config.evaluation.temperatures,
            (config.evaluation.seed,),
        )
    if who.kind == "hf":
        preflight.check_packages()
    make_writable(folder, "--out DIR")
    console, found = Console(), []
    for temperature in heats if who.sampled else heats[:1]:
        for seed in first if seeds is None else range(first[0], first[0] + seeds):
            with report.progress(f"{plan.name} {who.name}", console) as watch:
                result = measurement.run(
                    plan,
                    who,
                    temperature=temperature,
                    seed=seed,
                    path=folder / results.file_name(plan.name, who, temperature, seed),
                    resume=resume,
                    allow_leak=allow_leak,
                    keep_turns=keep_turns,
                    watch=watch,
                )
            found.append(result)
    # Last, so that what is refused leaves the config of the results that lie there.
    (folder / f"{plan.name}.config.yaml").write_text(effective_yaml(plan.rules), encoding="utf-8")
    return results.gathered(found)
