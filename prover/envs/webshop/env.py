"""WebShopEnv: WebShop as an environment whose exact state can be saved and brought back."""

from typing import Any, Literal

import gymnasium

from prover.envs.choice import chosen_task
from prover.envs.webshop.brief import brief
from prover.envs.webshop.catalogue import manifest, open_shop
from prover.envs.webshop.expert import Expert
from prover.envs.webshop.index_cache import KINDS as INDEXES
from prover.envs.webshop.index_cache import Kind as IndexKind
from prover.envs.webshop.page import MODES, Mode, Page
from prover.envs.webshop.query import proposals
from prover.envs.webshop.reward import VARIANTS, Variant
from prover.envs.webshop.session import Session
from prover.envs.webshop.split import SCHEMES, Scheme
from prover.errors import ConfigError, EnvError, SnapshotError, UnknownNameError
from prover.seeds import generator
from prover.spaces import UnicodeText

KINDS = ("synthetic", "human")
"""Kinds of goals."""

OBSERVATIONS = (*MODES, "brief")
"""How pages are told."""


class WebShopEnv(gymnasium.Env[str, str]):
    """Shopping tasks in text: WebShop's pages, search results and rewards, without its servers.

    Actions are ``search[words]``, on any page, and ``click[text]`` of what the page shows. Anything else changes
    nothing and is marked ``info["invalid_action"]``. Buying ends the episode; its reward, 0 to 1, is that of the last
    step, and ``info["reward_parts"]`` says what it is made of.

    ``info["admissible_actions"]`` holds every click that the page takes. A search may have any words; on the start page
    a few searches made from the goal's text are offered, so that there is something to choose from.

    Args:
        data: ``generated`` plays in a small made-up shop; a path plays WebShop's own products in that folder; empty or
            None looks for the folder in ``$WEBSHOP_DATA``.
        goals: ``synthetic`` or ``human``.
        splits: ``by_product`` (no product is shared), ``paper`` or ``verl``.
        reward: ``original``, or ``value_match``, which can be reached by every goal.
        observation: ``text`` or ``text_rich``, or ``brief``, for small policies (see ``brief``).
        threshold: reward from which a purchase is a success.
        num_products: take the first so many products only; None takes all.
        split: The split that ``reset`` without a task draws from.
        index: ``exact`` ranks as WebShop's Lucene does. ``tantivy``, for millions of products, is not Lucene-exact:
            results are not comparable with those of others, and the manifest says so.

    >>> env = WebShopEnv()
    >>> observation, info = env.reset(options={"task": env.tasks("train")[0]})
    >>> observation.split(" [SEP] ")[:2], info["admissible_actions"][0][:7]
    (['WebShop', 'Instruction:'], 'search[')
    >>> env.step("search[bath towel]")[0].split(" [SEP] ")[3]
    'Page 1 (Total results: 16)'

    Raises:
        ConfigError: an argument makes no sense.
        DataError: the data are missing, damaged or too few.
    """

    def __init__(
        self,
        data: str | None = "generated",
        goals: str = "synthetic",
        splits: Scheme = "by_product",
        reward: Variant = "original",
        observation: Mode | Literal["brief"] = "text",
        threshold: float = 1.0,
        num_products: int | None = None,
        split: str = "train",
        index: IndexKind = "exact",
    ) -> None:
        _one_of("goals", goals, KINDS)
        _one_of("splits", splits, SCHEMES)
        _one_of("reward", reward, VARIANTS)
        _one_of("observation", observation, OBSERVATIONS)
        _one_of("index", index, INDEXES)
        if not 0 < threshold <= 1:
            raise ConfigError(f"expected a threshold above 0 and at most 1, got {threshold}; rewards are 0 to 1")
        if num_products is not None and num_products < 1:
            raise ConfigError(f"expected num_products of at least 1, got {num_products}; raise it or leave it out")
        self.observation_space = UnicodeText(1_000_000)
        self.action_space = UnicodeText()
        self._shop, self._splits = open_shop(data, goals=goals, splits=splits, num_products=num_products, index=index)
        self._variant: Variant = reward
        self._mode: Mode | Literal["brief"] = observation
        self._threshold = threshold
        self._split = split
        self._now: Session | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start the task ``options["task"]``, or one drawn from the split ``options["split"]``.

        Raises:
            ConfigError: there is another key in ``options``.
            UnknownNameError: there is no such task or split.
        """
        super().reset(seed=seed)
        task = chosen_task(options, self.tasks, self._split, self.np_random)
        if task not in self._shop.goals:
            raise UnknownNameError(f"expected the id of a goal of this shop, got {task!r}; tasks(split) lists them")
        self._now = Session(task=task)
        return self._answer(self._now)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Search, click or buy.

        Raises:
            EnvError: the episode has not begun or has ended, or the action is no text.
        """
        now = self._current("step")
        if now.done:
            raise EnvError("expected step() before the end of the episode, got one after it; call reset() or restore()")
        if not isinstance(action, str):
            raise EnvError(
                f"expected an action of type str, got {type(action).__name__}; send search[...] or click[...]"
            )
        self._now = new = self._shop.step(now, action, self._variant)
        observation, info = self._answer(new)
        return observation, new.reward, new.done, False, info

    def snapshot(self) -> Session:
        """The session: a value of a few hundred bytes, picklable and, by ``to_json``, JSON."""
        return self._current("snapshot")

    def restore(self, snapshot: Session) -> tuple[str, dict[str, Any]]:
        """Bring a snapshot back, in any instance with the same data.

        Raises:
            SnapshotError: it is no session, or one of another shop.
        """
        if not isinstance(snapshot, Session):
            raise SnapshotError(f"expected a Session, got {type(snapshot).__name__}; restore a value of snapshot()")
        if snapshot.task not in self._shop.goals or (snapshot.asin and snapshot.asin not in self._shop.products):
            raise SnapshotError(
                f"expected a session of this shop, got one with task {snapshot.task!r} and product {snapshot.asin!r}; "
                "restore it with the same data, goals and num_products"
            )
        self._now = snapshot
        return self._answer(snapshot)

    def state_key(self) -> str:
        """Hash of the session; whether the last action meant something is no part of it."""
        return self._current("state_key").key(visited=self._mode == "text_rich")

    def tasks(self, split: str) -> tuple[str, ...]:
        """Ids of the goals of a split, always in the same shuffled order.

        Raises:
            UnknownNameError: there is no such split.
        """
        if split not in self._splits.goals:
            names = ", ".join(sorted(self._splits.goals))
            raise UnknownNameError(f"expected a split of {self._splits.scheme!r} ({names}), got {split!r}")
        return self._splits.goals[split]

    def manifest(self) -> dict[str, Any]:
        """What identifies the tasks, to be kept with results: how searches rank, and numbers and hashes of goals."""
        return manifest(self._shop, self._splits)

    def ceiling(self, split: str) -> float:
        """Share of a split's goals that can succeed at all, to be shown beside every success rate; see ``Shop``."""
        return self._shop.ceiling(self.tasks(split), self._variant, self._threshold)

    def goal(self, task: str) -> str:
        """What the shopper of a task is told, by which a goal is the same under another id.

        Raises:
            UnknownNameError: there is no such task.
        """
        if task not in self._shop.goals:
            raise UnknownNameError(f"expected the id of a goal of this shop, got {task!r}; tasks(split) lists them")
        return self._shop.goals[task].text

    def expert(self, seed: int) -> Expert:
        """A scripted shopper of the current episode, for demonstrations; see ``Expert`` for what it knows.

        Raises:
            EnvError: no episode has begun.
        """
        self._current("expert")
        return Expert(self._shop, generator(seed), lambda: self._current("expert"), self._variant)

    def _current(self, call: str) -> Session:
        if self._now is None:
            raise EnvError(f"expected reset() or restore() before {call}(), got neither; call one of them first")
        return self._now

    def _answer(self, now: Session) -> tuple[str, dict[str, Any]]:
        page, goal = self._shop.page(now), self._shop.goals[now.task]
        info: dict[str, Any] = {
            "success": now.done and now.reward >= self._threshold,
            "admissible_actions": _admissible(page, goal.text),
            "invalid_action": now.invalid,
            "task_type": self._shop.products[goal.asin].category,
            "task": now.task,
        }
        if now.done:
            info["reward_parts"] = self._shop.reward(now, self._variant).parts()
        if self._mode == "brief":
            return brief(self._shop, now), info
        return page.write(self._mode, address=now.address, visited=now.visited), info


def _admissible(page: Page, text: str) -> list[str]:
    """Clicks that the page takes, and searches on the start page; sorted. What no action can say is left out."""
    said = (what for what in page.clickables if what not in ("", "search") and "[" not in what and "\n" not in what)
    clicks = [f"click[{what}]" for what in said]
    return sorted([*clicks, *(f"search[{query}]" for query in proposals(text))] if page.search_bar else clicks)


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ConfigError(f"expected {name} to be one of {', '.join(choices)}, got {value!r}; name one of these")
