"""A chat model behind a ``Backend`` as a player: it sees messages and answers with text.

It has no token ids, so it can be evaluated and can show how tasks are solved, and cannot be trained. Every call goes
through the backend's books and retries; a call that fails for good is a ``ServiceError``, by which its episode is void.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from prover.chat import Ask, Message, Usage
from prover.formats import Parsed, TextFormat
from prover.protocols import Backend
from prover.seeds import derive
from prover.transcript import Mode

INSTRUCTION = (
    "You act in a text environment. Every message of the user is an observation; the first one also holds the task. "
    "Reply with exactly one action, written as in this example, where ACTION stands for the action:\n{example}"
)
"""System message where the config has none."""


@dataclass(slots=True, kw_only=True)
class ApiPolicy:
    """Opens a conversation for every episode."""

    backend: Backend
    text_format: TextFormat
    system: str = ""
    """System message; empty for ``INSTRUCTION``."""
    mode: Mode = "append"
    window: int = 2
    """Turns that are shown in window mode, after the first observation."""
    max_tokens: int = 512
    temperature: float = 1.0
    tell_actions: bool = False
    """Whether the admissible actions are listed below each observation, where there are any."""
    usage: Usage = field(default_factory=Usage)
    """What all conversations have cost."""

    def begin(self, seed: int) -> "ApiPlayer":
        """A conversation for one episode."""
        return ApiPlayer(self, seed)

    def opening(self) -> Message:
        """The system message."""
        written = self.text_format.write("ACTION")
        return Message(role="system", content=self.system or INSTRUCTION.format(example=written))


class ApiPlayer:
    """One conversation.

    Args:
        policy: What is common to all conversations.
        seed: Entropy of the episode; each turn's seed is derived from it.
    """

    def __init__(self, policy: ApiPolicy, seed: int) -> None:
        self._policy, self._seed = policy, seed
        self._said: list[Message] = []

    async def act(self, observation: str, info: Mapping[str, Any]) -> tuple[str, Parsed]:
        """The next reply, as it was written and as it is read.

        Raises:
            ServiceError: the model gave no answer, or the budget is used up.
        """
        policy = self._policy
        listed = info.get("admissible_actions") if policy.tell_actions else None
        told = "\n\nAdmissible actions:\n" + "\n".join(listed) if listed else ""
        self._said.append(Message(role="user", content=observation))
        shown = [policy.opening(), *self._shown()]
        shown[-1] = Message(role="user", content=observation + told)
        answer = await policy.backend.ask(
            Ask(
                messages=tuple(shown),
                max_tokens=policy.max_tokens,
                temperature=policy.temperature,
                # Servers take 32 bits at most, some of them with a sign.
                seed=derive(self._seed, len(self._said) // 2) % 2**31,
            )
        )
        policy.usage += answer.usage
        self._said.append(Message(role="assistant", content=answer.text))
        cut = answer.finish == "length"
        return answer.text, Parsed(action="", invalid="truncated") if cut else policy.text_format.read(answer.text)

    def _shown(self) -> list[Message]:
        """The conversation, or its first observation and its last turns; lists of actions are those of now only."""
        last = 2 * self._policy.window
        if self._policy.mode == "append" or len(self._said) <= last + 1:
            return self._said.copy()
        return [self._said[0], *self._said[-last:]]
