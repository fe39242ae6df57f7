"""A group as the judge sees it: neutral labels in a drawn order, one success in full, previews of the failures.

What an episode says is data of unknown origin. It is printed on one line between two lines with a random word that no
text of the group contains, and what a chat template would take for a marker is written with other brackets.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from string import ascii_uppercase

from prover.records import Group, Trajectory
from prover.seeds import derive, generator
from prover.segments import choose_success

_TAG = re.compile(r"<([/|\uff5c]?[A-Za-z_][^<>]{0,60})>")
"""``<|im_start|>``, ``</s>``, ``<start_of_turn>``, ``<tool_call>`` and whatever else looks like one."""
_BRACKET = re.compile(r"\[(/?[A-Z_]{3,30})\]")
"""``[INST]`` and its kin."""
_CUTS = (400, 200, 100, 50, 20)
"""Longest texts that are tried in turn, in characters, until the whole fits."""
_OPENING = 2000
_LAST_TURNS = 3


def harmless(text: str, limit: int) -> str:
    r"""The text on one line, without markers and control characters, its middle left out beyond ``limit`` characters.

    >>> harmless("You see a mug.\n<|im_start|>system", 400)
    'You see a mug. / (|im_start|)system'
    >>> harmless("0123456789" * 10, 10)
    '01234 [90 characters left out] 56789'
    """
    text = " / ".join(line.strip() for line in text.splitlines() if line.strip())
    text = "".join(" " if unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") else sign for sign in text)
    text = _BRACKET.sub(r"(\1)", _TAG.sub(r"(\1)", text))
    if len(text) <= limit:
        return text
    # Cutting a little would only make the text longer.
    left, right = text[: limit - limit // 2], text[len(text) - limit // 2 :]
    shorter = f"{left} [{len(text) - limit} characters left out] {right}"
    return shorter if len(shorter) < len(text) else text


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What one judgement shows, and how its labels map to members."""

    group: Group
    chosen: int
    """Index of the success that is shown in full."""
    order: tuple[int, ...]
    """Index of the trajectory at each place; the first place is labelled ``A``."""
    boundary: str
    """Word that opens and closes blocks of records; none of them contains it."""

    @classmethod
    def draw(cls, group: Group, seed: int, *, reverse: bool = False) -> "View":
        """Draw order and boundary from a seed; ``reverse`` turns that order round."""
        order = tuple(int(place) for place in generator(seed, 0).permutation(len(group.trajectories)))
        texts = [text for run in group.trajectories for turn in run.turns for text in (turn.text, turn.result)]
        texts += [run.opening for run in group.trajectories] + [t.action for r in group.trajectories for t in r.turns]
        tries = 0
        while any((boundary := f"{derive(seed, 1, tries):016x}"[:12]) in text for text in texts):
            tries += 1
        return cls(
            group=group, chosen=choose_success(group), order=order[::-1] if reverse else order, boundary=boundary
        )

    @property
    def success(self) -> Trajectory:
        """The success that is shown in full."""
        return self.group.trajectories[self.chosen]

    @property
    def labels(self) -> dict[str, int]:
        """Label of every trajectory, in the order shown, and the index that it stands for."""
        return {_label(place): index for place, index in enumerate(self.order)}

    @property
    def failures(self) -> dict[str, Trajectory]:
        """Label and trajectory of every failure, in the order shown."""
        runs = self.group.trajectories
        return {label: runs[index] for label, index in self.labels.items() if not runs[index].success}

    @property
    def label(self) -> str:
        """Label of the success that is shown in full."""
        return _label(self.order.index(self.chosen))

    def text(self, budget: int) -> str:
        """The whole view.

        Args:
            budget: Characters that it should fit into. Texts are cut shorter and shorter, then previews are left out
                from the end (at least one stays); every action of the success stays in any case.
        """
        for cut in _CUTS:
            parts = self._parts(cut)
            if sum(map(len, parts.values())) + len(parts) <= budget:
                break
        for label in list(self.failures)[:0:-1]:
            if sum(map(len, parts.values())) + len(parts) <= budget:
                break
            parts[label] = f"The preview of run {label} is left out."
        return "\n".join(parts.values())

    def block(self, title: str, lines: list[str]) -> str:
        """Lines of records between two lines that hold the boundary."""
        return "\n".join([f"--- {self.boundary} {title}", *lines, f"--- {self.boundary} end"])

    def turn(self, run: Trajectory, turn: int, cut: int) -> str:
        """One turn on one line; the number printed is the one that a reply names."""
        said = run.turns[turn]
        note = " (no valid action)" if said.invalid is not None or said.truncated else ""
        parts = [f"turn {turn}{note} | action: {harmless(said.action or said.text, cut)}"]
        if said.action and said.text.strip() != said.action:
            parts.append(f"wrote: {harmless(said.text, cut)}")
        return " | ".join([*parts, f"result: {harmless(said.result, cut)}"])

    def _parts(self, cut: int) -> dict[str, str]:
        """The header (under no label) and one block a run, other successes left out."""
        runs = self.group.trajectories
        opening = self.block("start of every run", [harmless(self.success.opening, min(_OPENING, 5 * cut))])
        parts = {"": "\n".join([opening, "Runs:", *self._outcomes()])}
        for label, index in self.labels.items():
            if index == self.chosen:
                lines = [self.turn(self.success, turn, cut) for turn in range(self.success.n_turns)]
                parts[label] = self.block(f"run {label}, succeeded, all turns", lines)
            elif not runs[index].success:
                parts[label] = self.block(f"run {label}, failed, preview", list(self._preview(runs[index], cut)))
        return parts

    def _outcomes(self) -> Iterator[str]:
        for label, index in self.labels.items():
            run = self.group.trajectories[index]
            shown = " (shown in full)" if index == self.chosen else " (not shown)" if run.success else ""
            yield f"run {label}: {'succeeded' if run.success else 'failed'}, turns 0..{run.n_turns - 1}{shown}"

    def _preview(self, run: Trajectory, cut: int) -> Iterator[str]:
        yield "actions: " + "; ".join(f"{t} {harmless(turn.action, min(cut, 80))}" for t, turn in enumerate(run.turns))
        parted = first_divergence(self.success, run)
        if parted is None:
            yield f"did as run {self.label} as far as it went"
        else:
            there = harmless(self.success.turns[parted].action, cut) if parted < self.success.n_turns else "nothing"
            yield f"parts from run {self.label} at turn {parted}, where {self.label} did: {there}"
            yield self.turn(run, parted, cut // 2)
        last = range(max(run.n_turns - _LAST_TURNS, 0), run.n_turns)
        yield f"ended ({run.end}) with"
        yield from (self.turn(run, turn, cut // 2) for turn in last)


def first_divergence(success: Trajectory, failure: Trajectory) -> int | None:
    """First turn of the failure whose action is not the success's; None if it did the same as far as it went."""
    ours = [turn.action for turn in success.turns]
    for turn, theirs in enumerate(failure.turns):
        if turn >= len(ours) or theirs.action != ours[turn]:
            return turn
    return None


def _label(place: int) -> str:
    letter = ascii_uppercase[place % 26]
    return letter if place < 26 else f"{letter}{place // 26}"
