"""Methods by name: each is a set of settings, and nothing else.

A method is composed of three choices and the group's advantage:

* who points at segments (``judge``),
* how their worth is estimated (``verify``),
* what is made of the estimate (``credit``),
* what it is added to (``advantage``).

Settings beside the method win over it, so that a method can be varied. What is written here departs from the papers
where they train in another way: all methods share the rollouts, the clipped surrogate and the optimizer of this
package.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, get_args

MethodName = Literal[
    "grpo",
    "grpo_budget",
    "rloo",
    "dr_grpo",
    "gigpo",
    "critic_td",
    "vineppo",
    "spo_chain",
    "spo_tree",
    "random_segment",
    "judge_trusted",
    "prover",
    "prover_cheap",
    "prover_safe",
]

NO_JUDGE = frozenset({"grpo", "grpo_budget", "rloo", "dr_grpo", "gigpo", "critic_td"})
"""Methods that ask no judge, whichever is configured: a run can be repeated without credit by its method alone."""
_GROUP: Mapping[str, Any] = {"baseline": "mean", "std": "none", "omega": 0.0, "critic_weight": 0.0}
_PAPER: Mapping[str, Any] = {
    "verify": {
        "mode": "monte_carlo",
        "continuations": 8,
        "train_continuations": False,
        "eligible_min": 1,
        "eligible_max": 3,
        "mixed_only": True,
    },
    "credit": {"weight": 1.0, "sign": "positive", "min_z": 0.0},
    "advantage": _GROUP,
}
_EVERY_GROUP = {"mixed_only": False, "eligible_min": 0, "eligible_max": 1_000_000, "null_probe": 0.0}


def _with(base: Mapping[str, Any], **sections: Mapping[str, Any]) -> dict[str, Any]:
    return {name: {**base.get(name, {}), **sections.get(name, {})} for name in {**base, **sections}}


METHODS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        # GRPO (arXiv 2402.03300) without the divisor by the group's standard deviation, as the ProVer paper uses it;
        # `advantage.std=ddof1` brings it back.
        "grpo": {"advantage": _GROUP},
        # GRPO with as many turns as another run took, continuations included (`rollout.match_turns`), spent on
        # more members a group: the comparison that counts.
        "grpo_budget": {"advantage": _GROUP},
        # RLOO (arXiv 2402.14740): each member against the mean of the others.
        "rloo": {"advantage": {**_GROUP, "baseline": "rloo"}},
        # Dr. GRPO (arXiv 2503.20783): no divisor, and the loss summed over a constant length.
        "dr_grpo": {"advantage": _GROUP, "optim": {"aggregation": "dr_grpo"}},
        # GiGPO (arXiv 2505.10978), mode mean_norm: the episode's advantage plus that among visits of one state. The
        # paper adds a KL term of 0.01 and a penalty for invalid actions, which are left out here.
        "gigpo": {"advantage": {**_GROUP, "omega": 1.0, "gamma": 0.95}},
        # GRPO's advantage plus the one-step difference of a critic at every turn of every run, centred over the batch.
        # The critic is a linear head on the policy's own hidden states, fitted on earlier updates; actor-critic methods
        # train one by steps of its own, on the batch that it scores.
        "critic_td": {"advantage": {**_GROUP, "critic_weight": 1.0}},
        # VinePPO (arXiv 2410.01679): V after minus V before for every turn of every run, V by K continuations, and no
        # other advantage. The paper takes reasoning steps, K = 9 and PPO's several epochs.
        "vineppo": {
            "judge": {"kind": "every_turn", "of": "all", "length": 1, "pieces": None},
            "verify": {"mode": "monte_carlo", "continuations": 9, "train_continuations": False, **_EVERY_GROUP},
            "credit": {"weight": 1.0, "sign": "signed", "min_z": 0.0},
            "advantage": {**_GROUP, "baseline": "none"},
        },
        # SPO-chain (arXiv 2505.23564) as the ProVer paper adapts it: the stretches of the chosen success of an eligible
        # group, here of two turns each instead of cut at improbable tokens, and GRPO's advantage elsewhere.
        "spo_chain": _with(
            _PAPER,
            judge={"kind": "every_turn", "of": "shortest", "length": 2, "pieces": None},
            credit={"sign": "signed"},
        ),
        # SPO-tree (arXiv 2505.23564), adapted in the same way. The paper grows a tree of three levels, six children a
        # node, in segments of so many tokens; the value of a node is the mean of its children, and an edge earns its
        # value less its parent's, at improbable tokens only. Here the trunk is the chosen success, cut into three
        # stretches of turns; each of the three states gets six children, which are played to the end (18 runs, not
        # 216 leaves). A stretch earns the value after less that before, a child its outcome less its siblings' mean,
        # at every token; GRPO's advantage stays. Siblings are not divided by their deviation; `advantage.std` does so.
        "spo_tree": _with(
            _PAPER,
            judge={"kind": "every_turn", "of": "shortest", "length": 1, "pieces": 3},
            verify={"continuations": 6, "train_continuations": True},
            credit={"sign": "signed"},
        ),
        # The control: what verification alone is worth.
        "random_segment": _with(_PAPER, judge={"kind": "random_segment"}, verify={"null_probe": 0.0}),
        # Nobody checks the judge.
        "judge_trusted": _with(_PAPER, verify={"mode": "trust", "trusted_delta": 0.25}),
        # ProVer (arXiv 2609.36178): K = 8, lambda = 1, gains only, groups with 1 to 3 successes.
        "prover": _PAPER,
        # Few continuations and more weight: where the judge errs at random, noise averages out over groups.
        "prover_cheap": _with(_PAPER, verify={"continuations": 4}, credit={"weight": 8.0}),
        # For a judge that may be wrong in one direction: losses count as well.
        "prover_safe": _with(_PAPER, credit={"weight": 4.0, "sign": "signed", "cap": 4.0}),
    }
)
"""Settings by method."""
assert set(METHODS) == set(get_args(MethodName)), "every name has its settings"
