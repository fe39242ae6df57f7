"""A suite: which tasks are played under which rules, written down in a manifest with a version.

Whatever can change a score stands in the manifest and enters its digest; a change of it needs a new version.
"""

import difflib
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from prover import sections, stage, yaml_text
from prover.config import (
    EvaluationConfig,
    FormatConfig,
    PolicyConfig,
    RolloutConfig,
    RunConfig,
    TranscriptConfig,
)
from prover.env_config import EnvConfig
from prover.errors import DataError, UnknownNameError
from prover.records import Task
from prover.sections import Count, Positive, Section, Seed


class SuiteConfig(Section):
    """A manifest."""

    suite: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
    """Name of the suite."""
    version: Count
    """Changes whenever a score may change."""
    about: str = ""
    """What it measures, in a sentence."""
    env: EnvConfig
    """Environment; every key that can change a score is best spelt out."""
    split: str = "test"
    """Split whose tasks are played."""
    trained_on: tuple[str, ...] = ("train",)
    """Splits that may share no task with it; empty for a suite in which nothing is held out, a toy."""
    ids: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """Tasks to play; all of the split when left out."""
    tasks_hash: str | None = None
    """``tasks_hash`` of the ids that are played; null where they depend on the data of whoever runs it."""
    episodes: Count | None = None
    """Episodes of a measurement; each task once when left out."""
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1)] = (0,)
    """One measurement with each."""
    temperatures: Annotated[tuple[Positive, ...], Field(min_length=1)] = (1.0,)
    """One measurement at each."""
    max_turns: Count
    """Turn cap of an episode."""
    decoding: Literal["free", "admissible"] = "admissible"
    """Whether what plays is told, or held to, the admissible actions."""
    max_reply_tokens: Count = 16
    """Limit of one reply, in tokens."""
    context_limit: Count = 4096
    """Most tokens of prompt and reply together."""
    format: FormatConfig = FormatConfig()
    transcript: TranscriptConfig = TranscriptConfig()
    isolation: Literal["inline", "thread", "process"] = "inline"
    """Where environments run, as in ``rollout.isolation``; changes no score."""
    step_deadline_s: Positive | None = 30.0
    """Longest wait for one answer of the environment, in seconds."""

    @property
    def digest(self) -> str:
        """Hash of what is written in the manifest and can change a score."""
        written = self.model_dump(mode="json", exclude_unset=True, exclude={"version", "about", "isolation"})
        return _hash(yaml_text.write(written))

    def config(self, *, episodes: int) -> RunConfig:
        """The manifest as the config of a run that only evaluates, once."""
        return RunConfig(
            method="grpo",
            env=self.env.model_copy(update={"split": (self.trained_on or (self.split,))[0]}),
            policy=PolicyConfig(
                decoding=self.decoding,
                temperature=self.temperatures[0],
                max_reply_tokens=self.max_reply_tokens,
                context_limit=self.context_limit,
            ),
            format=self.format,
            transcript=self.transcript,
            rollout=RolloutConfig(
                max_turns=self.max_turns, isolation=self.isolation, step_deadline_s=self.step_deadline_s
            ),
            evaluation=EvaluationConfig(
                split=self.split, episodes=episodes, temperatures=self.temperatures, seed=self.seeds[0]
            ),
        )

    def tasks(self) -> tuple[Task, ...]:
        """The tasks, checked against the manifest.

        Raises:
            DataError: they are others than those of this version, or their data are missing.
            UnknownNameError: the environment has no such split or task.
        """
        listed = stage.tasks(self.env, self.split)
        if self.ids is not None:
            known = {task.id: task for task in listed}
            if unknown := [name for name in self.ids if name not in known]:
                near = difflib.get_close_matches(unknown[0], known, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"the split has {len(known)} others"
                raise UnknownNameError(
                    f"suite {self.suite}: expected tasks of split {self.split!r}, got {unknown[0]!r}; {hint}"
                )
            listed = tuple(known[name] for name in self.ids)
        found = tasks_hash(listed)
        if self.tasks_hash is not None and found != self.tasks_hash:
            raise DataError(
                f"suite {self.suite}, version {self.version}: expected the tasks with hash {self.tasks_hash}, got "
                f"{len(listed)} tasks with hash {found}; the data are incomplete or of another version, so that the "
                "score could not be compared with any other of this suite"
            )
        return listed


def tasks_hash(tasks: Sequence[Task]) -> str:
    """Hash of tasks in their order."""
    return _hash("\n".join(task.id for task in tasks))


def load_suite(path: Path | str, overrides: Sequence[str] = ()) -> SuiteConfig:
    """Read a manifest.

    Raises:
        ConfigError: it cannot be read, or a key or value is wrong.
    """
    return sections.load(SuiteConfig, path, overrides)


def is_manifest(path: Path) -> bool:
    """Whether a YAML file is a manifest, by its key ``suite``.

    Raises:
        ConfigError: it cannot be read.
    """
    return "suite" in sections.read(path)


def fits(name: str, wanted: str) -> bool:
    """Whether a suite is asked for: by its name, its family, a pattern or ``all``.

    >>> fits("shop_real", "shop"), fits("shop_real", "*_real"), fits("shopping", "shop")
    (True, True, False)
    """
    return wanted in ("all", name) or name.startswith(f"{wanted}_") or fnmatchcase(name, wanted)


def no_such_suite(wanted: str, known: Iterable[str]) -> UnknownNameError:
    """What to say where nothing fits."""
    names = sorted(known)
    near = difflib.get_close_matches(wanted, names, 1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return UnknownNameError(f"expected a suite, got {wanted!r}; {hint}there are {', '.join(names) or 'none'}")


def _hash(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest()
