"""What a run is made of: frozen models, one per component.

Everything is checked when it is loaded, before anything heavy: unknown keys, types, ranges, and sizes that must divide
each other. A section that describes one of several things says by its ``kind`` which one it is; environments and judges
have theirs in ``env_config`` and ``judge_config``.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from prover.env_config import AlfworldEnvConfig, EnvConfig
from prover.judge_config import ContrastJudgeConfig, JudgeConfig
from prover.methods import METHODS, NO_JUDGE, MethodName
from prover.sections import Count, FilePath, NonNegative, Positive, Section, Seed, Share, dump, load


class PolicyConfig(Section):
    """The language model that acts."""

    kind: Literal["hf"] = "hf"
    path: str = "default"
    """Folder of the model; ``default`` is the small policy that comes with ProVer."""
    decoding: Literal["free", "admissible"] = "admissible"
    """``admissible`` draws each reply among the actions that the environment allows; ``free`` writes anything."""
    temperature: Positive = 1.0
    max_reply_tokens: Count = 16
    """Limit of one reply, in tokens."""
    context_limit: Count = 1024
    """Most tokens of prompt and reply together."""
    max_batch: Count = 64
    """Most requests in one forward pass."""
    cache_mb: Annotated[int, Field(ge=0)] = 512
    """Memory for attention caches kept across turns, in MiB; 0 keeps none."""

    @field_validator("kind", mode="before")
    @classmethod
    def _has_tokens(cls, kind: object) -> object:
        if kind == "api":
            raise ValueError(
                "a chat model behind an interface (api) answers with text and has no token ids, so it can be measured "
                "(`prover eval CONFIG --policy FILE`) and not trained; set kind to hf and path to the folder of a model"
            )
        return kind

    @model_validator(mode="after")
    def _reply_fits(self) -> Self:
        if self.max_reply_tokens >= self.context_limit:
            raise ValueError(
                f"max_reply_tokens ({self.max_reply_tokens}) must be below context_limit ({self.context_limit}), "
                "so that a prompt fits beside a reply"
            )
        return self


class FormatConfig(Section):
    """How an action stands in a reply."""

    kind: Literal["bare", "think_action", "react"] = "bare"


class TranscriptConfig(Section):
    """How turns become token rows."""

    mode: Literal["append", "window"] = "append"
    """``append``: one row that grows; ``window``: one row per turn, built from the last turns."""
    window: Count = 2
    """Turns that a row of window mode looks back."""
    system: str = ""
    """System message."""


class RolloutConfig(Section):
    """How episodes are collected."""

    groups: Count = 8
    """Tasks per update."""
    group_size: Annotated[int, Field(ge=2)] = 8
    """Episodes per task; an advantage needs at least two to compare."""
    max_turns: Count = 30
    match_turns: FilePath | None = None
    """Folder of a run whose environment turns, continuations included, this run is to take: groups get more members."""
    concurrency: Count = 64
    """Episodes in flight."""
    isolation: Literal["inline", "thread", "process"] = "inline"
    """Where environments run: one after another; each in a thread, for those that wait for a service; or each in a
    worker process, which is killed when it misses a deadline."""
    step_deadline_s: Positive | None = 30.0
    """Longest wait for one answer of the environment, in seconds."""
    episode_deadline_s: Positive | None = None
    """Longest episode, in seconds."""
    retries: Annotated[int, Field(ge=0)] = 2
    """Fresh starts of an episode that failed, before it is left out."""
    max_failure_share: Share = 0.25
    """The run stops when a larger share of episodes fails."""
    on_cut: Literal["continue", "end"] = "continue"
    """What happens to an episode when a reply is cut by the token limit."""
    train_on_cut: bool = True
    """Whether the tokens of a cut reply are trained on."""


class VerifyConfig(Section):
    """How a proposal is judged and measured."""

    mode: Literal["monte_carlo", "anchor", "trust"] = "monte_carlo"
    """``monte_carlo`` continues the policy from both states; ``anchor`` looks how the group's own runs through these
    states ended; ``trust`` measures nothing, and every valid proposal earns ``trusted_delta``. The last two are for
    comparison."""
    trusted_delta: Annotated[float, Field(gt=0, le=1)] = 0.25
    """What ``mode: trust`` takes a segment to add to the success rate."""
    continuations: Count = 8
    """Episodes continued from the state before the segment, and as many from the state after it (K)."""
    sequential: bool = False
    """Begin with 2 continuations on either side; stop if all end alike, and from 4 on unless there is a gain so far."""
    train_continuations: bool = False
    """Train on the continuations too, on what was sampled after the branching state: each against the mean outcome of
    those from the same state, its tokens counting in the loss as those of the rollouts do. States from which all end
    alike are left out."""
    eligible_min: Annotated[int, Field(ge=0)] = 1
    """Fewest successes of a group that is judged."""
    eligible_max: Count = 3
    """Most successes of a group that is judged."""
    mixed_only: bool = True
    """Whether groups in which all succeeded or all failed are left out."""
    max_share: Annotated[float, Field(gt=0)] | None = None
    """Turns planned for continuations at most, as a share of the rollouts' turns: groups are measured in order
    until the next would go beyond. A continuation is planned as long as the run that it leaves; one that fails may take
    longer, up to the turn cap. Random turns (``null_probe``) come on top."""
    max_turns: Count | None = None
    """The same as a number of turns of each update."""
    max_tokens: Count | None = None
    """The same as a number of sampled tokens of each update."""
    null_probe: Share = 0.1
    """Share of the groups with a valid proposal in which a random turn is measured as well; never credited."""
    null_warn_after: Count = 64
    """Groups after which the run warns of a judge that is not better than the random turn."""
    restore_rng: bool = False
    """Whether continuations get the environment's recorded randomness back instead of fresh seeds."""
    judge_deadline_s: Positive | None = 600.0
    """Longest wait for one judgement, in seconds; the group is then trained on as plain GRPO."""
    min_answered: Share = 0.8
    """The run warns when the judge answers for a smaller share of the groups that it is asked about."""
    stop_below: Share = 0.0
    """The run stops when the judge answers for a smaller share; 0 never stops it."""
    answered_window: Count = 32
    """Judged groups, the last ones, that both shares are taken of."""

    @model_validator(mode="after")
    def _plays_what_is_trained_on(self) -> Self:
        if self.train_continuations and self.mode != "monte_carlo":
            raise ValueError(
                f"train_continuations needs mode monte_carlo: mode {self.mode} plays no continuations; "
                "set train_continuations to false"
            )
        return self

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.eligible_min > self.eligible_max:
            raise ValueError(
                f"eligible_min ({self.eligible_min}) is above eligible_max ({self.eligible_max}), "
                "so that no group could be judged: lower the one or raise the other"
            )
        return self


