"""What a chat model gives as a judge's backend: answers, seconds, tokens per second, replies that keep to a schema.

Keys of the section ``backend`` follow each other as ``key=value``, e.g. ``python benchmarks/judge_backends.py
url=http://localhost:8000/v1 model=m``, or ``kind=local path=models/x constrain=true``. The records that are judged are
made up. Nothing but the figures is printed, and no key.
"""

import argparse
import asyncio
import json
import time
from collections import Counter
from dataclasses import replace

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from prover.backend_config import BackendConfig
from prover.backends.build import open_backend
from prover.chat import Answer, Ask, Message, Tool
from prover.errors import ServiceError
from prover.protocols import Backend
from prover.sections import Section, load
from prover.seeds import generator

PLACES = ("shelf", "drawer", "fridge", "table", "sink", "cupboard", "stove", "basket")
THINGS = ("mug", "apple", "knife", "plate", "cloth", "pan")


class Config(Section):
    """What the command line says."""

    backend: BackendConfig


class Verdict(BaseModel):
    """A reply that a judge could use."""

    model_config = ConfigDict(extra="forbid", strict=True)

    start: int = Field(ge=0, le=9)
    end: int = Field(ge=0, le=9)
    reason: str = Field(max_length=200)


TOOL = Tool(
    name="get_segment",
    description="Returns the turns start to end of the failed episode in full.",
    parameters={
        "type": "object",
        "properties": {"start": {"type": "integer"}, "end": {"type": "integer"}},
        "required": ["start", "end"],
    },
)


def ask_of(number: int) -> Ask:
    """Two made-up episodes of ten turns, other ones for every number, and the question where they part."""
    rng = generator(number)
    thing = THINGS[rng.integers(len(THINGS))]
    walk = [PLACES[i] for i in rng.permutation(len(PLACES))]
    lines = [f"T{turn} ACTION: go to the {place}. OBS: There is nothing on it." for turn, place in enumerate(walk)]
    won = [*lines, f"T8 ACTION: take the {thing}. OBS: You hold it.", "T9 ACTION: put it down. OBS: Done."]
    lost = [*lines[:4], *(f"T{turn} ACTION: wait. OBS: Time passes." for turn in range(4, 10))]
    text = "\n".join(["SUCCEEDED:", *won, "FAILED:", *lost])
    question = 'Which turns of the successful episode made the difference? Reply in JSON: {"start", "end", "reason"}.'
    messages = (
        Message(
            role="system", content="You compare episodes of an agent. Reply with one JSON object and nothing else."
        ),
        Message(role="user", content=f"{text}\n\n{question}"),
    )
    return Ask(messages=messages, max_tokens=120, seed=number)


async def outcome(backend: Backend, ask: Ask) -> Answer | str:
    """An answer, or the cause of its failure."""
    try:
        return await backend.ask(ask)
    except ServiceError as error:
        print(f"  {error}")
        return error.cause


async def measure(name: str, backend: Backend, asks: list[Ask]) -> None:
    """Ask all at once and print one line."""
    start = time.perf_counter()
    found = await asyncio.gather(*(outcome(backend, ask) for ask in asks))
    wall = time.perf_counter() - start
    answers = [item for item in found if isinstance(item, Answer)]
    failed = Counter(item for item in found if isinstance(item, str))
    if not answers:
        print(f"{name:<7} answered 0/{len(asks)}  wall {wall:.1f} s  failed {dict(failed)}")
        return
    seconds = sorted(answer.usage.seconds for answer in answers)
    read, written = (sum(getattr(a.usage, key) for a in answers) for key in ("prompt_tokens", "completion_tokens"))
    figures = {
        "cut": sum(answer.finish == "length" for answer in answers),
        "JSON": sum(is_json(answer.text) for answer in answers),
        "valid": sum(is_valid(answer.text) for answer in answers),
        "calls": sum(bool(answer.tool_calls) for answer in answers),
    }
    print(
        f"{name:<7} answered {len(answers)}/{len(asks)}  wall {wall:.1f} s  median {seconds[len(seconds) // 2]:.1f} s  "
        f"read {read}  written {written}  {written / wall:.1f} tokens/s  "
        + "  ".join(f"{key} {count}" for key, count in figures.items())
        + f"  failed {dict(failed)}"
    )


def is_json(text: str) -> bool:
    """Whether the whole text is JSON."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def is_valid(text: str) -> bool:
    """Whether the whole text is a verdict."""
    try:
        Verdict.model_validate_json(text)
    except ValidationError:
        return False
    return True


async def main() -> None:
    """Ask in three ways: as it is, with a schema, with a tool."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("keys", nargs="+", metavar="KEY=VALUE")
    parser.add_argument("--asks", type=int, default=8)
    options = parser.parse_args()
    config = load(Config, None, [f"backend.{key}" for key in options.keys])
    backend = open_backend(config.backend)
    asks = [ask_of(number) for number in range(options.asks)]
    print(backend.name)
    try:
        await measure("plain", backend, asks)
        await measure("schema", backend, [replace(ask, schema=Verdict.model_json_schema()) for ask in asks])
        await measure("tools", backend, [replace(ask, tools=(TOOL,)) for ask in asks])
        print({key: round(value, 3) for key, value in backend.ledger.snapshot().items()})
    finally:
        await backend.aclose()


if __name__ == "__main__":
    asyncio.run(main())
