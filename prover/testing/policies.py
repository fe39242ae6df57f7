"""Policies without a model: one reads a script, one draws uniformly among actions."""

import math
from collections.abc import Callable, Sequence

from prover.errors import ConfigError
from prover.protocols import Codec
from prover.records import Completion, Request
from prover.seeds import generator
from prover.testing.codec import ToyCodec
from prover.testing.script import item_of, said

Reply = str | tuple[Sequence[int], Sequence[float], str] | BaseException
"""What a script holds: a text, or (ids, log-probabilities, finish), or an error to raise."""


class ScriptedPolicy:
    """Answers request after request with the next item of a script, whatever was asked.

    An item is a text (its ids come from ``codec.action``, each with log-probability 0, cut at the token limit of the
    request), a tuple (ids, log-probabilities, finish) that is passed on as it is, an exception that is raised, or a
    callable that gets the request and returns one of these. ``requests`` keeps what was asked. Choices are ignored.

    >>> import asyncio
    >>> from prover.records import Sampling
    >>> policy = ScriptedPolicy([([1, 2], [-0.5, -0.7], "length"), lambda request: "c"])
    >>> request = Request(ids=[4], sampling=Sampling(), seed=0)
    >>> [completion.ids for completion in asyncio.run(policy.generate([request, request]))]
    [(1, 2), (4, 0)]
    """

    def __init__(
        self,
        replies: Sequence[Reply | Callable[[Request], Reply]],
        codec: Codec | None = None,
        *,
        repeat: bool = False,
        version: int = 0,
        context_limit: int = 1_000_000,
    ) -> None:
        self.replies = tuple(replies)
        self.codec: Codec = codec or ToyCodec()
        self.repeat = repeat
        self.version = version
        self.context_limit = context_limit
        self.requests: list[Request] = []

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """The next items of the script.

        Raises:
            ConfigError: the script is used up and ``repeat`` is off.
        """
        return [self._answer(request) for request in requests]

    def _answer(self, request: Request) -> Completion:
        item = item_of(self.replies, len(self.requests), repeat=self.repeat, asks="requests")
        self.requests.append(request)
        reply = said(item, request)
        if isinstance(reply, str):
            written = self.codec.action(reply)
            return _completion(written, (0.0,) * len(written), None, request)
        ids, logprobs, finish = reply
        return Completion(ids=tuple(ids), logprobs=tuple(logprobs), finish=finish)


class UniformPolicy:
    """Draws uniformly among the request's choices, or among the ``actions`` it was made with, by the request's seed.

    It is uniform over whole replies at every temperature; the log-probability of a token is that of the replies that
    begin with it among those that were still open, and its support are the ids with which one of them goes on.

    >>> import asyncio
    >>> from prover.records import Sampling
    >>> policy = UniformPolicy(["ac", "b"])
    >>> request = Request(ids=[4], sampling=Sampling(), seed=0)
    >>> completion = asyncio.run(policy.generate([request]))[0]
    >>> completion.support[0], round(completion.logprobs[0], 4)
    ((1, 2), -0.6931)
    """

    def __init__(
        self,
        actions: Sequence[str] = (),
        codec: Codec | None = None,
        *,
        version: int = 0,
        context_limit: int = 1_000_000,
    ) -> None:
        self.codec: Codec = codec or ToyCodec()
        self.version = version
        self.context_limit = context_limit
        self._choices = tuple(self.codec.action(action) for action in actions)

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """One draw per request.

        Raises:
            ConfigError: a request has no choices and the policy was made without actions.
        """
        return [self._draw(request) for request in requests]

    def _draw(self, request: Request) -> Completion:
        choices = tuple(dict.fromkeys(request.choices or self._choices))
        if not choices:
            raise ConfigError("expected a request with choices, got none; give UniformPolicy a list of actions")
        ids = choices[int(generator(request.seed).integers(len(choices)))]
        logprobs: list[float] = []
        support: list[tuple[int, ...]] = []
        still_open = choices
        for depth in range(len(ids)):
            support.append(tuple(sorted({choice[depth] for choice in still_open})))
            agreeing = tuple(choice for choice in still_open if choice[: depth + 1] == ids[: depth + 1])
            logprobs.append(math.log(len(agreeing) / len(still_open)))
            still_open = agreeing
        return _completion(ids, tuple(logprobs), tuple(support), request)


def _completion(
    ids: tuple[int, ...],
    logprobs: tuple[float, ...],
    support: tuple[tuple[int, ...], ...] | None,
    request: Request,
) -> Completion:
    """The reply, cut at the token limit of its request."""
    n = request.sampling.max_tokens
    return Completion(
        ids=ids[:n],
        logprobs=logprobs[:n],
        finish="stop" if len(ids) <= n else "length",
        support=support and support[:n],
    )