class CreditConfig(Section):
    """How a measured difference becomes credit."""

    also_called: ClassVar[Mapping[str, str]] = {"lambda": "weight"}

    weight: NonNegative = 1.0
    """lambda: what a success-rate difference of 1 adds to the advantage."""
    sign: Literal["positive", "signed"] = "positive"
    """``positive`` keeps gains only; ``signed`` also takes credit away."""
    min_z: NonNegative = 0.0
    """Differences below so many standard errors earn nothing; 0 keeps all."""
    min_delta: Share = 0.0
    """Smaller differences earn nothing."""
    tau: Share = 0.0
    """Differences whose sign is less probable than this, given the counts, earn nothing; 0 keeps all."""
    measure: Literal["success", "reward"] = "success"
    """Difference of success rates, or of mean rewards where rewards are graded."""
    normalised: bool = False
    """Divide by the standard deviation of the group's outcomes, as ``advantage.std`` does with advantages."""
    cap: Positive | None = None
    """Largest credit in either direction."""
    top: Count | None = None
    """Only so many segments of a group earn credit, those with the largest amounts in either direction."""
    centred: bool = False
    """Take the mean credit of a trajectory off all its tokens, so that credit only moves advantage within it."""
    shared: bool = False
    """Give the credit to every success of the group that did the same in the same states."""

    @model_validator(mode="after")
    def _counts_are_needed(self) -> Self:
        if self.measure == "reward" and (self.min_z or self.tau):
            raise ValueError("min_z and tau count successes, which measure: reward does not; set them to 0")
        return self


class AdvantageConfig(Section):
    """How rewards of a group become advantages."""

    std: Literal["none", "ddof0", "ddof1"] = "none"
    """Divisor: none, or the group's standard deviation in either convention."""
    baseline: Literal["mean", "rloo", "none"] = "mean"
    """``rloo`` compares each member with the mean of the others; ``none`` leaves nothing but credit."""
    omega: NonNegative = 0.0
    """Weight of step advantages among visits of one state (GiGPO); 0 makes none."""
    gamma: Share = 0.95
    """Discount per turn of the returns that step advantages compare."""
    eps: NonNegative = 1e-4
    """Added to the standard deviation."""
    critic_weight: NonNegative = 0.0
    """Weight of what each turn changed in the success that a critic foretells from hidden states; 0 makes none."""
    critic_ridge: Positive = 0.1
    """Penalty of the critic's weights, in units of the mean variance of a hidden state's numbers."""
    critic_window: Count = 8
    """Updates before the present one that the critic is fitted on."""


