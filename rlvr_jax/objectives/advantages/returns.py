"""Credit over time: token rewards, returns to go, and generalized advantages from a critic.

All sums run backwards over the response in blocks (`_backward`), so the number of sequential steps
is far smaller than the number of tokens.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from rlvr_jax.objectives.advantages.group_relative import Statistic
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.groups import group_has_tokens
from rlvr_jax.types import Mask, Rows, Values, part, replace
from rlvr_jax.types.hyperparameters import NonNegative, Unit

_BLOCK = 32


def is_last_token(mask: Bool[Array, "B T"]) -> Bool[Array, "B T"]:
    """The last token of each rollout on the mask; none in an empty row."""
    column = jnp.arange(mask.shape[1], dtype=jnp.int32)[None]
    return mask & (column == jnp.max(jnp.where(mask, column, -1), axis=1, keepdims=True))


def token_rewards(
    reward: Rows, mask: Mask, log_ratio: Values | None = None, kl_coefficient: float = 0.0
) -> Values:
    """Rewards of tokens: -β log_ratio_t at every token, plus R at the last one; 0 off the mask.

    Args:
      reward: R, reward of each row.
      mask: tokens of the loss.
      log_ratio: old_logp - reference_logp, nats; required where β is not 0.
      kl_coefficient: weight of the log-ratio (β).
    """
    rewards = jnp.where(is_last_token(mask), reward[:, None], 0)
    if kl_coefficient:
        rewards = jnp.where(mask, rewards - kl_coefficient * log_ratio, 0)
    return rewards


def discounted_returns(rewards: Values, mask: Mask, discount: float = 1.0) -> Values:
    """Discounted return of each token: G_t = Σ_{s ≥ t} γ^{s-t} r_s over the mask, 0 off the mask.

    The exponent s - t counts positions, masked ones included."""
    terms = jnp.where(mask, rewards, 0)
    return jnp.where(mask, _backward(terms, jnp.full_like(terms, discount)), 0)


def generalized_advantages(
    rewards: Values, values: Values, mask: Mask, discount: float = 1.0, trace_decay: float = 1.0
) -> Values:
    """Generalized advantage estimation: Â_t = δ_t + γλ Â_{t+1}, δ_t = r_t + γ V_{t+1} - V_t.

    Â is 0 off the mask. These positions (tokens of a tool) are skipped: t + 1 is the next token on
    the mask. After the last token V and Â are 0. A critic is fitted to the return Â + V. With γ = λ
    = 1 the result is the sum of the later rewards minus V.

    Args:
      rewards: r, reward of each token.
      values: V, the critic's estimates at sampling time.
      mask: tokens of the loss.
      discount, trace_decay: γ and λ.
    Source: Schulman et al. 2015, https://arxiv.org/abs/1506.02438.
    """
    # γ V_t + γλ Â_t of the token before t follows one recurrence. Â_t is r_t - V_t plus that term
    # of the token after t.
    surprise = rewards - values
    terms = jnp.where(mask, discount * values + discount * trace_decay * surprise, 0)
    factors = jnp.where(mask, jnp.full_like(terms, discount * trace_decay), 1)
    handed = jnp.pad(_backward(terms, factors)[:, 1:], ((0, 0), (0, 1)))
    return jnp.where(mask, surprise + handed, 0)


@part(writes={"advantage"}, once=True)
def reward_to_go(
    discount: Unit = 1.0,
    kl_coefficient: NonNegative = 0.0,
    center: Statistic | None = None,
    baseline: Statistic | None = None,
) -> Transform:
    """A_t = G_t - b, the discounted return of `token_rewards` against a baseline of the rewards.

    Args:
      discount: discount per token (γ).
      kl_coefficient: β of the divergence from the reference, per token.
      center: a statistic that is subtracted from the reward before the return is formed; its
        `where` is true for the rows of groups with tokens.
      baseline: b, a statistic that is subtracted from the return.
    """

    def apply(signals, context, state):
        rollouts, mask = context.rollouts, signals.mask
        reward, group = rollouts.reward, rollouts.group
        counted = group_has_tokens(mask, group)
        outcome = reward - center(reward, group, where=counted) if center else reward
        rewards = token_rewards(outcome, mask, *_price(context, kl_coefficient))
        returns = discounted_returns(rewards, mask, discount)
        if baseline:
            level = baseline(reward, group, where=counted)
            returns = jnp.where(mask, returns - level[:, None], 0)
        return replace(signals, advantage=returns), state, {}

    return Transform(apply, reads=_price_needs(kl_coefficient))


@part(writes={"advantage"}, once=True)
def generalized_advantage(
    discount: Unit = 1.0, trace_decay: Unit = 1.0, kl_coefficient: NonNegative = 0.0
) -> Transform:
    """Generalized advantages of the outcome and a critic's values; see `generalized_advantages`.

    Args:
      kl_coefficient: β of the divergence from the reference, per token.
    Source: Schulman et al. 2017, https://arxiv.org/abs/1707.06347.
    """

    def apply(signals, context, state):
        rollouts, mask = context.rollouts, signals.mask
        rewards = token_rewards(rollouts.reward, mask, *_price(context, kl_coefficient))
        advantages = generalized_advantages(
            rewards, rollouts.records["values"], mask, discount, trace_decay
        )
        return replace(signals, advantage=advantages), state, {}

    reads = {"values", *_price_needs(kl_coefficient)}
    return Transform(apply, reads=reads)


def _price(context, kl_coefficient):
    if not kl_coefficient:
        return None, 0.0
    return context.old_logp - context.rollouts.reference_logp, kl_coefficient


def _price_needs(kl_coefficient):
    # Of a first update the old log-probs are those of the scorer's own pass: hence "logp".
    return {"logp", "reference_logp"} if kl_coefficient else set()


# Outside of `jit` each call would compile both loops again.
@partial(jax.jit, inline=True)
def _backward(terms, factors):
    """y_t = terms_t + factors_t · y_{t+1}, y = 0 after the end.

    Two sweeps run over blocks of columns, all blocks at the same time. The first one computes each
    block as a function of the y after it, the second one inserts that y. `associative_scan` over
    all columns has half the speed on CPU.
    """
    rows, width = terms.shape
    blocks = -(-width // _BLOCK)

    def side_by_side(values):
        padded = jnp.pad(values, ((0, 0), (0, blocks * _BLOCK - width)))
        return jnp.moveaxis(padded.reshape(rows, blocks, _BLOCK), 2, 0)

    def whole(carry, column):
        (total, factor), (term, own) = carry, column
        return (term + own * total, own * factor), None

    def each(total, column):
        term, own = column
        total = term + own * total
        return total, total

    def combine(later, earlier):
        (total_after, factor_after), (total, factor) = later, earlier
        return total + factor * total_after, factor * factor_after

    columns = side_by_side(terms), side_by_side(factors)
    zeros = jnp.zeros((rows, blocks), terms.dtype)
    ends, _ = jax.lax.scan(whole, (zeros, zeros + 1), columns, reverse=True)
    totals, _ = jax.lax.associative_scan(combine, ends, reverse=True, axis=1)
    after = jnp.pad(totals[:, 1:], ((0, 0), (0, 1)))
    _, found = jax.lax.scan(each, after, columns, reverse=True)
    return jnp.moveaxis(found, 0, 2).reshape(rows, -1)[:, :width]
