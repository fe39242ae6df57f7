"""Search over passages: in this process, or over HTTP."""

from prover.retrieval.retriever import Hit, Passage, Retriever

__all__ = ["Hit", "Passage", "Retriever"]
