"""Macro actions: consecutive tokens that share one advantage.

A macro is what the tokens of a row with the same id form; ids count from 0 in each row and are -1
off the mask. The policy stays a policy over tokens.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.core import Transform, describe, stateless
from rlvr_jax.objectives.masked import masked_count
from rlvr_jax.objectives.returns import generalized_advantages, is_last_token, token_rewards
from rlvr_jax.types import replace

__all__ = [
    "equal_weights",
    "is_first_of_macro",
    "last_token_weights",
    "macro_advantage",
    "macro_advantages",
    "macro_mean",
    "ngram_macros",
    "position_weights",
]

# (place of the token in its macro from 0, tokens of the macro) -> weight, not yet normalized.
Weights = Callable[[Array, Array], Array]


def equal_weights(place, size):
    """Every token of a macro counts the same."""
    del size
    return jnp.ones_like(place)


def last_token_weights(place, size):
    """Only the last token of a macro counts."""
    return (place == size - 1).astype(place.dtype)


def position_weights(place, size):
    """1 / (place + 1): the first token of a macro counts most."""
    del size
    return 1 / (place + 1)


def ngram_macros(mask: Bool[Array, "B T"], length: int) -> Int[Array, "B T"]:
    """Macros of `length` tokens from the first on; the last token of a row is one of its own.

    The outcome sits on the last token and must not be averaged. The macro before it may be short.
    """
    place = jnp.cumsum(mask, axis=1, dtype=jnp.int32) - 1
    of_last = (masked_count(mask, axis=1)[:, None] + length - 2) // length
    return jnp.where(mask, jnp.where(is_last_token(mask), of_last, place // length), -1)


def is_first_of_macro(macro: Int[Array, "B T"]) -> Bool[Array, "B T"]:
    """The first token of each macro."""
    return (macro >= 0) & (_places(macro)[0] == 0)


def macro_mean(
    values: Float[Array, "B T"], macro: Int[Array, "B T"], weights: Weights = equal_weights
) -> Float[Array, "B T"]:
    """Weighted mean over the macro, at each of its tokens; 0 off the mask."""
    place, size = _places(macro)
    weight = jnp.where(
        macro >= 0, weights(place.astype(values.dtype), size.astype(values.dtype)), 0
    )
    total, mass = _summed(weight * values, macro), _summed(weight, macro)
    return jnp.where(macro >= 0, total / jnp.where(mass > 0, mass, 1), 0)


def macro_advantages(
    rewards: Float[Array, "B T"],
    values: Float[Array, "B T"],
    macro: Int[Array, "B T"],
    discount: float = 1.0,
    trace_decay: float = 1.0,
    weights: Weights = equal_weights,
) -> Float[Array, "B T"]:
    """Generalized advantages with macros in place of tokens, at every token of the macro.

    Reward and value of a macro are the weighted means over its tokens. A mean of KL rewards is
    about the macro's length below their sum, so prices do not compare across lengths. Advantage
    plus `macro_mean` of the values is the return to which the value of every token is fitted.

    Args:
      rewards, values: of the tokens.
      macro: ids, as of `ngram_macros`.
      discount, trace_decay: γ and λ, per macro.
      weights: of the tokens in a macro.
    Source: MA-RLHF, https://github.com/ernie-research/MA-RLHF.
    """
    first = is_first_of_macro(macro)
    advantages = generalized_advantages(
        macro_mean(rewards, macro, weights),
        macro_mean(values, macro, weights),
        first,
        discount,
        trace_decay,
    )
    return jnp.where(macro >= 0, _summed(advantages, macro), 0)


def macro_advantage(
    length: int,
    discount: float = 1.0,
    trace_decay: float = 0.95,
    kl_coefficient: float = 0.05,
    reward_clip: float = 2.5,
    weights: Weights = equal_weights,
) -> Transform:
    """`macro_advantages` of n-gram macros, from the outcome, a critic's values and a KL price.

    Args:
      length: n, tokens of a macro; with 1 these are the generalized advantages of tokens.
      discount, trace_decay: γ and λ, per macro.
      kl_coefficient: price of old_logp - reference_logp, per token.
      reward_clip: the outcome is clipped to plus and minus this.
      weights: of the tokens in a macro.
    Reads: reward, values, old_logp, reference_logp, mask. Writes: advantage. Metrics: none.
    Raises:
      ValueError: length below 1.
    Source: MA-RLHF, https://github.com/ernie-research/MA-RLHF.
    """
    if not length >= 1:
        raise ValueError(f"macro_advantage: length must be at least 1, got {length}")

    def apply(signals, context, state):
        rollouts, mask = context.rollouts, signals.mask
        reward = jnp.clip(rollouts.reward, -reward_clip, reward_clip)
        log_ratio = context.old_logp - rollouts.reference_logp
        rewards = token_rewards(reward, mask, log_ratio, kl_coefficient)
        macro = ngram_macros(mask, length)
        advantages = macro_advantages(
            rewards, rollouts.values, macro, discount, trace_decay, weights
        )
        return replace(signals, advantage=advantages), state, {}

    label = describe(
        "macro_advantage",
        length=length,
        discount=float(discount),
        trace_decay=float(trace_decay),
        kl_coefficient=float(kl_coefficient),
        reward_clip=float(reward_clip),
        weights=weights,
    )
    return stateless(apply, needs={"logp", "reference_logp", "values"}, label=label)


def _places(macro):
    """Place of each token in its macro from 0, and tokens of the macro."""
    inside = macro >= 0
    order = jnp.cumsum(inside, axis=1, dtype=jnp.int32)
    first = _spread(jax.ops.segment_min, order, macro)
    return order - first, _summed(inside.astype(jnp.int32), macro)


def _summed(values, macro):
    return _spread(jax.ops.segment_sum, jnp.where(macro >= 0, values, 0), macro)


def _spread(reduce, values, macro):
    """Reduction over the tokens of a macro, given back to each; anything off the mask."""
    rows, width = macro.shape
    # Off the mask: one more macro per row, which nobody reads.
    own = jnp.where(macro >= 0, macro, width)
    segment = (own + jnp.arange(rows, dtype=own.dtype)[:, None] * (width + 1)).ravel()
    reduced = reduce(values.ravel(), segment, num_segments=rows * (width + 1))
    return reduced[segment].reshape(macro.shape)
