"""Tests of the store of attention caches."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from prover.policies.prefixes import Prefix, PrefixStore

IDS = st.lists(st.sampled_from([0, 1, 255, 256, 70_000]), min_size=1, max_size=6).map(tuple)


def prefix(length: int, floats: int = 1) -> Prefix:
    """An entry of ``4 * floats`` bytes."""
    return Prefix(length=length, tensors=(torch.zeros(floats),))


def filled(*sequences: tuple[int, ...], truncates: bool = True) -> PrefixStore:
    """A store that has seen these sequences."""
    store = PrefixStore(1 << 20, truncates=truncates)
    for ids in sequences:
        store.add(ids, prefix(len(ids)))
    return store


def length(store: PrefixStore, ids: tuple[int, ...]) -> int:
    """How much of ``ids`` the store knows."""
    found = store.find(ids)
    return found.length if found else 0


def test_continuation_finds_all_it_continues() -> None:
    """A prompt that goes on from a cached sequence finds the whole of it."""
    assert length(filled((5, 6, 7)), (5, 6, 7, 8, 9)) == 3


def test_branch_finds_what_it_shares() -> None:
    """A prompt that leaves a cached sequence in its middle finds the common beginning."""
    assert length(filled((5, 6, 7, 8)), (5, 6, 9, 9)) == 2


def test_one_token_is_left_to_compute() -> None:
    """A prompt that is known as a whole still leaves its last token, which yields the logits."""
    assert length(filled((5, 6, 7)), (5, 6, 7)) == 2
    assert length(filled((5,)), (5,)) == 0


def test_unrelated_prompt_finds_nothing() -> None:
    """No common beginning means no prefix."""
    assert filled((5, 6)).find((6, 5)) is None
    assert PrefixStore(100).find((1, 2)) is None


def test_bytes_of_ids_are_not_confused() -> None:
    """Ids that share bytes, such as 1 and 257, are different tokens."""
    assert length(filled((257, 3)), (256, 3, 4)) == 0
    assert length(filled((1, 258)), (1, 259, 9)) == 1


@given(stored=st.lists(IDS, max_size=8), wanted=IDS)
def test_cut_prefix_is_the_longest_of_all(stored: list[tuple[int, ...]], wanted: tuple[int, ...]) -> None:
    """Where caches may be cut, the longest common beginning with any sequence ever added is found."""

    def shared(a: tuple[int, ...]) -> int:
        n = 0
        while n < min(len(a), len(wanted) - 1) and a[n] == wanted[n]:
            n += 1
        return n

    assert length(filled(*stored), wanted) == max(map(shared, stored), default=0)


@given(stored=st.lists(IDS, max_size=8), wanted=IDS)
def test_whole_prefix_is_the_longest_of_all(stored: list[tuple[int, ...]], wanted: tuple[int, ...]) -> None:
    """Where caches may not be cut, the longest sequence that begins the prompt is found."""
    whole = [len(ids) for ids in stored if len(ids) < len(wanted) and wanted[: len(ids)] == ids]
    assert length(filled(*stored, truncates=False), wanted) == max(whole, default=0)


def test_longer_sequence_replaces_its_beginning() -> None:
    """An entry that can be cut serves for all its beginnings, which therefore leave."""
    store = filled((1, 2), (1, 2, 3))
    assert (len(store), store.nbytes) == (1, 4)
    assert store.covers((1, 2))
    assert not store.covers((1, 2, 3, 4))


def test_states_of_exact_length_stay_beside_each_other() -> None:
    """Recurrent states of an earlier turn are needed for branches, so they stay."""
    store = filled((1, 2), (1, 2, 3), truncates=False)
    assert len(store) == 2
    assert length(store, (1, 2, 9)) == 2
    assert not store.covers((1,))


def test_least_recently_used_leaves_first() -> None:
    """Over budget, the entry that was not asked for longest goes."""
    store = PrefixStore(12)
    for first in (1, 2, 3):
        store.add((first, 0), prefix(2))
    assert length(store, (1, 0, 5)) == 2
    store.add((4, 0), prefix(2))
    assert [length(store, (first, 0, 5)) for first in (1, 2, 3, 4)] == [2, 0, 2, 2]
    assert store.nbytes == 12


def test_entry_over_budget_is_not_kept() -> None:
    """What alone exceeds the budget pushes nothing out."""
    store = PrefixStore(8)
    store.add((1,), prefix(1))
    store.add((2, 3), prefix(2, floats=3))
    assert length(store, (1, 9)) == 1
    assert length(store, (2, 3, 9)) == 0


def test_clear_forgets_everything() -> None:
    """After new weights nothing is found."""
    store = filled((1, 2))
    store.clear()
    assert (store.find((1, 2, 3)), len(store), store.nbytes) == (None, 0, 0)
