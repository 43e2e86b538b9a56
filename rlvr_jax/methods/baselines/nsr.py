"""NSR, PSR and W-REINFORCE: train on incorrect responses, on correct ones, or on both unequally.

"The Surprising Effectiveness of Negative Reinforcement in LLM Reasoning",
https://github.com/TianHongZXY/RLVR-Decomposed

    A_i  = λ⁺ where the outcome is 1, -λ⁻ where it is 0
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / Σ n_i over the rollouts with A ≠ 0

(λ⁺, λ⁻) is (0, 1) for NSR, (1, 0) for PSR and (0.1, 1) for W-REINFORCE. The last is the default and
the paper's best. There is no baseline, so groups of equal outcomes are also trained on. Outcomes
other than 0 and 1 are dropped; the authors' W-REINFORCE trains them with their reward. Each update
drops its own rollouts. The authors' code drops them before a batch is split, so it makes fewer
updates. On old rollouts, the loss of an incorrect response of large ρ is unbounded; `dual_clip`
bounds it.

Left out: the code's option, off by default, to weigh two separate means in the loss.
Reports: Qwen2.5-Math-7B on MATH, in %: pass@1 63.2 to 75.7, pass@256 unchanged at 96.9. Training on
correct responses only lowers pass@256 to 91.2.
Traps: Outcomes between 0 and 1 are dropped without a message.
"""

import jax.numpy as jnp

from rlvr_jax.objectives import Transform, clipped_objective, has_tokens, part, rollout_advantage
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import LOSS_ON_BRACKETS, Method, Recipe, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, DualClip, NonNegative


@part
def signed_by_outcome(correct: NonNegative, incorrect: NonNegative) -> Transform:
    """A_i = λ⁺ where the outcome is 1, -λ⁻ where it is 0, 0 elsewhere.

    Args:
      correct, incorrect: λ⁺ and λ⁻, not both 0.
    """
    if correct == incorrect == 0:
        raise ValueError("signed_by_outcome: correct and incorrect must not both be 0, got 0 and 0")

    def advantage(rollouts):
        outcome = rollouts.outcome
        is_correct, is_incorrect = ((outcome == x).astype(outcome.dtype) for x in (1, 0))
        return correct * is_correct - incorrect * is_incorrect

    return rollout_advantage(advantage)


@part(writes={"mask"})
def drop_neutral_rollouts() -> Transform:
    """Takes rollouts whose advantage is 0 at every token out of the loss and its denominators.

    Metrics: neutral_fraction (of the rollouts with tokens).
    """

    def apply(signals, context, state):
        kept = jnp.any(signals.mask & (signals.advantage != 0), axis=1)
        fraction = masked_mean(~kept, has_tokens(signals.mask)).astype(signals.weight.dtype)
        signals = replace(signals, mask=signals.mask & kept[:, None])
        return signals, state, {"neutral_fraction": fraction}

    return apply


def nsr(
    correct: NonNegative = 0.1,
    incorrect: NonNegative = 1.0,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    dual_clip: DualClip | None = None,
) -> Recipe:
    """Trains with one fixed advantage per outcome and a clipped ratio.

    Args:
      correct: advantage of correct responses (λ⁺); with 0 they are dropped.
      incorrect: negative advantage of incorrect responses (λ⁻); with 0 they are dropped.
    """
    advantage = signed_by_outcome(correct, incorrect)
    transforms = [drop_neutral_rollouts()]
    objective = clipped_objective(
        clip_low, clip_high, advantage=advantage, transforms=transforms, dual_clip=dual_clip
    )
    return Recipe(objective)


METHOD = Method(
    nsr, changes="advantage, mask", baseline="other", rewards="binary", shown=LOSS_ON_BRACKETS
)
