"""ScriptedJudge: a judge that reads its verdicts from a script."""

from collections.abc import Callable, Sequence

from prover.records import Group, NoProposal, Proposal
from prover.testing.script import item_of, said

Verdict = Proposal | NoProposal | BaseException
"""What a script holds: an answer, or an error to raise."""


class ScriptedJudge:
    """Answers group after group with the next item of a script.

    An item is a ``Proposal``, a ``NoProposal``, an exception that is raised, or a callable that gets the group and
    returns one of these. ``groups`` keeps what was asked.
    """

    def __init__(
        self,
        replies: Sequence[Verdict | Callable[[Group], Verdict]],
        *,
        repeat: bool = False,
        name: str = "scripted",
    ) -> None:
        self.replies = tuple(replies)
        self.repeat = repeat
        self.name = name
        self.groups: list[Group] = []

    async def propose(self, group: Group, *, seed: int) -> Proposal | NoProposal:
        """The next item of the script; the seed changes nothing.

        Raises:
            ConfigError: the script is used up and ``repeat`` is off.
        """
        item = item_of(self.replies, len(self.groups), repeat=self.repeat, asks="groups")
        self.groups.append(group)
        verdict: Proposal | NoProposal = said(item, group)
        return verdict
