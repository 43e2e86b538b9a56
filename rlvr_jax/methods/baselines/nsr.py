"""NSR, PSR and W-REINFORCE: train on wrong answers, on right answers, or on both unequally.

"The Surprising Effectiveness of Negative Reinforcement in LLM Reasoning",
https://github.com/TianHongZXY/RLVR-Decomposed

    A_i  = λ⁺ where the outcome is 1, -λ⁻ where it is 0
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / Σ n_i over the rollouts with A ≠ 0

(λ⁺, λ⁻) is (0, 1) for NSR, (1, 0) for PSR and (0.1, 1) for W-REINFORCE, the default, which the
paper finds best. There is no baseline: groups of equal outcomes are trained on as well. Outcomes
other than 0 and 1 are left out; the authors' W-REINFORCE keeps them at their reward. The code also
has a weighting of two separate means in the loss, off by default and not built here. It drops
rollouts before a batch is split, so that there are fewer updates; ours leave them out of their own.
Off-policy a wrong answer of large ρ pushes without bound: `dual_clip` bounds it.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.objectives.advantages.group_relative import rollout_advantage
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.statistics.groups import has_tokens
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, DualClip
from rlvr_jax.types.parts import part


def outcome_push(outcome: Float[Array, "B"], right: float, wrong: float) -> Float[Array, "B"]:
    """right where the outcome is 1, -wrong where it is 0, 0 where it is neither."""
    is_right, is_wrong = ((outcome == value).astype(outcome.dtype) for value in (1, 0))
    return right * is_right - wrong * is_wrong


@part
def signed_by_outcome(right: float, wrong: float) -> Transform:
    """`outcome_push` as advantage.

    There is no baseline: groups of equal outcomes are trained on as well.

    Args:
      right: push for right answers, at least 0.
      wrong: push against wrong answers, at least 0.
    Raises:
      ValueError: a negative push, or both 0.
    """
    if not (right >= 0 and wrong >= 0 and right + wrong > 0):
        raise ValueError(
            "signed_by_outcome: right and wrong must be at least 0 and not both 0,"
            f" got {right} and {wrong}"
        )
    return rollout_advantage(lambda rollouts: outcome_push(rollouts.outcome, right, wrong))


@part(writes={"mask"})
def drop_neutral_rollouts() -> Transform:
    """Takes rollouts whose advantage is 0 at every token out of the loss and its denominators.

    Each update drops its own; a batch is split into as many updates as before.
    Metrics: neutral_share (of the rollouts with tokens).
    """

    def apply(signals, context, state):
        del context
        kept = jnp.any(signals.mask & (signals.advantage != 0), axis=1)
        share = masked_mean(~kept, has_tokens(signals.mask)).astype(signals.weight.dtype)
        signals = replace(signals, mask=signals.mask & kept[:, None])
        return signals, state, {"neutral_share": share}

    return apply


def nsr(
    right: float = 0.1,
    wrong: float = 1.0,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    dual_clip: DualClip | None = None,
) -> Recipe:
    """A fixed push for right answers and one against wrong answers, with a clipped ratio.

    Args:
      right: push for right answers (λ⁺); with 0 they are dropped.
      wrong: push against wrong answers (λ⁻); with 0 they are dropped.
    """
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            advantage=signed_by_outcome(right, wrong),
            transforms=[drop_neutral_rollouts()],
            dual_clip=dual_clip,
        )
    )


METHOD = Method(
    nsr,
    "The Surprising Effectiveness of Negative Reinforcement in LLM Reasoning",
    "https://github.com/TianHongZXY/RLVR-Decomposed",
    changes="advantage, mask",
    baseline="other",
    rewards="binary",
    reports=(
        "Qwen2.5-Math-7B on MATH: pass@1 63.2 to 75.7, pass@256 96.9 as before; trained on "
        "right answers alone 91.2"
    ),
    traps=(
        "groups of equal rewards train, as there is no baseline; a shaped reward is neither "
        "right nor wrong; on stale rollouts wrong answers are unbounded without a dual clip"
    ),
)
