"""SearchQAEnv: questions to be answered by searching, as an environment whose exact state can be saved and restored."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import gymnasium

from prover.env_config import SemanticConfig
from prover.envs.choice import chosen_task
from prover.envs.searchqa import wording
from prover.envs.searchqa.action import SYNTAXES, Answer, Invalid, Search, Syntax, parse
from prover.envs.searchqa.engine import probe, section, shared_retriever
from prover.envs.searchqa.episode import Episode, Move
from prover.envs.searchqa.expert import Expert
from prover.envs.searchqa.grader import SemanticGrader
from prover.envs.searchqa.latency import Latency
from prover.envs.searchqa.library import open_library
from prover.envs.searchqa.names import merged, names, proposals
from prover.envs.searchqa.outcome import outcome
from prover.envs.searchqa.passages import FORMATS, PassageFormat, show
from prover.envs.searchqa.question import Question
from prover.envs.searchqa.scoring import METRICS, NORMALISATIONS, Metric, Normalisation, Score, score
from prover.errors import ConfigError, DataError, EnvError, SnapshotError, UnknownNameError
from prover.retrieval.retriever import Passage, Retriever
from prover.retriever_config import HttpRetrieverConfig
from prover.sections import check
from prover.spaces import UnicodeText

_latency = Latency()
"""Of all searches of this process."""


class SearchQAEnv(gymnasium.Env[str, str]):
    """Questions that are answered by searching: think, search, read, and again, then answer.

    The policy's whole text comes in (format ``bare``) and is read by ``prover.envs.searchqa.action``. A search shows
    the best passages; after ``max_searches`` of them a further one is not made, says so and is marked
    ``info["invalid_action"]``, as is what cannot be read. The answer ends the episode, and it alone is scored.

    ``info["metrics"]`` holds ``em``, ``sub_em`` and ``f1`` of the answer (0 before it), ``searches``, and, where the
    supporting passages are known, ``gold_retrieved``, the share of them that was shown. The reward of the answer is the
    ``metric``. A retriever that fails raises ``ServiceError`` out of ``step`` and leaves the state as it was.

    ``info["admissible_actions"]`` holds searches and answers made of names that question and passages have shown: an
    aid for small policies, see ``prover.envs.searchqa.names``.

    Args:
        data: ``generated`` asks about a small made-up encyclopedia; a path names a folder of questions and passages
            (see ``prover.envs.searchqa.library``); empty or None looks for the folder in ``$SEARCHQA_DATA``.
        datasets: keep the questions of these datasets only; None keeps all.
        retriever: section of a config (``prover.retriever_config``), or a retriever, which remains yours to close; None
            searches the library's own passages by BM25.
        max_searches: searches of an episode.
        top_k: passages of a search.
        passage_format: ``search_r1``, ``verl`` or ``verl_agent``.
        observation_tokens: most tokens of passages in one observation, four bytes each.
        syntax: ``tags`` or ``brackets``.
        metric: what an answer is worth: ``em``, ``sub_em`` or ``f1``.
        threshold: worth from which an answer is a success.
        normalisation: ``standard`` (as Search-R1) or ``unicode``.
        semantic: section of a config (``prover.env_config.SemanticConfig``) of the chat model that ``grader`` asks.
        split: The split that ``reset`` without a task draws from.

    >>> env = SearchQAEnv(syntax="brackets")
    >>> observation, info = env.reset(options={"task": env.tasks("train")[0]})
    >>> "Question: " in observation, info["task_type"], info["metrics"]["searches"]
    (True, 'one_hop', 0.0)

    Raises:
        ConfigError: an argument makes no sense.
        DataError: the data are missing or damaged, or splits share questions.
        UnknownNameError: there is no such dataset.
    """

    def __init__(
        self,
        data: str | None = "generated",
        datasets: Sequence[str] | None = None,
        retriever: Mapping[str, Any] | Retriever | None = None,
        max_searches: int = 4,
        top_k: int = 3,
        passage_format: PassageFormat = "search_r1",
        observation_tokens: int = 500,
        syntax: Syntax = "tags",
        metric: Metric = "em",
        threshold: float = 1.0,
        normalisation: Normalisation = "standard",
        semantic: Mapping[str, Any] | None = None,
        split: str = "train",
    ) -> None:
        choices: dict[str, tuple[str, Sequence[str]]] = {
            "passage_format": (passage_format, FORMATS),
            "syntax": (syntax, SYNTAXES),
        }
        choices |= {"metric": (metric, METRICS), "normalisation": (normalisation, NORMALISATIONS)}
        for name, (value, among) in choices.items():
            if value not in among:
                raise ConfigError(f"expected {name} to be one of {', '.join(among)}, got {value!r}; name one of these")
        numbers = {"max_searches": max_searches, "top_k": top_k, "observation_tokens": observation_tokens}
        for name, number in numbers.items():
            if number < 1:
                raise ConfigError(f"expected {name} of at least 1, got {number}; raise it")
        if not 0 < threshold <= 1:
            raise ConfigError(f"expected a threshold above 0 and at most 1, got {threshold}; answers are worth 0 to 1")
        self.observation_space = UnicodeText(1_000_000)
        self.action_space = UnicodeText()
        self._library = open_library(data, datasets)
        self._given = retriever if isinstance(retriever, Retriever) else None
        self._section = section(None if isinstance(retriever, Retriever) else retriever)
        self._max_searches, self._top_k, self._budget = max_searches, top_k, observation_tokens
        self._format, self._syntax = passage_format, syntax
        self._metric, self._threshold, self._normalisation = metric, threshold, normalisation
        self._semantic = None if semantic is None else check(SemanticConfig, dict(semantic), "semantic")
        self._split = split
        self._now: Episode | None = None

    @property
    def questions(self) -> Mapping[str, Question]:
        """All questions by id; see ``prover.envs.searchqa.outcome``."""
        return self._library.questions

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Ask the question ``options["task"]``, or one drawn from the split ``options["split"]``.

        The first one in a process opens the retriever.

        Raises:
            ConfigError: there is another key in ``options``.
            DataError: there are no passages to search.
            UnknownNameError: there is no such question or split.
        """
        super().reset(seed=seed)
        task = chosen_task(options, self.tasks, self._split, self.np_random)
        if task not in self.questions:
            raise UnknownNameError(f"expected the id of a question, got {task!r}; tasks(split) lists them")
        # Here and not at the first search: making an index takes longer than a step may.
        self._retriever()
        text = self.questions[task].text
        opening = wording.opening(text, self._syntax, self._max_searches)
        self._now = Episode(task=task, observation=opening, names=merged(names(text)))
        return self._answer(self._now)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Search or answer.

        Raises:
            EnvError: the episode has not begun or has ended, or the action is no text.
            ServiceError: the retriever gave no usable answer; the state is as before.
        """
        now = self._current("step")
        if now.done:
            raise EnvError("expected step() before the end of the episode, got one after it; call reset() or restore()")
        if not isinstance(action, str):
            raise EnvError(f"expected an action of type str, got {type(action).__name__}; send the policy's text")
        said = parse(action, self._syntax)
        if isinstance(said, Search) and now.searches == self._max_searches:
            said = Invalid(wording.NONE_LEFT)
        if isinstance(said, Search):
            new = self._searched(now, said.query)
        elif isinstance(said, Answer):
            moves = (*now.moves, Move(kind="answer", text=said.text))
            new = replace(now, moves=moves, observation=wording.DONE, reason="")
        else:
            left = self._max_searches - now.searches
            new = replace(now, observation=wording.refused(said.reason, self._syntax, left), reason=said.reason)
        self._now = new
        observation, info = self._answer(new)
        return observation, info["metrics"][self._metric], new.done, False, info

    def snapshot(self) -> Episode:
        """The state: a value of a few kilobytes, picklable and, by ``to_json``, JSON."""
        return self._current("snapshot")

    def restore(self, snapshot: Episode) -> tuple[str, dict[str, Any]]:
        """Bring a snapshot back, in any instance with the same data and settings; nothing is searched for.

        Raises:
            SnapshotError: it is no state, or one of another library.
        """
        if not isinstance(snapshot, Episode):
            raise SnapshotError(f"expected an Episode, got {type(snapshot).__name__}; restore a value of snapshot()")
        if snapshot.task not in self.questions:
            raise SnapshotError(
                f"expected a state of this library, got one of question {snapshot.task!r}; restore it with the same "
                "data and datasets"
            )
        self._now = snapshot
        return self._answer(snapshot)

    def state_key(self) -> str:
        """Hash of the state; whether the last action meant something is no part of it."""
        return self._current("state_key").key()

    def tasks(self, split: str) -> tuple[str, ...]:
        """Ids of the questions of a split, always in the same order.

        Questions that the library's passages have nothing on are listed only where the retriever has passages of its
        own.

        Raises:
            UnknownNameError: there is no such split.
            DataError: the split holds only questions that need another retriever.
        """
        if split not in self._library.splits:
            known = ", ".join(self._library.splits)
            raise UnknownNameError(f"expected a split among {known}, got {split!r}; name one of these")
        ids = self._library.splits[split]
        if self._has_own_passages():
            return ids
        covered = tuple(name for name in ids if self.questions[name].covered)
        if ids and not covered:
            raise DataError(
                f"expected questions with passages in split {split!r}, got {len(ids)} without; set env.retriever to a "
                "server that has passages for them, or choose another split"
            )
        return covered

    def manifest(self) -> dict[str, Any]:
        """What a result depends on beside the policy: questions, corpus, retriever and settings."""
        found = self._library.manifest()
        if isinstance(self._section, HttpRetrieverConfig):
            found["label"] = f"SearchQA ({self._section.index or 'remote corpus'})"
        elif self._given is None:
            found["corpus"] = self._library.corpus()
        settings: dict[str, Any] = {
            "max_searches": self._max_searches,
            "top_k": self._top_k,
            "observation_tokens": self._budget,
        }
        settings |= {"passage_format": self._format, "syntax": self._syntax, "metric": self._metric}
        settings |= {"threshold": self._threshold, "normalisation": self._normalisation}
        return {**found, "retriever": self._retriever().fingerprint, "settings": settings}

    def probe(self) -> None:
        """Ask a retrieval server one of the questions.

        Raises:
            ServiceError: it does not answer, or finds nothing; the message names its URL.
        """
        if self._given is None:
            probe(self._section, next(iter(self.questions.values())).text)

    def goal(self, task: str) -> str:
        """The question of a task, by which it is the same under another id.

        Raises:
            UnknownNameError: there is no such question.
        """
        if task not in self.questions:
            raise UnknownNameError(f"expected the id of a question, got {task!r}; tasks(split) lists them")
        return self.questions[task].text

    def stats(self) -> dict[str, float]:
        """How long the searches of this process took since the last call, see ``Latency.drain``."""
        return _latency.drain()

    def grader(self, folder: Path) -> SemanticGrader | None:
        """Who says whether answers mean the same as the right ones; None where ``semantic`` asks nobody."""
        if self._semantic is None:
            return None
        return SemanticGrader(self._semantic, folder, lambda run: outcome(run, self.questions, self._syntax))

    def expert(self, seed: int) -> Expert:
        """A scripted searcher of the current episode, for demonstrations; nothing that it does is random.

        Raises:
            EnvError: no episode has begun.
        """
        question = self.questions[self._current("expert").task]
        return Expert(question, lambda: self._current("expert"), max_searches=self._max_searches, syntax=self._syntax)

    def _current(self, call: str) -> Episode:
        if self._now is None:
            raise EnvError(f"expected reset() or restore() before {call}(), got neither; call one of them first")
        return self._now

    def _has_own_passages(self) -> bool:
        return self._given is not None or isinstance(self._section, HttpRetrieverConfig)

    def _retriever(self) -> Retriever:
        return self._given or shared_retriever(self._section, self._library)

    def _searched(self, now: Episode, query: str) -> Episode:
        """The state after a search."""
        retriever = self._retriever()
        with _latency.of_a_search():
            (hits,) = retriever.search([query], self._top_k)
        text, shown = show([hit.passage for hit in hits], self._format, self._budget)
        move = Move(kind="search", text=query, passages=tuple(passage.id for passage in shown))
        seen = (name for passage in shown for name in [*names(passage.title), *names(passage.text)])
        asked = names(self.questions[now.task].text)
        return replace(
            now,
            moves=(*now.moves, move),
            observation=wording.found(text, self._max_searches - now.searches - 1),
            names=merged(asked, seen, now.names),
            found=tuple(sorted({*now.found, *_supporting(self.questions[now.task], shown)})),
            reason="",
        )

    def _answer(self, now: Episode) -> tuple[str, dict[str, Any]]:
        question = self.questions[now.task]
        worth = Score() if now.answer is None else score(now.answer, question.answers, self._normalisation)
        metrics = {**asdict(worth), "searches": float(now.searches)}
        if question.supports:
            metrics["gold_retrieved"] = len(now.found) / len(question.supports)
        may_search = now.searches < self._max_searches
        info = {
            "success": now.done and metrics[self._metric] >= self._threshold,
            "admissible_actions": []
            if now.done
            else proposals(question, now, may_search=may_search, syntax=self._syntax),
            "invalid_action": bool(now.reason),
            "invalid_reason": now.reason,
            "task_type": question.dataset,
            "task": now.task,
            "passage_ids": list(now.moves[-1].passages) if now.moves and not now.reason else [],
            "metrics": metrics,
        }
        return now.observation, info


def _supporting(question: Question, shown: Sequence[Passage]) -> set[str]:
    """Supporting titles among those of the passages, whatever their case and spacing."""
    titles = {_plain(passage.title) for passage in shown}
    return {title for title in question.supports if _plain(title) in titles}


def _plain(title: str) -> str:
    return " ".join(title.casefold().split())
