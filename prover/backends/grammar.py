"""Keeps a reply to a JSON schema while it is written (xgrammar, the extra ``grammar``)."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import xgrammar
from numpy.typing import NDArray

from prover.errors import ServiceError


class Grammar:
    """Turns schemas into constraints for one tokenizer."""

    def __init__(self, tokenizer: Any, vocabulary: int, eos_ids: Iterable[int]) -> None:
        """Read the vocabulary.

        Args:
            tokenizer: A fast tokenizer of transformers.
            vocabulary: Columns of the model's logits.
            eos_ids: Tokens that end a reply.
        """
        info = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=vocabulary, stop_token_ids=sorted(eos_ids))
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1)
        # Strings of limited length may hold line breaks by its grammar, which JSON forbids.
        self._sound = np.array([min(token, default=32) >= 32 for token in info.decoded_vocab])

    def of(self, schema: Mapping[str, Any]) -> "Constraint":
        """A constraint for one reply; a schema is compiled once. No white space is left to choose.

        Raises:
            ServiceError: ``refused``: xgrammar does not know what the schema asks for.
        """
        try:
            compiled = self._compiler.compile_json_schema(json.dumps(schema), any_whitespace=False)
        except (RuntimeError, ValueError) as error:
            raise ServiceError(
                f"Expected a JSON schema that xgrammar can keep to, got {error}. Set constrain: false.", "refused"
            ) from error
        return Constraint(xgrammar.GrammarMatcher(compiled), self._sound)


class Constraint:
    """What may come next in one reply."""

    def __init__(self, matcher: Any, sound: NDArray[np.bool_]) -> None:
        self._matcher = matcher
        self._sound = sound
        self._bits = xgrammar.allocate_token_bitmask(1, len(sound))

    def allowed(self) -> NDArray[np.bool_]:
        """Which tokens may come next, shape (V,)."""
        self._matcher.fill_next_token_bitmask(self._bits)
        words = self._bits.numpy().view(np.uint8)
        return np.unpackbits(words[0], bitorder="little")[: len(self._sound)].astype(np.bool_) & self._sound

    def accept(self, token: int) -> None:
        """A token came, one that was allowed."""
        if not self._matcher.accept_token(token):
            raise ServiceError(f"Expected a token that the schema allows, got {token}.", "malformed")
