"""ProGRPO: reduces the reward of responses that the policy found likely.

"Back to Basics: Revisiting Exploration in RL for LLM Reasoning via Generative Probabilities",
https://arxiv.org/abs/2602.05281

    c    = exp(mean log p over the fifth of the tokens of lowest probability), of o_i and of q
    A_i  = (R_i - mean) / (std + 1e-6) + α (c(q) - c(o_i)), std with n - 1
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i

Log-probs are those of the policy that sampled. The shift (α is `shift_coefficient`) applies to
groups with a positive reward. A reconstruction from notes on the paper, which state fraction and
clip; α is ours. Sources disagree on groups of only correct responses. `where=mixed_reward` does not
change these groups.

Reports: Qwen2.5-7B, maths over GRPO in %: pass@1 37.6 to 43.3 and pass@32 54.7 to 68.5. CodeForces
rating: 1242 to 1422.
Traps: In groups of only correct responses, the more confident half is penalized. Unlikely incorrect
responses have a higher advantage than under GRPO. Advantages are not centered again.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives import Transform, clipped_objective, group_max, has_tokens, masked_top_k
from rlvr_jax.objectives.statistics.masked import masked_count, masked_mean
from rlvr_jax.types import LOSS_ON_BRACKETS, Mask, Method, Recipe, Rollouts, Values, part, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Finite, Share
from rlvr_jax.types.passing import arguments_of


def any_reward(reward: Float[Array, "B"], group: Int[Array, "B"]) -> Bool[Array, "B"]:
    """Groups in which some rollout has a positive reward."""
    return group_max(reward, group) > 0


def mixed_reward(reward: Float[Array, "B"], group: Int[Array, "B"]) -> Bool[Array, "B"]:
    """Groups in which some rollout has a positive reward and some a reward below 1."""
    return any_reward(reward, group) & (-group_max(-reward, group) < 1)


@part(reads={"logp", "prompt_logp"}, writes={"advantage"})
def credit_unlikely(
    coefficient: Finite, fraction: Share, where: Callable[[Array, Array], Array] = any_reward
) -> Transform:
    """Rewards rollouts that the policy found unlikely: A' = A + α (c(q) - c(o)).

    c is the `low_probability_confidence` of response o and prompt q. Correct and incorrect rollouts
    are shifted alike, and the shifts of a group do not sum to 0.

    Args:
      coefficient: weight of the difference of the confidences (α).
      fraction: fraction of the tokens in a confidence.
      where: (reward [B], group [B]) -> bool [B], the groups that are shifted: `any_reward` or
        `mixed_reward`.
    Metrics: confidence (mean over the rollouts with tokens).
    """

    def apply(signals, context, state):
        mask, rollouts = signals.mask, context.rollouts
        confidence = low_probability_confidence(context.old_logp, mask, fraction)
        shift = coefficient * (prompt_confidence(rollouts, fraction) - confidence)
        shifted = jnp.where(where(rollouts.reward, rollouts.group), shift, 0)[:, None]
        advantage = jnp.where(mask, signals.advantage + shifted, 0)
        metrics = {"confidence": masked_mean(confidence, has_tokens(mask))}
        return replace(signals, advantage=advantage), state, metrics

    return apply


def low_probability_confidence(logp: Values, mask: Mask, fraction: float) -> Float[Array, "B"]:
    """exp(mean log-prob) of the `low_probability_tokens`; near-certain tokens are left out."""
    return jnp.exp(masked_mean(logp, low_probability_tokens(logp, mask, fraction), axis=1))


def low_probability_tokens(logp: Values, mask: Mask, fraction: float) -> Mask:
    """The max(1, ⌈fraction · n⌉) tokens of lowest log-prob of each row; the earlier of equal ones.

    A product that is an integer except for rounding is not rounded up.

    Args:
      logp: nats.
      mask: the tokens that count, n in a row.
    """

    def count(chosen):
        return masked_count(chosen, axis=1)[:, None]

    number = count(mask).astype(logp.dtype) * (fraction * (1 - 2.0**-22))
    k = jnp.maximum(jnp.ceil(number).astype(jnp.int32), 1)
    rows = jnp.arange(mask.shape[0], dtype=jnp.int32)
    return masked_top_k(-logp, mask, k, rows, count)


def prompt_confidence(rollouts: Rollouts, fraction: float) -> Float[Array, "B"]:
    """The `low_probability_confidence` of the prompt, from `prompt_logp`; 1 for a single token.

    The first token has no context and does not count.
    """
    logp = rollouts.records["prompt_logp"]
    position = jnp.arange(logp.shape[1], dtype=jnp.int32)[None]
    measured = (position > 0) & (position < rollouts.prompt_length[:, None])
    return low_probability_confidence(logp, measured, fraction)


@arguments_of(credit_unlikely, "fraction", "where", fraction=0.2)
def progrpo(
    shift_coefficient: Finite = 0.3,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
    **own: Any,
) -> Recipe:
    """Shifts GRPO's advantages by the confidence of prompt and response, with DAPO's loss.

    Args:
      shift_coefficient: weight of the shift (α).
    """
    return Recipe(
        objective=clipped_objective(
            clip_low, clip_high, transforms=[credit_unlikely(shift_coefficient, **own)]
        )
    )


METHOD = Method(
    progrpo,
    changes="advantage",
    baseline="other",
    evidence="reconstruction",
    shown=LOSS_ON_BRACKETS,
)
