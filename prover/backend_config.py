"""What chat models are made of: one section per kind."""

import re
from typing import Annotated, Any, Literal, Self

from pydantic import Field, Tag, field_validator, model_validator

from prover.sections import Count, NonNegative, Positive, Section, by_kind

_ADDRESS = re.compile(r"https?://(?:[A-Za-z0-9_.-]+|\[[0-9a-fA-F:.]+\])(?::(?P<port>[0-9]{1,5}))?(?:/[^\s?#@]*)?")


class BackendSection(Section):
    """Keys of every chat model."""

    concurrency: Count = 16
    """Asks that are served at once; others wait."""
    deadline_s: Positive | None = 180.0
    """Longest wait for an answer, in seconds, with the wait for a free place and all retries; null waits for ever."""
    budget_tokens: Count | None = None
    """Tokens of the whole run, prompts and replies together, after which the model is not asked any more."""
    budget_cost: Positive | None = None
    """Money of the whole run, in the currency of the prices, after which the model is not asked any more."""


class HttpBackendConfig(BackendSection):
    """A server that speaks the chat completions of OpenAI: vLLM, llama.cpp, hosted services."""

    kind: Literal["http"] = "http"
    url: str
    """Where the interface begins, up to and with ``/v1``, e.g. ``http://localhost:8000/v1``."""
    model: str
    """Name of the model, as the server knows it."""
    key_env: str | None = None
    """Name of the environment variable that holds the key; null sends none. The key itself stands in no file."""
    timeout_s: Positive = 90.0
    """Longest single request, in seconds."""
    retries: Annotated[int, Field(ge=0)] = 3
    """Repetitions of a request that failed for a reason which may pass."""
    structured: Literal["json_schema", "json_object", "none"] = "json_schema"
    """How the server is asked to keep a reply to its schema."""
    tools: Literal["native", "none"] = "native"
    """Whether tools are offered to the model."""
    limit_key: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """What the server calls the limit of a reply."""
    body: dict[str, Any] = Field(default_factory=dict)
    """Fields to add to every request, e.g. ``{reasoning_effort: low}``; null leaves one out, e.g. ``{seed: null}``."""
    price_prompt: NonNegative = 0.0
    """Money per million tokens of prompts."""
    price_reply: NonNegative = 0.0
    """Money per million tokens of replies."""

    @field_validator("url")
    @classmethod
    def _plain_address(cls, url: str) -> str:
        # What was given is not repeated: it may hold a key, and messages end in logs.
        if not (found := _ADDRESS.fullmatch(url)) or int(found["port"] or 0) > 65535:
            raise ValueError(
                "expected an address such as http://localhost:8000/v1, without user, password, query or fragment; "
                "keys come from the environment, see key_env"
            )
        return url.rstrip("/")

    @field_validator("key_env")
    @classmethod
    def _names_a_variable(cls, name: str | None) -> str | None:
        if name is not None and not re.fullmatch(r"[A-Z_][A-Z0-9_]*", name):
            raise ValueError(
                "expected the name of an environment variable in capitals, such as OPENAI_API_KEY, and never the key "
                "itself"
            )
        return name

    @model_validator(mode="after")
    def _prices_for_a_budget(self) -> Self:
        if self.budget_cost is not None and not self.price_prompt and not self.price_reply:
            raise ValueError("budget_cost needs price_prompt and price_reply, in money per million tokens")
        return self


class LocalBackendConfig(BackendSection):
    """A model of transformers in this process."""

    kind: Literal["local"] = "local"
    path: str | None = None
    """Folder of the model; null asks the policy that is being trained."""
    concurrency: Count = 1
    """Asks that are served at once. They share the processor, so that more of them only take memory."""
    deadline_s: Positive | None = None
    """Longest wait for an answer, in seconds, with the wait for a free place; null waits for ever."""
    constrain: bool = False
    """Whether a reply is kept to its schema while it is written; needs ``pip install 'prover[grammar]'``."""
    tools: Literal["native", "none"] = "native"
    """Whether tools are offered to a model whose chat template knows them."""
    template: dict[str, Any] = Field(default_factory=dict)
    """Variables of the chat template, e.g. ``{enable_thinking: false}``."""


class CustomBackendConfig(BackendSection):
    """Any other chat model: ``module:Class`` or a name from the entry points ``prover.backends``."""

    kind: Annotated[str, Field(min_length=1)]
    options: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of the class."""


BackendConfig = Annotated[
    Annotated[HttpBackendConfig, Tag("http")]
    | Annotated[LocalBackendConfig, Tag("local")]
    | Annotated[CustomBackendConfig, Tag("custom")],
    by_kind("http", "local"),
]
"""A chat model, chosen by ``kind``."""
