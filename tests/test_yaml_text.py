"""YAML 1.2, as it is read and written."""

import math
import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from prover.errors import ConfigError
from prover.yaml_text import parse, write


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-6", 0.000001),
        ("1e6", 1_000_000),
        ("1E+3", 1000),
        ("1.0e3", 1000.0),
        ("-.5", -0.5),
        ("3.", 3.0),
        ("007", 7),
        ("0x1f", 31),
        ("0o17", 15),
        ("true", True),
        ("False", False),
        ("no", "no"),
        ("off", "off"),
        ("y", "y"),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("2020-01-31", "2020-01-31"),
        ("1e", "1e"),
        ("e6", "e6"),
        ("~", None),
        ("null", None),
        ("", None),
        ("'1e6'", "1e6"),
        ("[a, 1, {b: 2}]", ["a", 1, {"b": 2}]),
    ],
)
def test_scalars_are_those_of_yaml_1_2(text: str, value: Any) -> None:
    """Numbers, words and booleans are told apart by the core schema, whatever PyYAML makes of them."""
    read = parse(text, "text")
    assert read == value
    assert type(read) is type(value)


def test_a_number_beyond_exact_floats_stays_a_float() -> None:
    """A power of ten that a float cannot hold exactly is no whole number."""
    assert parse("1e300", "text") == 1e300
    assert isinstance(parse("1e300", "text"), float)
    assert parse("1e999", "text") == math.inf


def test_a_key_stands_once() -> None:
    """The second of two equal keys is refused with its place."""
    with pytest.raises(ConfigError, match=r"^the file is not valid YAML: key 'b' stands twice at line 3, column 3"):
        parse("a:\n  b: 1\n  b: 2\n", "the file")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1: x", "a key must be text, got 1 at line 1, column 1"),
        ("? [a]\n: x", "a key must be text, got ['a']"),
        ("a: [1", "line 1, column 6"),
        ("a: 1\n\tb: 2", "line 2"),
        ("a: !!python/object:os.system x", "could not determine a constructor"),
        ("a: !!int x", "invalid literal"),
        ("a: 1\n---\nb: 2", "another document"),
    ],
)
def test_broken_text_is_refused_with_its_place(text: str, words: str) -> None:
    """What is no YAML, or no YAML that a config may hold, is an error of the config."""
    with pytest.raises(ConfigError, match=re.escape(words)):
        parse(text, "the file")


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(data=PLAIN)
def test_what_is_written_is_read_back(data: Any) -> None:
    """Any plain data come back equal and of the same types."""
    assert repr(parse(write(data), "text")) == repr(data)


@given(
    text=st.sampled_from(["1e6", "1e-6", "no", "off", "1_000", "0o7", "007", "2020-01-01", "~", "", "12:30", ".5e1"])
)
def test_written_words_are_words_to_other_readers(text: str) -> None:
    """Text that looks like something else is quoted, so that readers of YAML 1.1 take it for text as well."""
    assert yaml.safe_load(write({"a": text})) == {"a": text}
