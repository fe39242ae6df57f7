"""SearchQA: questions that are answered by searching, in several turns, on passages of one's own or made-up ones."""

from prover.envs.searchqa.action import Answer, Invalid, Search, parse
from prover.envs.searchqa.env import SearchQAEnv
from prover.envs.searchqa.episode import Episode, Move
from prover.envs.searchqa.outcome import Outcome, outcome
from prover.envs.searchqa.question import Question
from prover.envs.searchqa.scoring import Score, score

__all__ = [
    "Answer",
    "Episode",
    "Invalid",
    "Move",
    "Outcome",
    "Question",
    "Score",
    "Search",
    "SearchQAEnv",
    "outcome",
    "parse",
    "score",
]
