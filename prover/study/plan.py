"""A study on real environments: which methods are trained, from which start policies, with which seeds."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from prover.config import RunConfig, load_config
from prover.errors import ConfigError
from prover.sections import Count, FilePath, Section, Seed, load

_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]


class StudyConfig(Section):
    """A plan. Every run is the config with the common settings, then those of its method."""

    about: str = ""
    """What is asked, in a sentence."""
    config: FilePath
    """Config of a training run."""
    common: tuple[str, ...] = ()
    """Overrides of all runs, as on the command line of ``prover train``."""
    starts: Annotated[dict[_Name, str], Field(min_length=1)]
    """Policies to start from: name -> ``policy.path``."""
    methods: Annotated[dict[_Name, tuple[str, ...]], Field(min_length=2)]
    """What is compared: name -> overrides. Differences are shown to the ``against`` methods."""
    matches: dict[_Name, _Name] = Field(default_factory=dict)
    """Methods that are to take as many turns as another one with the same start and seed (``rollout.match_turns``)."""
    against: Annotated[tuple[_Name, ...], Field(min_length=1)]
    """Methods that the others are compared with."""
    seeds: Count = 8
    """Training seeds of each method and start."""
    first_seed: Seed = 0
    """The first of them."""

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        for name in (*self.matches, *self.matches.values(), *self.against):
            if name not in self.methods:
                raise ValueError(f"expected a method of the plan ({', '.join(self.methods)}), got {name!r}")
        if chained := sorted(self.matches.keys() & set(self.matches.values())):
            raise ValueError(f"{', '.join(chained)} cannot be matched by one method and match another; match the first")
        return self

    def order(self) -> list[str]:
        """Methods in the order in which one seed is trained: a run that another one matches comes first."""
        return [name for name in self.methods if name not in self.matches] + list(self.matches)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One training run of a study."""

    start: str
    method: str
    seed: int
    config: RunConfig

    @property
    def key(self) -> tuple[str, str, int]:
        """As ``Record.key``."""
        return (self.start, self.method, self.seed)


def load_plan(path: Path) -> StudyConfig:
    """Read a plan.

    Raises:
        ConfigError: the file cannot be read, or a key or value is wrong.
    """
    return load(StudyConfig, path)


def jobs(plan: StudyConfig, out: Path) -> dict[tuple[str, int], list[Job]]:
    """All runs, checked: what has to run one after another by start and seed, all starts of a seed side by side.

    Args:
        plan: What to run.
        out: Folder that the runs lie in.

    Raises:
        ConfigError: the settings of a method are wrong.
    """
    measured: set[str] = set()
    return {
        (start, seed): list(_block(plan, start, seed, out, measured))
        for seed in range(plan.first_seed, plan.first_seed + plan.seeds)
        for start in plan.starts
    }


def run_folder(out: Path, start: str, method: str, seed: int) -> Path:
    """Where a run lies."""
    return out / "runs" / start / f"{method}-{seed}"


def _block(plan: StudyConfig, start: str, seed: int, out: Path, measured: set[str]) -> Iterator[Job]:
    for method in plan.order():
        settings: Mapping[str, object] = {
            "seed": seed,
            "policy.path": plan.starts[start],
            "run": run_folder(out, start, method, seed),
            # The start policy is the same in all runs, and so is what is measured of it.
            "evaluation.start": str(start not in measured).lower(),
        }
        if method in plan.matches:
            settings = {**settings, "rollout.match_turns": run_folder(out, start, plan.matches[method], seed)}
        measured.add(start)
        own = [f"{name}={value}" for name, value in settings.items()]
        try:
            config = load_config(plan.config, [*plan.common, *plan.methods[method], *own])
        except ConfigError as error:
            raise ConfigError(f"method {method}: {error}") from None
        yield Job(start=start, method=method, seed=seed, config=config)
