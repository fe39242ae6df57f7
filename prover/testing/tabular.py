"""TabularPolicy: looks up what it saw last and draws an action from the row that it finds."""

from collections.abc import Mapping, Sequence

import numpy as np

from prover.errors import ConfigError
from prover.records import Completion, Request
from prover.seeds import generator
from prover.testing.codec import ToyCodec


class TabularPolicy:
    """Draws among ``actions`` with the probabilities that a table has for the last observation.

    >>> import asyncio
    >>> from prover.records import Sampling
    >>> policy = TabularPolicy(["left", "right"], {"Where to?": [0.0, 1.0]})
    >>> request = Request(ids=policy.codec.opening("", "Where to?"), sampling=Sampling(), seed=0)
    >>> policy.codec.decode(asyncio.run(policy.generate([request]))[0].ids)
    'right'
    """

    def __init__(self, actions: Sequence[str], table: Mapping[str, Sequence[float]], *, version: int = 0) -> None:
        self.codec = ToyCodec()
        self.version = version
        self.context_limit = 1_000_000
        self.table = table
        self._replies = [self.codec.action(action) for action in actions]

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """One draw per request; its log-probability stands at the first token.

        Raises:
            ConfigError: the table has no row for an observation.
        """
        return [self._draw(request) for request in requests]

    def _draw(self, request: Request) -> Completion:
        observation = self.codec.decode(request.ids).removesuffix("\n>").rpartition("\n")[2]
        if observation not in self.table:
            raise ConfigError(f"expected a row of the table for {observation!r}, got {len(self.table)} others; add one")
        row = np.asarray(self.table[observation], np.float64)
        choice = int(generator(request.seed).choice(len(row), p=row))
        ids = self._replies[choice]
        logprobs = (float(np.log(row[choice])), *(0.0,) * (len(ids) - 1))
        return Completion(ids=ids, logprobs=logprobs, finish="stop")
