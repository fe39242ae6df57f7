"""How a config is read: strict sections, a YAML file, ``section.key=value`` overrides, and complaints in words."""

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from prover import yaml_text
from prover.errors import ConfigError


class Section(BaseModel):
    """What all sections share: they cannot be changed, know all their keys, and convert no types.

    ``"3"`` is no number, and neither is ``true``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    also_called: ClassVar[Mapping[str, str]] = {}
    """Names by which keys go elsewhere, for the "did you mean"."""


Share = Annotated[float, Field(ge=0, le=1)]
"""A part of a whole, 0 to 1."""
Count = Annotated[int, Field(ge=1)]
"""A whole number, at least 1."""
Positive = Annotated[float, Field(gt=0)]
"""A number above 0."""
NonNegative = Annotated[float, Field(ge=0)]
"""A number, at least 0."""
Seed = Annotated[int, Field(ge=0)]
"""A whole number, at least 0."""
SegmentLength = Annotated[int, Field(ge=1, le=4)]
"""Turns of a segment, 1 to 4; longer ones that a judge names are never measured."""
FilePath = Annotated[Path, Field(strict=False)]
"""A path; text is taken as one."""

Model = TypeVar("Model", bound=Section)

_EXPECTED = {
    "model_type": "expected keys with values (leave the section out for its defaults)",
    "path_type": "expected a path in text",
}


def by_kind(first: str, *others: str) -> Discriminator:
    """Chooses the variant that ``kind`` names: ``first`` without a kind, ``custom`` for a kind that is not shipped."""

    def choose(value: Any) -> str:
        kind = value.get("kind", first) if isinstance(value, Mapping) else getattr(value, "kind", "custom")
        return kind if isinstance(kind, str) and kind in (first, *others) else "custom"

    return Discriminator(choose)


def load(
    model: type[Model],
    path: Path | str | None = None,
    overrides: Sequence[str] = (),
    *,
    presets: Mapping[str, Mapping[str, Mapping[str, Any]]] | None = None,
) -> Model:
    """Read a config and check all of it.

    Args:
        model: What to read it as.
        path: YAML file; None for an empty one.
        overrides: ``section.key=value`` each, the value in YAML; a new ``kind`` starts its section afresh.
        presets: Keys of which each value names settings. What is said last wins: the settings that the file names,
            its own keys, the settings that an override names, the other overrides.

    Raises:
        ConfigError: The file cannot be read, or a key or value is wrong; the message has a line for each.
    """
    source = "config" if path is None else str(path)
    data = {} if path is None else read(path)
    for key, named in (presets or {}).items():
        data = _merged(named.get(_text(data.get(key)), {}), data)
        chosen = [word.partition("=")[2].strip() for word in overrides if word.partition("=")[0].strip() == key]
        if chosen:
            data = _merged(data, named.get(chosen[-1], {}))
    _override(data, overrides)
    return check(model, data, source)


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with others on top of them; a section of another kind replaces the one below as a whole.

    Neither is shared with the result, which overrides are written into: presets stay what they are.
    """
    merged = {key: _merged(value, {}) if isinstance(value, Mapping) else value for key, value in below.items()}
    for key, value in above.items():
        under = merged.get(key)
        if not isinstance(value, Mapping):
            merged[key] = value
        elif isinstance(under, Mapping) and value.get("kind", under.get("kind")) == under.get("kind"):
            merged[key] = _merged(under, value)
        else:
            merged[key] = _merged(value, {})
    return merged


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def read(path: Path | str) -> dict[str, Any]:
    """What a YAML file holds, unchecked.

    Raises:
        ConfigError: The file cannot be read, or it holds no mapping.
    """
    data = yaml_text.parse(_text_of(Path(path)), str(path))
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: expected sections with keys (a YAML mapping), got {type(data).__name__}.")
    return data


def check(model: type[Model], data: dict[str, Any], source: str) -> Model:
    """A model of plain data, all of which is checked.

    Args:
        model: What to read them as.
        data: Sections with keys.
        source: Where they are from, for messages.

    Raises:
        ConfigError: A key or value is wrong; the message has a line for each.
    """
    try:
        # Strict validation of JSON, not of Python objects: there a list may be a tuple and a text may be a path.
        return model.model_validate_json(json.dumps(data, default=_refuse))
    except ValidationError as error:
        problems = [_explain(model, details, data) for details in error.errors(include_url=False)]
        raise ConfigError("\n".join(f"{source}: {problem}" for problem in problems)) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"{source}: {error}.") from None


