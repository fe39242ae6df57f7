"""Text to data and back by the core schema of YAML 1.2.

``1e-6`` and ``1e6`` are numbers (PyYAML alone reads both as text), only ``true`` and ``false`` are booleans (``no`` and
``off`` are words), ``1_000`` and dates are text, and a key may stand only once in a mapping.
"""

import re
from collections.abc import Hashable
from typing import Any

import yaml

from prover.errors import ConfigError

_TAG = "tag:yaml.org,2002:"
_INT = re.compile(r"^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$")
_FLOAT = re.compile(
    r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)
_WHOLE = re.compile(r"^[-+]?[0-9]+[eE]\+?[0-9]+$")


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - so the base declares it

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.MarkedYAMLError(problem=f"a key must be text, got {key!r}", problem_mark=key_node.start_mark)
            if key in seen:
                raise yaml.MarkedYAMLError(problem=f"key {key!r} stands twice", problem_mark=key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


class _Dumper(yaml.SafeDumper):
    """Quotes every text that any reader of YAML could take for something else."""


def _read_int(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    text = node.value
    return int(text, 0) if text[:2] in ("0o", "0x") else int(text)


def _read_float(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> float:
    value = float(node.value.lower().replace(".inf", "inf").replace(".nan", "nan"))
    # 1e6 is a whole number and may stand where one is asked for; above 2**53 a float no longer tells them apart.
    return int(value) if _WHOLE.match(node.value) and abs(value) < 2**53 else value


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "'" if _INT.match(text) or _FLOAT.match(text) else None
    # Line breaks of Unicode are blanks in every style but this one.
    return dumper.represent_scalar(f"{_TAG}str", text, style='"' if set(text) & set("\x85\u2028\u2029") else style)


_Loader.add_implicit_resolver(f"{_TAG}bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
_Loader.add_implicit_resolver(f"{_TAG}null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""])
_Loader.add_implicit_resolver(f"{_TAG}int", _INT, list("-+0123456789"))
_Loader.add_implicit_resolver(f"{_TAG}float", _FLOAT, list("-+.0123456789"))
_Loader.add_constructor(f"{_TAG}int", _read_int)
_Loader.add_constructor(f"{_TAG}float", _read_float)
_Dumper.add_representer(str, _write_text)


def parse(text: str, source: str) -> Any:
    """Read one YAML document.

    Args:
        text: The document.
        source: What the text is, for error messages.

    Raises:
        ConfigError: The text is not YAML, has a key twice or a key that is not text; the message says where.

    >>> parse("{lr: 1e-6, updates: 1e2, word: no, on: true}", "the example")
    {'lr': 1e-06, 'updates': 100, 'word': 'no', 'on': True}
    """
    try:
        return yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError) as error:
        words = " ".join(str(error).replace('in "<unicode string>", ', "at ").split())
        raise ConfigError(f"{source} is not valid YAML: {words}.") from None


def write(data: Any) -> str:
    """Text that ``parse`` reads back to equal data."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