class OptimConfig(Section):
    """How the policy is updated."""

    also_called: ClassVar[Mapping[str, str]] = {
        "learning_rate": "lr",
        "steps": "updates",
        "mini_batch": "minibatch",
        "micro_batch": "microbatch",
    }

    updates: Count = 40
    lr: Positive = 3e-4
    betas: tuple[Annotated[float, Field(ge=0, lt=1)], Annotated[float, Field(ge=0, lt=1)]] = (0.9, 0.95)
    weight_decay: NonNegative = 0.0
    grad_clip: Positive = 1.0
    """Largest norm of the gradient."""
    clip_low: Annotated[float, Field(gt=0, lt=1)] = 0.2
    """The importance ratio is clipped below ``1 - clip_low``."""
    clip_high: Positive = 0.2
    """The importance ratio is clipped above ``1 + clip_high``."""
    dual_clip: Annotated[float, Field(gt=1)] | None = None
    """Bound of the loss of tokens with a negative advantage, in multiples of it."""
    aggregation: Literal["token_mean", "sequence_mean", "dr_grpo"] = "token_mean"
    kl: NonNegative = 0.0
    """Weight of the divergence from the starting policy."""
    epochs: Count = 1
    """Passes over the rollouts of one update."""
    minibatch: Count | None = None
    """Trajectories per optimizer step; all of the update when left out. Continuations that are trained on are dealt out
    over these steps."""
    microbatch: Count = 16
    """Rows (one per trajectory in append mode) per forward and backward pass; changes memory and speed only."""


class EvaluationConfig(Section):
    """How success is measured."""

    split: str = "test"
    episodes: Count = 600
    """Episodes per evaluation: the tasks of the split in their order, again from the first when they run out."""
    temperatures: Annotated[tuple[Positive, ...], Field(min_length=1)] = (1.0, 0.5)
    """Each is measured with the same tasks and seeds."""
    every: Annotated[int, Field(ge=0)] = 0
    """Updates between evaluations; 0 evaluates before and after training only."""
    start: bool = True
    """Whether the policy is measured before training as well."""
    seed: Seed = 0

    @model_validator(mode="after")
    def _temperatures_differ(self) -> Self:
        if len(set(self.temperatures)) < len(self.temperatures):
            raise ValueError(f"temperatures {list(self.temperatures)} name one twice; leave it out")
        return self


class CheckpointConfig(Section):
    """When the run is saved."""

    every: Count = 20
    """Updates between checkpoints; the last update is always saved."""
    keep: Count = 2
    """Newest checkpoints to keep."""
    groups: Annotated[int, Field(ge=0)] = 1
    """Updates after the start and after each checkpoint that is kept whose groups are stored, for ``prover judge``; of
    more than 1 only the first was sampled by just those weights."""


class RunConfig(Section):
    """Everything that defines a training run."""

    method: MethodName = "prover"
    """Names the settings of ``prover.methods``; whatever is set beside it wins."""
    seed: Seed = 0
    """All randomness of the run comes from it."""
    run: FilePath | None = None
    """Folder of the run; the command line makes one up when it is left out."""
    env: EnvConfig = AlfworldEnvConfig()
    policy: PolicyConfig = PolicyConfig()
    format: FormatConfig = FormatConfig()
    transcript: TranscriptConfig = TranscriptConfig()
    rollout: RolloutConfig = RolloutConfig()
    judge: JudgeConfig = ContrastJudgeConfig()
    verify: VerifyConfig = VerifyConfig()
    credit: CreditConfig = CreditConfig()
    advantage: AdvantageConfig = AdvantageConfig()
    optim: OptimConfig = OptimConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    checkpoint: CheckpointConfig = CheckpointConfig()

    @property
    def judged(self) -> bool:
        """Whether the method asks the judge."""
        return self.method not in NO_JUDGE

    @model_validator(mode="after")
    def _sizes_divide(self) -> Self:
        product = self.rollout.groups * self.rollout.group_size
        minibatch, microbatch = self.optim.minibatch or product, self.optim.microbatch
        origin = f"rollout.groups {self.rollout.groups} x rollout.group_size {self.rollout.group_size} = {product}"
        if product % minibatch:
            raise ValueError(
                f"{origin} trajectories do not divide by optim.minibatch {minibatch}; "
                f"valid choices: {_choices(product)}, or null for all"
            )
        # A micro-batch that holds the whole mini-batch cuts nothing, so only smaller ones have to divide it.
        if microbatch < minibatch and minibatch % microbatch:
            named = f"optim.minibatch {minibatch}" if self.optim.minibatch else origin
            raise ValueError(
                f"{named} trajectories do not divide by optim.microbatch {microbatch}; "
                f"valid choices: {_choices(minibatch)}"
            )
        return self

    @model_validator(mode="after")
    def _has_a_budget(self) -> Self:
        if self.method == "grpo_budget" and self.rollout.match_turns is None:
            raise ValueError("method grpo_budget needs rollout.match_turns, the folder of the run to keep up with")
        return self

    @model_validator(mode="after")
    def _groups_can_be_eligible(self) -> Self:
        if self.judged and self.verify.mixed_only and self.verify.eligible_min >= self.rollout.group_size:
            raise ValueError(
                f"verify.eligible_min {self.verify.eligible_min} must be below rollout.group_size "
                f"{self.rollout.group_size}: a group of successes only has no failure to contrast them with"
            )
        return self


