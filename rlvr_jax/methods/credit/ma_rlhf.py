"""MA-RLHF: PPO with credit over macro actions of a few tokens.

"MA-RLHF: Reinforcement Learning from Human Feedback with Macro Actions",
https://github.com/ernie-research/MA-RLHF

    r_t  = -κ (old_logp_t - reference_logp_t), plus clip(R, ±2.5) on the last token
    V_j, r_j = means over the tokens of macro j
    Â_j  = δ_j + γλ Â_{j+1}, δ_j = r_j + γ V_{j+1} - V_j, at every token of j
    loss = Σ max(-Â ρ, -Â clip(ρ, 1 - ε, 1 + ε)) / Σ n_i

Macros are 5-grams (`length`) from the first token on. The last token, which has the outcome, is a
separate macro. The authors' code repeats the last boundary if 5 divides the length minus one, which
adds an empty macro; this recipe does not. Their last token is the padded end, here it is that of
the row. `length=1` is PPO on tokens without whitening. In a response of several turns, the
environment's tokens are in no macro, and a macro may span them. The part `value_loss` fits the
critic to Â_j + V_j, clipped at 0.2.

Left out: macros by parsing, perplexity or random lengths; sampling at temperature 0.8.
Reports: gains over PPO with Gemma 2B to 27B and CodeGemma: up to 30 % in summaries and code, 18 %
in dialogue, 8 % in QA. Equal quality is reached 1.7 to 2 times sooner.
Traps: Means within a macro divide the KL by about n, so κ of PPO does not transfer. Advantages are
not whitened. Long macros have more weight in the token mean.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives import critic_of, generalized_advantages, is_last_token, token_rewards
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.statistics.masked import masked_count, masked_rank
from rlvr_jax.objectives.statistics.steps import Steps, at_tokens, step_sum
from rlvr_jax.types import LOSS_ON_BRACKETS, Function, Method, Recipe, part, replace
from rlvr_jax.types.hyperparameters import (
    Bound,
    ClipHigh,
    ClipLow,
    Count,
    HalfWidth,
    NonNegative,
    Unit,
)

Weights = Callable[[Array, Array], Array]
"""(place of the token in its macro from 0, tokens of the macro) -> weight, not normalized."""


def equal_weights(place: Array, size: Array) -> Array:
    """Every token of a macro counts the same."""
    return jnp.ones_like(place)


def last_token_weights(place: Array, size: Array) -> Array:
    """Only the last token of a macro counts."""
    return (place == size - 1).astype(place.dtype)


def position_weights(place: Array, size: Array) -> Array:
    """1 / (place + 1): the first token of a macro counts most."""
    return 1 / (place + 1)


@part(writes={"advantage"}, once=True)
def macro_advantage(
    length: Count,
    discount: Unit = 1.0,
    trace_decay: Unit = 0.95,
    kl_coefficient: NonNegative = 0.05,
    reward_clip: Bound = 2.5,
    weights: Weights = equal_weights,
) -> Transform:
    """`macro_advantages` of n-grams, from the outcome, a critic's values and a KL in the reward.

    Args:
      length: tokens of a macro (n).
      discount: discount per macro (γ).
      trace_decay: decay of generalized advantage estimation per macro (λ).
      kl_coefficient: weight of the log-ratio to the reference in the token rewards (κ).
      reward_clip: bound of the absolute outcome reward.
      weights: weights of the tokens of a macro in its value and reward: `equal_weights`,
        `last_token_weights` or `position_weights`.
    """

    def apply(signals, context, state):
        rollouts, mask = context.rollouts, signals.mask
        reward = jnp.clip(rollouts.reward, -reward_clip, reward_clip)
        log_ratio = jnp.zeros_like(rollouts.records["values"])
        if kl_coefficient:
            log_ratio = context.old_logp - rollouts.reference_logp
        rewards = token_rewards(reward, mask, log_ratio, kl_coefficient)
        macro = ngram_macros(mask, length)
        most = (mask.shape[1] + length - 2) // length + 1
        values, decays = rollouts.records["values"], (discount, trace_decay)
        advantages = macro_advantages(rewards, values, macro, *decays, weights=weights, most=most)
        return replace(signals, advantage=advantages), state, {}

    reads = {"values"} | ({"logp", "reference_logp"} if kl_coefficient else set())
    return Transform(apply, reads=reads)


def ngram_macros(mask: Bool[Array, "B T"], length: int) -> Int[Array, "B T"]:
    """Macro ids: `length` tokens each from the first on, the last token by itself; -1 off the mask.

    The last token has the outcome, which must not be averaged. The macro before it may be short.
    """
    place = masked_rank(mask) - 1
    of_last = (masked_count(mask, axis=1)[:, None] + length - 2) // length
    return jnp.where(mask, jnp.where(is_last_token(mask), of_last, place // length), -1)


def macro_advantages(
    rewards: Float[Array, "B T"],
    values: Float[Array, "B T"],
    macro: Int[Array, "B T"],
    discount: float = 1.0,
    trace_decay: float = 1.0,
    *,
    weights: Weights = equal_weights,
    most: int | None = None,
) -> Float[Array, "B T"]:
    """Generalized advantages with macros in place of tokens, at every token of the macro.

    Reward and value of a macro are weighted means over its tokens. A mean of KL rewards is smaller
    than their sum by about the macro's length, so κ does not transfer across lengths. Advantage
    plus `macro_mean` of the values is the return to which the critic is fitted.

    Args:
      rewards: of each token.
      values: estimates of the critic at each token.
      macro: ids, as of `ngram_macros`.
      discount: γ, from one macro to the next.
      trace_decay: decay of generalized advantage estimation, per macro (λ).
      weights: weights of the tokens in the mean of a macro.
      most: no row has more macros. None: T. The cost is proportional to it.
    """
    macros = _table(macro, most)
    weight = _weights(macros, weights, values.dtype)
    own_rewards, own_values = (_mean(x, macros, weight) for x in (rewards, values))
    advantages = generalized_advantages(
        own_rewards, own_values, macros.exists, discount, trace_decay
    )
    return at_tokens(advantages, macros)


def macro_mean(
    values: Float[Array, "B T"], macro: Int[Array, "B T"], weights: Weights = equal_weights
) -> Float[Array, "B T"]:
    """Weighted mean over the macro, at each of its tokens; 0 off the mask."""
    macros = _table(macro)
    return at_tokens(_mean(values, macros, _weights(macros, weights, values.dtype)), macros)


def _table(macro, most=None):
    """The macros as columns of a table (see `steps`) of width `most`, or T."""
    member = macro >= 0
    count = jnp.max(macro, axis=1, keepdims=True, initial=-1) + 1
    column = jnp.arange(macro.shape[1] if most is None else most, dtype=jnp.int32)[None]
    return Steps(jnp.where(member, macro, 0), member, column < count)


def _places(macros):
    """Place of each token in its macro from 0, and number of tokens of the macro."""
    size = step_sum(jnp.ones_like(macros.index), macros)
    earlier = at_tokens(jnp.cumsum(size, axis=1) - size, macros)
    return masked_rank(macros.member) - 1 - earlier, at_tokens(size, macros)


def _weights(macros, weights, dtype):
    place, size = _places(macros)
    return jnp.where(macros.member, weights(place.astype(dtype), size.astype(dtype)), 0)


def _mean(values, macros, weight):
    """Weighted mean over each macro, as a table; `values` off the mask are not used."""
    total = step_sum(jnp.where(macros.member, weight * values, 0), macros)
    mass = step_sum(weight, macros)
    return total / jnp.where(mass > 0, mass, 1)


@part
def mean_of_macro(length: Count, weights: Weights) -> Function:
    """The critic's value of a token: the mean of the values over its macro."""
    return lambda rollouts: macro_mean(
        rollouts.records["values"], ngram_macros(rollouts.mask, length), weights
    )


def ma_rlhf(
    length: Count = 5,
    discount: Unit = 1.0,
    trace_decay: Unit = 0.95,
    kl_coefficient: NonNegative = 0.05,
    reward_clip: Bound = 2.5,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    weights: Weights = equal_weights,
    value_clip: HalfWidth = 0.2,
) -> Recipe:
    """Computes generalized advantages over n-grams, with a KL in the reward and a clipped ratio.

    Args:
      length: tokens of a macro (n).
      discount, trace_decay: γ and λ, per macro.
      kl_coefficient: weight of the KL in the reward, per token (κ); 0: no reference is required.
      reward_clip: bound of the outcome, on both sides.
      weights: weights of the tokens in a macro (σ): `equal_weights`, `last_token_weights` or
        `position_weights`.
      value_clip: half-width of the critic's trust region.
    """
    estimator = macro_advantage(length, discount, trace_decay, kl_coefficient, reward_clip, weights)
    value = mean_of_macro(length, weights)
    objective = clipped_objective(clip_low, clip_high, advantage=estimator)
    return Recipe(objective, critic=critic_of(estimator, value_clip, value))


METHOD = Method(ma_rlhf, changes="advantage, reward", baseline="other", shown=LOSS_ON_BRACKETS)
