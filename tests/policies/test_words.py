"""Tests of the word-level tokenizer."""

import json
import lzma
import re
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from prover.envs.webshop import WebShopEnv
from prover.errors import TokenError
from prover.policies.codec import HFCodec
from prover.policies.words import build_call_tokenizer, build_tokenizer, build_word_tokenizer

OPENING = (
    "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly around you, you see a "
    "bed 1, a cabinet 3, a fridge 1, and a shelf 2.\n\nYour task is to: put a clean mug in cabinet."
)
COMMANDS = [
    "go to cabinet 3",
    "take apple 1 from fridge 1",
    "move apple 1 to shelf 2",
    "open drawer 1",
    "close drawer 1",
    "clean mug 1 with sinkbasin 1",
    "heat mug 1 with microwave 1",
    "cool mug 1 with fridge 1",
    "use desklamp 1",
    "toggle desklamp 1",
    "look",
    "inventory",
    "help",
    "examine shelf 1",
    "slice apple 1 with knife 1",
]


def test_commands_read_back_exactly() -> None:
    """Every command decodes to itself and ends with the one end token."""
    codec = HFCodec(build_word_tokenizer([OPENING, *COMMANDS]))
    for command in COMMANDS:
        ids = codec.action(command)
        assert codec.decode(ids) == command
        assert ids[-1] in codec.eos_ids
    assert len(codec.action("go to cabinet 3")) == 3
    assert len(codec.action("take apple 1 from fridge 1")) == 5


def test_every_command_of_stock_games_reads_back(shared: Path) -> None:
    """All admissible commands of recorded ALFWorld episodes are said exactly."""
    with lzma.open(shared / "data" / "alfworld" / "alfworld_traces_a.jsonl.xz", "rt", encoding="utf-8") as lines:
        episodes = [json.loads(line) for line in islice(lines, 60)]
    commands = {command for one in episodes for step in one.get("steps", ()) for command in step["admissible_commands"]}
    codec = HFCodec(build_word_tokenizer(commands))
    assert len(commands) > 1000
    assert [command for command in commands if codec.decode(codec.action(command)) != command] == []


def test_numbered_things_are_one_token_and_empty_words_none() -> None:
    """The opening of a game shrinks to its things and the words of the task."""
    tokenizer = build_word_tokenizer([OPENING])
    assert tokenizer.tokenize(OPENING) == [
        "bed 1",
        "cabinet 3",
        "fridge 1",
        "shelf 2",
        "put",
        "clean",
        "mug",
        "cabinet",
    ]


@pytest.mark.parametrize(
    ("observation", "tokens"),
    [
        ("You arrive at fridge 1. The fridge 1 is closed.", ["arrive", "fridge 1", "fridge 1", "closed"]),
        ("On the shelf 2, you see nothing.", ["shelf 2", "nothing"]),
        ("You pick up the apple 1 from the fridge 1.", ["pick", "up", "apple 1", "from", "fridge 1"]),
        ("Nothing happens.", ["nothing", "happens"]),
    ],
)
def test_observations_keep_what_carries_meaning(observation: str, tokens: list[str]) -> None:
    """Names, numbers, verbs and states stay; articles, punctuation and case go."""
    assert build_word_tokenizer([observation]).tokenize(observation) == tokens


def test_neighbours_of_seen_numbers_are_known() -> None:
    """A name seen with 3 is known with 1 to 3, and with nothing above; without closure only as seen."""
    tokens = build_word_tokenizer(["go to cabinet 3", "mug 1"]).get_vocab()
    assert {token for token in tokens if token.startswith("cabinet")} == {"cabinet 1", "cabinet 2", "cabinet 3"}
    assert "mug 2" not in tokens
    seen = build_word_tokenizer(["go to cabinet 3"], closure=False).get_vocab()
    assert {token for token in seen if token.startswith("cabinet")} == {"cabinet 3"}