class SftConfig(Section):
    """How a small policy is made from demonstrations."""

    env: EnvConfig = AlfworldEnvConfig()
    out: FilePath
    """Folder that the policy is written to."""
    demonstrations: Count = 4000
    turns: FilePath | None = None
    """Episodes of another player to learn from, as ``prover eval --turns`` keeps them, in place of the environment's
    expert: all that were solved, on tasks of ``env.split``."""
    noise: Share = 0.2
    """Chance that a step of a demonstration is replaced by a random one."""
    max_turns: Count = 30
    epochs: Count = 6
    batch_tokens: Count = 2048
    lr: Positive = 2e-3
    decoding: Literal["free", "admissible"] = "free"
    """``free`` teaches to write the expert's actions; ``admissible`` to choose them among the admissible ones, which is
    less to learn but only of use to a policy that is decoded so."""
    names: str | None = None
    """Regular expression of words that are mere names, such as product ids. In every demonstration and pass they change
    places among themselves, so that the policy learns to copy them from what it reads, and none of them by heart."""
    init_std: Positive = 0.07
    """Standard deviation of the starting weights."""
    hidden: Count = 128
    layers: Count = 4
    heads: Count = 4
    kv_heads: Count = 2
    intermediate: Count = 384
    seed: Seed = 0

    @field_validator("names")
    @classmethod
    def _is_a_pattern(cls, names: str | None) -> str | None:
        try:
            re.compile(names or "")
        except re.error as error:
            raise ValueError(f"{names!r} is no regular expression: {error}") from error
        return names

    @model_validator(mode="after")
    def _heads_divide(self) -> Self:
        if self.hidden % self.heads:
            raise ValueError(f"hidden {self.hidden} does not divide by heads {self.heads}: {_choices(self.hidden)}")
        if self.heads % self.kv_heads:
            raise ValueError(f"heads {self.heads} does not divide by kv_heads {self.kv_heads}: {_choices(self.heads)}")
        return self


def _choices(number: int) -> str:
    """The divisors of ``number``, in words."""
    return ", ".join(str(n) for n in range(1, number + 1) if number % n == 0)


def load_config(path: Path | str | None = None, overrides: Sequence[str] = ()) -> RunConfig:
    """Read the config of a training run and check all of it.

    Args:
        path: YAML file; None for the defaults.
        overrides: ``section.key=value`` each, the value in YAML. A new ``kind`` starts its section afresh, whichever
            place it has among the overrides. ``method`` stands for its settings (``prover.methods``): those of the file
            come before the file's other keys, those of an override after them and before the other overrides.

    Raises:
        ConfigError: The file cannot be read, or a key or value is wrong; the message names all of them.

    >>> load_config(overrides=["rollout.group_size=4", "optim.lr=1e-6"]).optim.lr
    1e-06
    """
    return load(RunConfig, path, overrides, presets={"method": METHODS})


def load_sft_config(path: Path | str | None = None, overrides: Sequence[str] = ()) -> SftConfig:
    """Read the config of ``prover sft``, as :func:`load_config` does."""
    return load(SftConfig, path, overrides)


def effective_yaml(config: Section) -> str:
    """The whole config with all defaults, as YAML that is read back to an equal one."""
    return dump(config)
