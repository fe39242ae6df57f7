"""Dense retrieval, with a tiny random encoder."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel, BertTokenizerFast

from prover.errors import ConfigError, DataError
from prover.retrieval import Passage, Retriever
from prover.retrieval.dense import DenseRetriever
from prover.seeds import generator

WORDS = ["mill", "bridge", "river", "salt", "town", "tower", "lamp", "sea", "query", "passage", ":"]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of an encoder of two layers that knows eleven words."""
    folder = tmp_path_factory.mktemp("encoder")
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    config = BertConfig(vocab_size=16, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
    model = BertModel(config)
    rng = generator(3)
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.from_numpy(rng.normal(0, 0.5, tuple(weight.shape)).astype(np.float32)))
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def corpus() -> list[Passage]:
    """Sixty passages of one to twelve words."""
    rng = generator(4)
    return [
        Passage(id=f"{n:02}", title="", text=" ".join(WORDS[i] for i in rng.integers(0, 8, 1 + n % 12)))
        for n in range(60)
    ]


def embedded(encoder: Path, text: str) -> np.ndarray:
    """Mean of the last states, divided by its length, with no padding at all."""
    ids = [2, *(5 + WORDS.index(word) for word in text.split()), 3]
    states = BertModel.from_pretrained(encoder).eval()(torch.tensor([ids])).last_hidden_state[0]
    mean = states.detach().numpy().mean(axis=0)
    return mean / np.linalg.norm(mean)


def test_scores_are_cosines(encoder: Path, corpus: Sequence[Passage]) -> None:
    """Whatever was padded beside a passage, its score is the cosine with the query, in half precision."""
    retriever = DenseRetriever(corpus, model=encoder)
    assert isinstance(retriever, Retriever)
    (hits,) = retriever.search(["river mill"], 60)
    query = embedded(encoder, "river mill")
    expected = {passage.id: float(embedded(encoder, passage.text) @ query) for passage in corpus}
    assert {hit.passage.id: hit.score for hit in hits} == pytest.approx(expected, abs=2e-3)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_a_passage_is_nearest_to_itself(encoder: Path, corpus: Sequence[Passage]) -> None:
    """Equal texts tie, and come in the order of their ids."""
    twins = [*corpus[11:20], *(Passage(id=name, title="", text="salt sea lamp town") for name in "cab")]
    (hits,) = DenseRetriever(twins, model=encoder).search(["salt sea lamp town"], 3)
    assert [hit.passage.id for hit in hits] == ["a", "b", "c"]
    assert hits[0].score == pytest.approx(1, abs=1e-3)


def test_prefixes_and_length(encoder: Path, corpus: Sequence[Passage]) -> None:
    """Prefixes stand before the texts, and what is beyond the length is not read."""
    prefixed = DenseRetriever(corpus, model=encoder, query_prefix="query : ", passage_prefix="passage : ")
    (hit,) = prefixed.search(["mill"], 1)[0]
    expected = float(embedded(encoder, f"passage : {hit.passage.text}") @ embedded(encoder, "query : mill"))
    assert hit.score == pytest.approx(expected, abs=2e-3)
    short = DenseRetriever(corpus, model=encoder, max_length=4)
    assert short.search(["mill sea salt"], 3) == short.search(["mill sea lamp"], 3)


def test_batches_and_threads_answer_as_single_queries(encoder: Path, corpus: Sequence[Passage]) -> None:
    """To the last digit."""
    retriever = DenseRetriever(corpus, model=encoder)
    queries = ["mill", "sea salt lamp", "tower", "mill", "town bridge river salt sea"] * 4
    alone = [retriever.search([query], 3)[0] for query in queries]
    assert retriever.search(queries, 3) == alone
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda query: retriever.search([query], 3)[0], queries)) == alone


def test_embeddings_are_made_once(
    encoder: Path, corpus: Sequence[Passage], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second time they are mapped from half precision on disk."""
    first = DenseRetriever(corpus, model=encoder, cache=tmp_path)
    expected = DenseRetriever(corpus, model=encoder).search(["mill"], 5)
    file = tmp_path / "retrieval" / f"dense-{first.fingerprint}" / "embeddings.npy"
    assert np.load(file).dtype == np.float16

    def fail(*_: object) -> None:
        raise AssertionError("embeddings were made")

    monkeypatch.setattr(DenseRetriever, "_made", fail)
    assert DenseRetriever(corpus, model=encoder, cache=tmp_path).search(["mill"], 5) == expected


def test_fingerprints(encoder: Path, corpus: Sequence[Passage], tmp_path: Path) -> None:
    """Corpus, weights, prefixes and length count; the name of the folder does not."""
    for file in encoder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    first = DenseRetriever(corpus, model=encoder).fingerprint
    assert DenseRetriever(corpus[::-1], model=tmp_path).fingerprint == first
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "layer_norm_eps": 1e-5}))
    others = [
        DenseRetriever(corpus, model=tmp_path),
        DenseRetriever(corpus[1:], model=encoder),
        DenseRetriever(corpus, model=encoder, query_prefix="query : "),
        DenseRetriever(corpus, model=encoder, passage_prefix="query : "),
        DenseRetriever(corpus, model=encoder, max_length=9),
    ]
    assert len({first, *(other.fingerprint for other in others)}) == 6


def test_mistakes(encoder: Path, corpus: Sequence[Passage], tmp_path: Path) -> None:
    """A folder without an encoder, and a search for no passages."""
    with pytest.raises(DataError, match="folder of an encoder"):
        DenseRetriever(corpus, model=tmp_path)
    with pytest.raises(ConfigError, match="k=0"):
        DenseRetriever(corpus, model=encoder).search(["mill"], 0)