def test_vocabulary_does_not_depend_on_the_order_of_texts() -> None:
    """The same texts in any order give the same ids."""
    assert build_word_tokenizer(COMMANDS).get_vocab() == build_word_tokenizer(reversed(COMMANDS)).get_vocab()


def test_dropped_words_are_a_choice() -> None:
    """Own words may be dropped, at word boundaries only; with none, all words stay."""
    tokenizer = build_word_tokenizer(["the theme of a day"], drop=["the", "of a"])
    assert tokenizer.tokenize("the theme of a day") == ["theme", "day"]
    assert build_word_tokenizer(["the end"], drop=[]).tokenize("the end") == ["the", "end"]


def test_unknown_words_are_marked() -> None:
    """A word outside the vocabulary becomes the unknown token, the rest stays."""
    assert build_word_tokenizer(["mug 1"]).tokenize("mug 1 zebra") == ["mug 1", "<unk>"]


def test_control_tokens_in_an_observation_do_not_act() -> None:
    """Text that spells a control token yields none of its ids."""
    tokenizer = build_word_tokenizer(["mug 1 eos act"])
    codec = HFCodec(tokenizer)
    controls = set(tokenizer.convert_tokens_to_ids(["<pad>", "<bos>", "<eos>", "<act>"]))
    act = tokenizer.convert_tokens_to_ids("<act>")
    assert controls & set(codec.reply("mug 1 <eos> <act>", closed=True)[:-1]) == set()
    assert codec.reply("mug 1", closed=True)[-1] == act
    assert codec.reply("mug 1", closed=False) == [tokenizer.eos_token_id, *codec.reply("mug 1", closed=True)]
    assert codec.opening("", "mug 1") == [tokenizer.bos_token_id, *tokenizer.encode("mug 1"), act]


def test_folder_loads_with_the_standard_class(tmp_path: Path) -> None:
    """The saved folder is an ordinary tokenizer of transformers, template included."""
    tokenizer = build_word_tokenizer([OPENING, *COMMANDS])
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    before, after = HFCodec(tokenizer), HFCodec(loaded)
    assert after.opening("", OPENING) == before.opening("", OPENING)
    assert after.reply("Nothing happens.", closed=False) == before.reply("Nothing happens.", closed=False)
    assert [after.action(command) for command in COMMANDS] == [before.action(command) for command in COMMANDS]
    assert after.eos_ids == before.eos_ids
    assert after.decode(after.action("go to cabinet 3")) == "go to cabinet 3"


SMALL = Path(__file__).parents[2] / "prover" / "policies" / "small"
PAGE = 'WebShop [SEP] Page 1 [SEP] B09KP78G37 [SEP] Bath Towel, 28" x 28" [SEP] $16.99 to $26.99 [SEP] Next >'
CALLS = [
    "search[bath towel]",
    "search[women's 5.5 wide sandals, black & white]",
    "click[b09kp78g37]",
    'click[28" x 28"]',
    "click[a01#black]",
    "click[5.5 x 12]",
    "click[10 | 12]",
    "click[x-large (king)]",
    "click[< prev]",
    "click[next >]",
    "click[-]",
    "click[65x43\xa0cm]",
    "click[\u00f8 10 cm]",
]


def test_calls_read_back_exactly() -> None:
    """Brackets, quotes, slashes, hyphens and blanks come back where they were; one end token ends the call."""
    codec = HFCodec(build_call_tokenizer([PAGE, *CALLS]))
    for call in CALLS:
        ids = codec.action(call)
        assert codec.decode(ids) == call
        assert ids[-1] in codec.eos_ids
    assert len(codec.action("click[b09kp78g37]")) == 4


def test_a_page_is_told_in_the_words_of_its_calls() -> None:
    """Punctuation of a page is left out; ids, options and numbers are the tokens that a call copies."""
    tokenizer = build_call_tokenizer([PAGE, *CALLS])
    assert tokenizer.tokenize(PAGE) == [
        *("webshop", "sep", "page", "1", "sep", "b09kp78g37", "sep", "bath", "towel", "28", "x", "28", "sep"),
        *("16", "99", "to", "26", "99", "sep", "next"),
    ]
    option = [token for token in tokenizer.tokenize('click[28" x 28"]') if token.isalnum()]
    assert option == ["28", "x", "28"]


