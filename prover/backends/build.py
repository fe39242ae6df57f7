"""From a config to a chat model with its ledger. What a kind needs is imported when it is asked for."""

import inspect
from collections.abc import Mapping
from typing import Any

from prover import build
from prover.backend_config import BackendConfig, HttpBackendConfig, LocalBackendConfig
from prover.backends.ledger import Ledger, LedgerBackend
from prover.chat import Usage
from prover.errors import ConfigError
from prover.protocols import Backend
from prover.sections import Section, check

_KINDS: Mapping[str, str] = {
    "http": "prover.backends.http:HttpBackend",
    "local": "prover.backends.local:LocalBackend",
}


class _Holder(Section):
    """What messages name keys of a mapping after."""

    backend: BackendConfig


def open_backend(
    config: BackendConfig | Mapping[str, Any], policy: Any = None, *, spent: Usage | None = None
) -> LedgerBackend:
    """The configured chat model behind its ledger; nothing is asked yet.

    Args:
        config: A section, or its keys.
        policy: The policy that is being trained, for a local model without a path.
        spent: What an interrupted run has used up of the budget.

    Raises:
        ConfigError: A key is wrong, a key of the service or a package is missing, or there is no policy to ask.
        DataError: The folder of a local model holds none.
        UnknownNameError: Nothing goes by that kind.
    """
    if isinstance(config, Mapping):
        config = check(_Holder, {"backend": dict(config)}, "backend").backend
    ledger = Ledger(budget_tokens=config.budget_tokens, budget_cost=config.budget_cost, spent=spent)
    return LedgerBackend(_backend(config, policy), ledger, concurrency=config.concurrency, deadline_s=config.deadline_s)


def _backend(config: BackendConfig, policy: Any) -> Backend:
    made: Any = build.find("backend of kind", config.kind, _KINDS, "prover.backends")
    if isinstance(config, HttpBackendConfig):
        backend = made(config)
    elif isinstance(config, LocalBackendConfig):
        if config.path is not None:
            hf: Any = build.find("policy", "prover.policies.hf:HFPolicy", {}, "")
            policy = hf.load(config.path)
        elif not hasattr(policy, "open"):
            raise ConfigError(
                f"Expected a policy of kind hf to ask, got {type(policy).__name__}. Set path to the folder of a model."
            )
        backend = made(
            policy,
            name=config.path or "the policy",
            constrain=config.constrain,
            tools=config.tools == "native",
            template=config.template,
        )
    else:
        backend = build.taking(made, config.options, f"backend {config.kind!r}")(**config.options)
    if not isinstance(backend, Backend) or not inspect.iscoroutinefunction(backend.ask):
        raise ConfigError(
            f"Expected backend {config.kind!r} to have a name, `async def ask(self, ask)` and "
            f"`async def aclose(self)`, got {type(backend).__name__} without one of them."
        )
    return backend
