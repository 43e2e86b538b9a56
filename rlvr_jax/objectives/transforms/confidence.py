"""Advantages shaped by how probable the policy found the response, or where in it a token stands.

Everything is of the policy that sampled.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.choices import masked_top_k
from rlvr_jax.objectives.statistics.groups import group_max, has_tokens
from rlvr_jax.objectives.statistics.masked import masked_count, masked_mean
from rlvr_jax.objectives.statistics.scopes import Scope, within_batch, z_score
from rlvr_jax.types import Rollouts, replace
from rlvr_jax.types.hyperparameters import Finite, Share
from rlvr_jax.types.parts import part

__all__ = [
    "any_reward",
    "credit_unlikely",
    "emphasize_late_tokens",
    "log_perplexity",
    "low_probability_confidence",
    "low_probability_tokens",
    "mixed_reward",
    "position_bonus",
    "prompt_confidence",
    "relative_position",
    "scale_by_perplexity",
    "standardized_perplexity",
]

Tokens = Float[Array, "B T"]
Mask = Bool[Array, "B T"]


def low_probability_tokens(logp: Tokens, mask: Mask, share: float) -> Mask:
    """The max(1, ⌈share · n⌉) tokens of lowest log-prob of each row; the earlier of equals.

    Args:
      logp: nats.
      mask: the tokens that count, n in a row.
      share: in (0, 1]; a product that is whole but for rounding is not rounded up.
    """

    def count(chosen):
        return masked_count(chosen, axis=1)[:, None]

    number = count(mask).astype(logp.dtype) * (share * (1 - 2.0**-22))
    k = jnp.maximum(jnp.ceil(number).astype(jnp.int32), 1)
    rows = jnp.arange(mask.shape[0], dtype=jnp.int32)
    return masked_top_k(-logp, mask, k, rows, count)


def low_probability_confidence(logp: Tokens, mask: Mask, share: float) -> Float[Array, "B"]:
    """exp of the mean log-prob of the `low_probability_tokens`: near-certain filler is left out."""
    return jnp.exp(masked_mean(logp, low_probability_tokens(logp, mask, share), axis=1))


def prompt_confidence(rollouts: Rollouts, share: float) -> Float[Array, "B"]:
    """The `low_probability_confidence` of the prompt, from `prompt_logp`; 1 for a single token.

    The first token, before which there is nothing, does not count.
    """
    logp = rollouts.prompt_logp
    position = jnp.arange(logp.shape[1], dtype=jnp.int32)[None]
    measured = (position > 0) & (position < rollouts.prompt_length[:, None])
    return low_probability_confidence(logp, measured, share)


def any_reward(reward: Float[Array, "B"], group: Int[Array, "B"]) -> Bool[Array, "B"]:
    """Groups in which some rollout has a positive reward."""
    return group_max(reward, group) > 0


def mixed_reward(reward: Float[Array, "B"], group: Int[Array, "B"]) -> Bool[Array, "B"]:
    """Groups in which some rollout has a positive reward and some a reward below 1."""
    return any_reward(reward, group) & (-group_max(-reward, group) < 1)


@part(reads={"logp", "prompt_logp"}, writes={"advantage"})
def credit_unlikely(
    coefficient: Finite, share: Share, where: Callable[[Array, Array], Array] = any_reward
) -> Transform:
    """Pays rollouts that the policy found unlikely: A' = A + α (c(q) - c(o)).

    c is the `low_probability_confidence` of response o and prompt q. Right and wrong rollouts are
    shifted alike, and the shifts of a group do not sum to 0.

    Args:
      coefficient: α.
      share: of the tokens that make up a confidence, in (0, 1].
      where: (reward, group) -> bool [B], the groups that are shifted.
    Reads: advantage, reward, group, old_logp, prompt_logp, mask. Writes: advantage.
    Metrics: confidence, its mean over the rollouts with tokens.
    Raises:
      ValueError: share outside (0, 1], or coefficient not finite.
    Source: ProGRPO, https://arxiv.org/abs/2602.05281.
    """

    def apply(signals, context, state):
        mask, rollouts = signals.mask, context.rollouts
        confidence = low_probability_confidence(context.old_logp, mask, share)
        shift = coefficient * (prompt_confidence(rollouts, share) - confidence)
        shifted = jnp.where(where(rollouts.reward, rollouts.group), shift, 0)[:, None]
        advantage = jnp.where(mask, signals.advantage + shifted, 0)
        metrics = {"confidence": masked_mean(confidence, has_tokens(mask))}
        return replace(signals, advantage=advantage), state, metrics

    return apply


def log_perplexity(logp: Tokens, mask: Mask) -> Float[Array, "B"]:
    """-mean log-prob of the tokens of each row, nats; 0 for an empty row."""
    return -masked_mean(logp, mask, axis=1)


def standardized_perplexity(
    logp: Tokens, mask: Mask, rollouts: Rollouts, scope: Scope, epsilon: float = 1e-6
) -> Float[Array, "B"]:
    """(x - mean) / (std + ε) of the log perplexity x over the rollouts that are compared; n - 1.

    A row without tokens has no perplexity: it is not compared and has 0.
    """
    value = log_perplexity(logp, mask)[:, None]
    written = has_tokens(mask)[:, None]
    return z_score(value, written, scope(rollouts), ddof=1, epsilon=epsilon)[:, 0]


@part(reads={"logp", "batch_statistics"}, writes={"advantage"}, once=True)
def scale_by_perplexity(
    coefficient: Finite, scope: Scope = within_batch, epsilon: float = 1e-6
) -> Transform:
    """Lets fluent responses weigh more, of either sign: A' = A (1 - α w).

    w is the `standardized_perplexity`; every rollout with tokens counts once.

    Args:
      coefficient: α; where α w > 1 the sign of the advantage turns.
      scope: which rollouts are compared: `within_batch` or `within_group`.
      epsilon: added to the standard deviation.
    Reads: advantage, old_logp, group, mask. Writes: advantage. Metrics: none.
    Raises:
      ValueError: coefficient not finite.
    Source: "Decomposing the Entropy-Performance Exchange".
    """

    def apply(signals, context, state):
        score = standardized_perplexity(
            context.old_logp, signals.mask, context.rollouts, scope, epsilon
        )
        scaled = signals.advantage * (1 - coefficient * score)[:, None]
        return replace(signals, advantage=scaled), state, {}

    return apply


def relative_position(mask: Mask, dtype: DTypeLike) -> Tokens:
    """(t + 1) / n for the t-th of the n tokens on the mask, in (0, 1]; 0 off it."""
    number = jnp.cumsum(mask, axis=1, dtype=jnp.int32).astype(dtype)
    count = jnp.maximum(masked_count(mask, axis=1), 1).astype(dtype)
    return jnp.where(mask, number / count[:, None], 0)


def position_bonus(mask: Mask, size: float, steepness: float, dtype: DTypeLike) -> Tokens:
    """γ σ(d r) with the logistic function σ and the `relative_position` r; 0 off the mask."""
    bonus = size * jax.nn.sigmoid(steepness * relative_position(mask, dtype))
    return jnp.where(mask, bonus, 0)


@part(writes={"advantage"})
def emphasize_late_tokens(size: Finite, steepness: Finite) -> Transform:
    """Lets tokens near the end weigh more, of either sign: A' = A + sign(A) γ σ(d r).

    Args:
      size, steepness: γ and d of `position_bonus`; with d = 1 the bonus is nearly constant.
    Reads: advantage, mask. Writes: advantage. Metrics: none.
    Raises:
      ValueError: a number that is not finite.
    Source: "Decomposing the Entropy-Performance Exchange".
    """

    def apply(signals, context, state):
        del context
        bonus = position_bonus(signals.mask, size, steepness, signals.advantage.dtype)
        raised = signals.advantage + jnp.sign(signals.advantage) * bonus
        return replace(signals, advantage=raised), state, {}

    return apply