def test_words_that_were_never_seen_can_be_said() -> None:
    """A new id or option is spelled, and reads back."""
    tokenizer = build_call_tokenizer(["bath", *CALLS])
    codec = HFCodec(tokenizer)
    for call in ("click[b0zzzz9999]", "search[bathrobe]", "click[1/2-inch]"):
        assert codec.decode(codec.action(call)) == call
    assert len(tokenizer.tokenize("bathrobe")) == 5
    with pytest.raises(TokenError, match="vocabulary can say"):
        codec.action("click[\u4e00]")


_ARGUMENTS = st.text(st.sampled_from("ab1 -\"'#/|.,()&<>+:\u00f8"), min_size=1, max_size=12)


@given(st.sampled_from(["click", "search"]), _ARGUMENTS.map(lambda text: " ".join(text.split())).filter(bool))
def test_any_argument_reads_back(verb: str, argument: str) -> None:
    """Whatever stands between the brackets comes back character by character."""
    codec = HFCodec(build_call_tokenizer(CALLS))
    call = f"{verb}[{argument}]".lower()
    assert codec.decode(codec.action(call)) == call


def test_every_call_of_the_made_up_shop_reads_back() -> None:
    """All admissible actions of a walk through the shop, with the words of other goals' pages."""
    env = WebShopEnv()

    def walk(split: str) -> tuple[set[str], set[str]]:
        texts, calls = set(), set()
        for seed, task in enumerate(env.tasks(split)[:40]):
            text, info = env.reset(options={"task": task})
            player, over = env.expert(seed), False
            while not over:
                texts.add(text)
                calls |= set(info["admissible_actions"])
                text, _, over, _, info = env.step(player.act(text, info))
        return texts, calls

    codec = HFCodec(build_tokenizer(*walk("train")))
    _, calls = walk("test")
    assert len(calls) > 200
    assert [call for call in calls if codec.decode(codec.action(call)) != call] == []


def test_every_click_of_the_original_shop_reads_back(shared: Path) -> None:
    """All product ids and option values of WebShop's 1000 products, from few words, up to runs of blanks."""
    env = WebShopEnv(data=str(shared / "data" / "webshop"))
    values = {value for product in env._shop.products.values() for _, listed in product.options for value in listed}
    calls = {f"click[{asin.lower()}]" for asin in env._shop.products} | {f"click[{value}]" for value in values}
    codec = HFCodec(build_call_tokenizer(CALLS))
    assert len(calls) > 2900
    said = {call: codec.decode(codec.action(call)) for call in calls}
    assert {call for call, text in said.items() if text != re.sub(" +", " ", call)} == set()
    assert sum(text != call for call, text in said.items()) == 8, "values with two blanks in a row"


def test_actions_decide_the_tokenizer() -> None:
    """Calls get brackets; commands, and a mixture of both, get words."""
    assert "click[\uffed" in build_tokenizer([PAGE], ["click[buy now]"]).get_vocab()
    commands = build_tokenizer([OPENING], COMMANDS)
    assert commands.backend_tokenizer.to_str() == build_word_tokenizer([OPENING, *COMMANDS]).backend_tokenizer.to_str()
    assert "cabinet 3" in build_tokenizer([OPENING], ["go to cabinet 3", "click[x]"]).get_vocab()


def test_the_shipped_tokenizer_is_made_of_its_own_words() -> None:
    """Household texts give the tokenizer that the shipped policy was trained with, to the last byte."""
    shipped = json.loads((SMALL / "tokenizer.json").read_text())
    words = [word for word in shipped["model"]["vocab"] if not word.startswith("<")]
    assert json.loads(build_tokenizer(words, COMMANDS[:3]).backend_tokenizer.to_str()) == shipped
