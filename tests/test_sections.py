"""Reading a config: types, overrides and complaints, on a small config of its own."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest
from pydantic import Discriminator, Field, Tag, ValidationError

from prover.errors import ConfigError
from prover.sections import Section, check, dump, load, read


class Engine(Section):
    """A section."""

    also_called: ClassVar[Mapping[str, str]] = {"horsepower": "power"}
    power: Annotated[int, Field(ge=1)] = 90
    label: str = "x"
    place: Annotated[Path, Field(strict=False)] | None = None
    gears: tuple[float, ...] = (1.0, 2.0)


class Wheel(Section):
    """A variant."""

    kind: Literal["wheel"] = "wheel"
    size: int = 3


class Track(Section):
    """A variant."""

    kind: Literal["track"] = "track"
    links: int = 40


class Other(Section):
    """The variant for what is not known here."""

    kind: str
    options: dict[str, Any] = Field(default_factory=dict)


def tag(value: Any) -> str:
    """Name of the variant."""
    kind = value.get("kind", "wheel") if isinstance(value, Mapping) else value.kind
    return kind if kind in ("wheel", "track") else "custom"


class Car(Section):
    """A config."""

    seats: int = 4
    engine: Engine = Engine()
    drive: Annotated[
        Annotated[Wheel, Tag("wheel")] | Annotated[Track, Tag("track")] | Annotated[Other, Tag("custom")],
        Discriminator(tag),
    ] = Wheel()


def complaint(tmp_path: Path, text: str, *overrides: str) -> str:
    """What ``load`` says about a wrong config, without the name of the file."""
    file = tmp_path / "car.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(Car, file, overrides)
    return str(caught.value).replace(f"{file}: ", "")


def test_nothing_given_is_all_defaults(tmp_path: Path) -> None:
    """No file, an empty file and an empty mapping all give the defaults."""
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    assert load(Car) == load(Car, tmp_path / "empty.yaml") == Car()


def test_lists_become_tuples_and_text_a_path(tmp_path: Path) -> None:
    """What YAML cannot write is taken from what it can."""
    (tmp_path / "car.yaml").write_text("engine: {gears: [1, 2.5], place: garage/left}")
    engine = load(Car, tmp_path / "car.yaml").engine
    assert engine.gears == (1.0, 2.5)
    assert engine.place == Path("garage/left")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("seats: '3'", "seats: expected a valid integer, got '3'."),
        ("seats: true", "seats: expected a valid integer, got True."),
        ("seats: 1.5", "seats: expected a valid integer, got 1.5."),
        ("engine: {label: 3}", "engine.label: expected a valid string, got 3."),
        ("engine: {label: no, power: 0}", "engine.power: expected greater than or equal to 1, got 0."),
        ("engine: {gears: [1, x]}", "engine.gears.1: expected a valid number, got 'x'."),
        ("engine: {gears: [.inf]}", "engine.gears.0: expected a finite number, got inf."),
        ("engine: {place: 3}", "engine.place: expected a path in text, got 3."),
        ("engine: 3", "engine: expected keys with values (leave the section out for its defaults), got 3."),
        ("engine:", "engine: expected keys with values (leave the section out for its defaults), got None."),
        ("drive: {kind: track, links: x}", "drive.links: expected a valid integer, got 'x'."),
        ("[1, 2]", "expected sections with keys (a YAML mapping), got list."),
        ("engine: {label: !!binary aGk=}", "expected texts, numbers, booleans, lists and mappings, got b'hi' (bytes)."),
    ],
)
def test_values_are_taken_as_they_are_written(tmp_path: Path, text: str, words: str) -> None:
    """A value of another type or out of range is refused with its place, what was expected and what was got."""
    assert complaint(tmp_path, text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("engin: {power: 3}", "unknown key 'engin' at the top level: did you mean 'engine'?"),
        ("engine: {pwoer: 3}", "unknown key 'pwoer' in section 'engine': did you mean 'power'?"),
        ("engine: {horsepower: 3}", "unknown key 'horsepower' in section 'engine': did you mean 'power'?"),
        ("engine: {links: 3}", "unknown key 'links' in section 'engine': did you mean drive.links?"),
        ("power: 3", "unknown key 'power' at the top level: did you mean engine.power?"),
        ("engine: {seats: 3}", "unknown key 'seats' in section 'engine': did you mean seats?"),
        ("drive: {links: 3}", "unknown key 'links' in section 'drive'. Valid keys: kind, size."),
        ("drive: {kind: track, link: 3}", "unknown key 'link' in section 'drive': did you mean 'links'?"),
        (
            "drive: {kind: trak, links: 3}",
            "unknown key 'links' in section 'drive' of kind 'trak', which is not one of wheel, track: "
            "did you mean kind 'track'?",
        ),
        (
            "drive: {kind: 'my:Sledge', links: 3}",
            "unknown key 'links' in section 'drive' of kind 'my:Sledge', which is not one of wheel, track. "
            "Put arguments of your own class under drive.options.",
        ),
        ("engine: {zzz: 3}", "unknown key 'zzz' in section 'engine'. Valid keys: power, label, place, gears."),
    ],
)
def test_unknown_keys_name_section_and_nearest_key(tmp_path: Path, text: str, words: str) -> None:
    """A misspelt key, or one of another section, is refused with its section and the key that was meant."""
    assert complaint(tmp_path, text) == words


def test_all_mistakes_are_named_at_once(tmp_path: Path) -> None:
    """Every wrong key and value has its line."""
    assert complaint(tmp_path, "{seats: x, engine: {pwoer: 3}}").splitlines() == [
        "seats: expected a valid integer, got 'x'.",
        "unknown key 'pwoer' in section 'engine': did you mean 'power'?",
    ]


def test_overrides_win_and_are_read_as_yaml(tmp_path: Path) -> None:
    """An override beats the file, the last one beats the first, and its value is YAML."""
    (tmp_path / "car.yaml").write_text("{seats: 2, engine: {power: 50}}")
    car = load(
        Car, tmp_path / "car.yaml", ["engine.power=60", "engine.gears=[1, 1e1]", "engine.power=7e1", "engine.label=a=b"]
    )
    assert (car.seats, car.engine.power, car.engine.gears, car.engine.label) == (2, 70, (1.0, 10.0), "a=b")


def test_a_new_kind_starts_its_section_afresh(tmp_path: Path) -> None:
    """Keys of the old kind do not get in the way, and the order of the overrides does not matter."""
    (tmp_path / "car.yaml").write_text("drive: {kind: wheel, size: 5}")
    assert load(Car, tmp_path / "car.yaml", ["drive.links=9", "drive.kind=track"]).drive == Track(links=9)
    assert load(Car, tmp_path / "car.yaml", ["drive.kind=wheel"]).drive == Wheel(size=5)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("seats", "Expected an override as section.key=value, got 'seats'."),
        ("=3", "Expected an override as section.key=value, got '=3'."),
        ("engine..power=3", "Expected an override as section.key=value, got 'engine..power=3'."),
        ("engine.pwoer=3", "unknown key 'pwoer' in section 'engine': did you mean 'power'?"),
        ("engin.power=3", "unknown key 'engin' at the top level: did you mean 'engine'?"),
        ("engine.power=[", "The value of override 'engine.power=[' is not valid YAML"),
        ("seats.x=3", "Override seats.x: seats has no keys of its own."),
    ],
)
def test_wrong_overrides_are_refused(tmp_path: Path, override: str, words: str) -> None:
    """An override that is none, or that names no key, is refused as a key of the file is."""
    assert complaint(tmp_path, "seats: 2", override).startswith(words)


@pytest.mark.parametrize("make", ["missing", "folder", "binary"])
def test_files_that_cannot_be_read_are_named(tmp_path: Path, make: str) -> None:
    """A missing file, a folder and bytes that are no text are errors of the config."""
    path = tmp_path / "car.yaml"
    if make == "folder":
        path.mkdir()
    if make == "binary":
        path.write_bytes(b"seats: \xff")
    with pytest.raises(ConfigError, match=re.escape(str(path))):
        load(Car, path)


def test_a_loop_in_the_file_is_refused(tmp_path: Path) -> None:
    """A mapping that holds itself is an error of the config."""
    assert "Circular" in complaint(tmp_path, "engine: &a {label: *a}")


def test_sections_cannot_be_changed() -> None:
    """A loaded config stays as it was checked."""
    with pytest.raises(ValidationError, match="frozen"):
        load(Car).seats = 3  # type: ignore[misc]  # what the test is about


def test_the_whole_config_is_written_out_and_read_back(tmp_path: Path) -> None:
    """Every default stands in the written config, and reading it gives an equal one."""
    car = load(Car, overrides=["engine.place=a/b", "engine.label='1e6'", "drive={kind: 'my:Sledge', options: {a: no}}"])
    (tmp_path / "car.yaml").write_text(dump(car))
    assert load(Car, tmp_path / "car.yaml") == car
    assert "seats: 4" in dump(car)


def test_a_file_can_be_read_before_it_is_known_what_it_is(tmp_path: Path) -> None:
    """Its keys come unchecked; what is no mapping is refused; an empty file has no keys."""
    file = tmp_path / "some.yaml"
    for text, expected in (("{a: {b: 1e3}}", {"a": {"b": 1000.0}}), ("", {})):
        file.write_text(text)
        assert read(file) == expected
    file.write_text("[1, 2]")
    with pytest.raises(ConfigError, match="expected sections with keys"):
        read(file)


def test_data_can_be_checked_without_a_file() -> None:
    """The source that is given stands in the message."""
    assert check(Engine, {"power": 3}, "here").power == 3
    with pytest.raises(ConfigError, match=r"^here: power: "):
        check(Engine, {"power": 0}, "here")
