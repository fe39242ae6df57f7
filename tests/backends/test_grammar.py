"""Constraints by a JSON schema, over single characters."""

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from prover.backends.grammar import Constraint, Grammar
from prover.errors import ServiceError

SCHEMA = {
    "type": "object",
    "properties": {
        "start": {"type": "integer", "minimum": 3, "maximum": 12},
        "why": {"type": "string", "maxLength": 2},
    },
    "required": ["start", "why"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def words() -> PreTrainedTokenizerFast:
    """One token for every byte, and an end token."""
    made = Tokenizer(models.BPE({c: n for n, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<end>"])
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<end>")


@pytest.fixture(scope="module")
def grammar(words: PreTrainedTokenizerFast) -> Grammar:
    """Constraints for a model with 3 columns more than tokens."""
    return Grammar(words, len(words) + 3, {words.eos_token_id})


def after(constraint: Constraint, words: PreTrainedTokenizerFast, text: str) -> set[str]:
    """What may follow on a text that is written token by token."""
    for token in words.encode(text):
        assert constraint.allowed()[token]
        constraint.accept(token)
    return {words.decode([token]) for token in np.flatnonzero(constraint.allowed())}


def test_each_token_is_allowed_or_not(grammar: Grammar, words: PreTrainedTokenizerFast) -> None:
    """Only what leads to an object of the schema may come, without white space, and then only the end."""
    assert grammar.of(SCHEMA).allowed().shape == (len(words) + 3,)
    assert after(grammar.of(SCHEMA), words, "") == {"{"}
    assert after(grammar.of(SCHEMA), words, '{"') == {"s"}
    assert after(grammar.of(SCHEMA), words, '{"start": ') == set("1345 6789".replace(" ", ""))
    assert after(grammar.of(SCHEMA), words, '{"start": 1') == {"0", "1", "2"}
    assert after(grammar.of(SCHEMA), words, '{"start": 4, "why": "ab') == {'"'}
    assert after(grammar.of(SCHEMA), words, '{"start": 4, "why": "ab"}') == {"<end>"}


def test_strings_hold_no_control_characters(grammar: Grammar, words: PreTrainedTokenizerFast) -> None:
    """JSON forbids raw line breaks and their like inside strings."""
    found = after(grammar.of(SCHEMA), words, '{"start": 4, "why": "')
    assert {character for character in found if character < " "} == set()
    assert {"a", '"', " "} <= found


def test_a_schema_is_compiled_anew_for_each_reply(grammar: Grammar, words: PreTrainedTokenizerFast) -> None:
    """Two replies to one schema do not share their state."""
    first, second = grammar.of(SCHEMA), grammar.of(SCHEMA)
    after(first, words, '{"start": 3')
    assert after(second, words, "") == {"{"}


def test_what_is_not_allowed_is_refused(grammar: Grammar, words: PreTrainedTokenizerFast) -> None:
    """A token that no schema allows, and a schema that is none, are failures with words."""
    with pytest.raises(ServiceError, match="a token that the schema allows"):
        grammar.of(SCHEMA).accept(words.encode("x")[0])
    with pytest.raises(ServiceError, match="Set constrain: false") as caught:
        grammar.of({"type": "nonsense"})
    assert caught.value.cause == "refused"