def dump(config: Section) -> str:
    """The whole config with all defaults, as YAML that ``load`` reads back to an equal one."""
    return yaml_text.write(config.model_dump(mode="json"))


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"There is no config file {path}. Give the path of a YAML file.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The config file {path} cannot be read as UTF-8 text: {error}.") from None


def _refuse(value: Any) -> Any:
    raise TypeError(f"expected texts, numbers, booleans, lists and mappings, got {value!r} ({type(value).__name__})")


def _override(data: dict[str, Any], overrides: Iterable[str]) -> None:
    """Set each ``section.key=value`` in ``data``, new kinds first."""
    pairs: list[tuple[list[str], Any]] = []
    for override in overrides:
        name, equals, text = override.partition("=")
        keys = name.strip().split(".")
        if not equals or not all(keys):
            raise ConfigError(f"Expected an override as section.key=value, got {override!r}.")
        pairs.append((keys, yaml_text.parse(text, f"The value of override {override!r}")))
    for keys, value in sorted(pairs, key=lambda pair: pair[0][-1] != "kind"):
        section = data
        for depth, key in enumerate(keys[:-1], start=1):
            below = section.setdefault(key, {})
            if not isinstance(below, dict):
                raise ConfigError(f"Override {'.'.join(keys)}: {'.'.join(keys[:depth])} has no keys of its own.")
            section = below
        if keys[-1] == "kind" and section.get("kind") != value:
            section.clear()
        section[keys[-1]] = value


def _explain(model: type[Section], details: ErrorDetails, data: Mapping[str, Any]) -> str:
    """One problem in words: where, what was expected, what was got, what to do."""
    owner, keys = _locate(model, details["loc"])
    where = ".".join(keys)
    if details["type"] == "extra_forbidden":
        return _unknown_key(model, owner, keys, data)
    if details["type"] == "missing":
        return f"{where} is missing; it has no default."
    if details["type"] == "value_error":
        message = details["msg"].removeprefix("Value error, ")
        return f"{where}: {message}." if where else f"{message}."
    message = _EXPECTED.get(details["type"], details["msg"].replace("Input should be", "expected", 1))
    return f"{where}: {message}, got {details['input']!r}."


def _variants(field: FieldInfo) -> dict[str, type[Section]]:
    """The models that a section may be read as, by tag; one without a tag if there is no choice."""
    found: dict[str, type[Section]] = {}
    for option in (field.annotation, *get_args(field.annotation)):
        tags = [extra.tag for extra in get_args(option)[1:] if isinstance(extra, Tag)]
        option = get_args(option)[0] if get_origin(option) is Annotated else option
        if isinstance(option, type) and issubclass(option, Section):
            found[tags[0] if tags else ""] = option
    return found


def _locate(model: type[Section], loc: Iterable[int | str]) -> tuple[type[Section], list[str]]:
    """The section that holds the last key of ``loc``, and the keys as they are written (without tags of variants)."""
    owner, inner, keys = model, model, list[str]()
    parts = iter(loc)
    for part in parts:
        owner = inner
        keys.append(str(part))
        variants = _variants(owner.model_fields[str(part)]) if part in owner.model_fields else {}
        if variants:
            inner = variants[""] if "" in variants else variants.get(str(next(parts, "")), owner)
    return owner, keys


def _unknown_key(model: type[Section], owner: type[Section], keys: list[str], data: Mapping[str, Any]) -> str:
    *section, key = keys
    name = ".".join(section)
    problem = f"unknown key {key!r} " + (f"in section {name!r}" if name else "at the top level")
    variants = _variants(model.model_fields[section[0]]) if section else {}
    if owner is variants.get("custom"):
        shipped = [tag for tag in variants if tag != "custom"]
        kind = data[section[0]]["kind"]
        problem += f" of kind {kind!r}, which is not one of {', '.join(shipped)}"
        if near := difflib.get_close_matches(str(kind), shipped, 1):
            return f"{problem}: did you mean kind {near[0]!r}?"
        return f"{problem}. Put arguments of your own class under {name}.options."
    for home, fields in _homes(model):
        if key in fields and home != name:
            return f"{problem}: did you mean {home}{'.' if home else ''}{key}?"
    if near := difflib.get_close_matches(key.replace("-", "_"), [*owner.model_fields, *owner.also_called], 1):
        return f"{problem}: did you mean {owner.also_called.get(near[0], near[0])!r}?"
    return f"{problem}. Valid keys: {', '.join(owner.model_fields)}."


def _homes(model: type[Section]) -> Iterator[tuple[str, set[str]]]:
    """Every section's name with its keys, the top level first."""
    yield "", set(model.model_fields)
    for name, field in model.model_fields.items():
        yield name, {key for variant in _variants(field).values() for key in variant.model_fields}
