"""ScriptedBackend: a chat model that reads its answers from a script."""

from collections.abc import Callable, Sequence

from prover.chat import Answer, Ask, Usage
from prover.testing.script import item_of, said

Said = str | Answer | BaseException
"""What a script holds: a text, a whole answer, or an error to raise."""


class ScriptedBackend:
    """Answers ask after ask with the next item of a script.

    An item is a text, an ``Answer``, an exception that is raised, or a callable that gets the ``Ask`` and returns one
    of these. ``asks`` keeps what was asked. A text costs one token a word, its prompt likewise.

    >>> import asyncio
    >>> from prover.chat import Message
    >>> backend = ScriptedBackend(["Turn 3."])
    >>> ask = Ask(messages=(Message(role="user", content="Which turn was it?"),))
    >>> asyncio.run(backend.ask(ask)).text
    'Turn 3.'
    """

    def __init__(
        self, replies: Sequence[Said | Callable[[Ask], Said]], *, repeat: bool = False, name: str = "scripted"
    ) -> None:
        self.replies = tuple(replies)
        self.repeat = repeat
        self.name = name
        self.asks: list[Ask] = []
        self.closed = False

    async def ask(self, ask: Ask) -> Answer:
        """The next item of the script.

        Raises:
            ConfigError: the script is used up and ``repeat`` is off.
        """
        item = item_of(self.replies, len(self.asks), repeat=self.repeat, asks="asks")
        self.asks.append(ask)
        answer: str | Answer = said(item, ask)
        if isinstance(answer, Answer):
            return answer
        prompt = sum(len(message.content.split()) for message in ask.messages)
        usage = Usage(prompt_tokens=prompt, completion_tokens=len(answer.split()), calls=1)
        return Answer(text=answer, finish="stop", usage=usage)

    async def aclose(self) -> None:
        """Note that it was closed."""
        self.closed = True
