"""What can be measured: chance, an environment's expert, a policy on disk, a run, a config, a chat model.

``--policy`` names one of them; see ``contender``.
"""

import json
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

from prover import build, preflight, sections, yaml_text
from prover.backend_config import BackendConfig
from prover.config import FormatConfig, PolicyConfig, RunConfig, TranscriptConfig, load_config
from prover.errors import DataError, UnknownNameError
from prover.sections import Count, Section

_WAYS = "random, expert, default, the folder of a model, the folder of a run, or a YAML file with a section `policy`"

_SERVICE = {"concurrency", "deadline_s", "timeout_s", "retries", "key_env"}
_SERVICE |= {"budget_tokens", "budget_cost", "price_prompt", "price_reply"}
"""Keys of a backend that change what an answer costs, and not the answer."""


class ApiPolicyConfig(Section):
    """A chat model that plays by text."""

    kind: Literal["api"] = "api"
    backend: BackendConfig
    """The model, where it runs, and its budget."""
    max_reply_tokens: Count = 512
    """Limit of one reply, in tokens."""


class ApiConfig(Section):
    """A YAML file that names a chat model to measure."""

    policy: ApiPolicyConfig
    format: FormatConfig = FormatConfig(kind="think_action")
    transcript: TranscriptConfig = TranscriptConfig()


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """What is measured, before anything is loaded."""

    name: str
    """For tables and file names."""
    kind: Literal["random", "expert", "hf", "api"]
    fingerprint: str
    """Equal for equal weights, or for the same model under the same settings."""
    path: Path | None = None
    """Folder of the weights."""
    run: bool = False
    """Whether the config is that of a training run, whose context was as long as its episodes needed."""
    config: RunConfig | ApiConfig | None = None
    """Its own rules: decoding, lengths, format and transcript come before those of a suite."""

    @property
    def sampled(self) -> bool:
        """Whether a temperature means anything to it."""
        return self.kind in ("hf", "api")

    def describe(self) -> dict[str, str]:
        """What a measurement that goes on must have been begun with."""
        return {"name": self.name, "kind": self.kind, "fingerprint": self.fingerprint}

    def under(self, rules: RunConfig) -> RunConfig:
        """The config of a measurement: the rules of a suite, and what the contender's own config sets besides."""
        update: dict[str, Any] = {}
        if self.config is not None:
            own = self.config.model_fields_set if isinstance(self.config, RunConfig) else {"format", "transcript"}
            update = {part: getattr(self.config, part) for part in ("format", "transcript") if part in own}
        policy: dict[str, Any] = {}
        if isinstance(self.config, RunConfig):
            own = self.config.policy.model_fields_set - {
                "kind",
                "temperature",
                *(("context_limit",) if self.run else ()),
            }
            policy = {key: getattr(self.config.policy, key) for key in own}
        if isinstance(self.config, ApiConfig):
            policy = {"max_reply_tokens": self.config.policy.max_reply_tokens, "context_limit": 1 << 30}
        if self.path is not None:
            policy["path"] = str(self.path)
            known = _context_of(self.path)
            policy["context_limit"] = min(known, policy.get("context_limit", rules.policy.context_limit))
        return rules.model_copy(update=update | {"policy": rules.policy.model_copy(update=policy)})


def contender(spec: str) -> Contender:
    """What ``spec`` names.

    * ``random``: uniform over the admissible actions. ``expert``: the environment's own scripted player.
    * ``default``: the small policy that comes with ProVer.
    * a folder with a model, such as a checkpoint, or a run folder, whose last complete checkpoint is taken;
    * a YAML file: the config of a run, or one with ``policy: {kind: api, backend: {...}}`` for a chat model.

    Raises:
        UnknownNameError: it is none of these.
        DataError: a run has no checkpoint yet.
        ConfigError: the file is no such config, or a package is missing.
    """
    path = Path(spec)
    if spec == "random":
        return Contender(name="random", kind="random", fingerprint="random")
    if spec == "expert":
        return Contender(name="expert", kind="expert", fingerprint="expert")
    if spec == "default":
        return _weights("default", build.policy_path(PolicyConfig()))
    if (path / "config.json").is_file():
        return _weights(_name_of(path), path)
    if (path / "config.yaml").is_file():
        return _run(path)
    if path.is_file():
        return _config(path)
    raise UnknownNameError(f"expected a policy ({_WAYS}), got {spec!r}; there is nothing of that name")


def of_config(config: RunConfig) -> Contender:
    """The policy of a run's config, under its rules.

    Raises:
        DataError: its folder holds no model.
    """
    path = build.policy_path(config.policy)
    return _weights("default" if config.policy.path == "default" else _name_of(path), path, config)


def _run(path: Path) -> Contender:
    """The last complete checkpoint of a run, which plays as the run's config says."""
    done = sorted((path / "checkpoints").glob("update-*/COMPLETE"))
    if not done:
        raise DataError(f"expected a complete checkpoint in {path / 'checkpoints'}, got none; train the run on first")
    found = _weights(f"{path.name}-{done[-1].parent.name}", done[-1].parent, load_config(path / "config.yaml"))
    return replace(found, run=True)


def _config(path: Path) -> Contender:
    section = sections.read(path).get("policy")
    if isinstance(section, dict) and section.get("kind") == "api":
        config = sections.load(ApiConfig, path)
        said = config.model_dump(mode="json")
        said["policy"]["backend"] = {
            key: value for key, value in said["policy"]["backend"].items() if key not in _SERVICE
        }
        digest = blake2b(yaml_text.write(said).encode(), digest_size=8).hexdigest()
        return Contender(name=path.stem, kind="api", fingerprint=digest, config=config)
    run = load_config(path)
    return _weights(path.stem, build.policy_path(run.policy), run)


def _weights(name: str, path: Path, config: RunConfig | None = None) -> Contender:
    preflight.check_packages()
    return Contender(name=name, kind="hf", fingerprint=_fingerprint(path), path=path, config=config)


def _context_of(folder: Path) -> int:
    """Most tokens that the model can hold, if it says so."""
    said = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("max_position_embeddings")
    return said if isinstance(said, int) else 1 << 30


def _fingerprint(folder: Path) -> str:
    """Hash of the model: its config, its weights and its tokenizer."""
    found = blake2b(digest_size=8)
    for file in sorted(path for suffix in ("*.json", "*.safetensors") for path in folder.glob(suffix)):
        # What a checkpoint holds for going on with training makes no other policy.
        if file.name not in ("state.json", "optimizer.safetensors"):
            with file.open("rb") as data:
                found.update(file.name.encode())
                while block := data.read(1 << 22):
                    found.update(block)
    return found.hexdigest()


def _name_of(path: Path) -> str:
    """The folder's name, with that of its run if it is a checkpoint."""
    path = path.resolve()
    return f"{path.parents[1].name}-{path.name}" if path.parent.name == "checkpoints" else path.name
