"""Advantages for two agents that play with each other: favour the other if one did well so far.

A column of `[B, T]` is a turn of the game: a token, or what `turn` says where turns have several
tokens. The agents of a game are two rows of one group, in the
order of `rollout_id`: the first with the second, the third with the fourth, …; the last row of an
odd group is alone. Where an advantage does not exist it counts as 0.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.objectives.advantages.returns import discounted_returns
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.arguments import check_within
from rlvr_jax.objectives.statistics.group_order import group_rank
from rlvr_jax.objectives.statistics.groups import group_count
from rlvr_jax.objectives.statistics.steps import at_tokens, find_steps, step_mean
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import Finite
from rlvr_jax.types.parts import part

__all__ = [
    "aligned_with_partner",
    "alignment_term",
    "discounted_past",
    "partner_row",
    "past_mean",
]


def partner_row(group: Int[Array, "B"], rollout_id: Int[Array, "B"]) -> Int[Array, "B"]:
    """Row of the other agent of the game; -1 if there is none."""
    order = jnp.lexsort((rollout_id, group)).astype(jnp.int32)
    rank = group_rank(rollout_id, group, rollout_id)
    start = jnp.searchsorted(jnp.sort(group), group).astype(jnp.int32)
    other = rank ^ 1
    exists = other < group_count(group)
    return jnp.where(exists, order[jnp.where(exists, start + other, 0)], -1)


def past_mean(advantage: Float[Array, "B T"]) -> Float[Array, "B T"]:
    """(1/t) Σ_{s < t} A_s; 0 in the first column."""
    before = jnp.cumsum(advantage, axis=1) - advantage
    turn = jnp.arange(advantage.shape[1]).astype(advantage.dtype)
    return before / jnp.maximum(turn, 1)[None]


def discounted_past(advantage: Float[Array, "B T"], discount: float) -> Float[Array, "B T"]:
    """γ Σ_{s < t} γ^{t-s} A_s: the turn before has weight γ²."""
    everywhere = jnp.ones(advantage.shape, bool)
    backwards = discounted_returns(advantage[:, ::-1], everywhere, discount)[:, ::-1]
    return discount**2 * jnp.pad(backwards[:, :-1], ((0, 0), (1, 0)))


def alignment_term(
    past: Float[Array, "B T"], advantage: Float[Array, "B T"], partner: Int[Array, "B"]
) -> Float[Array, "B T"]:
    """The own past times the other agent's present advantage; 0 for a row that is alone.

    Args:
      past: of the own advantages, `past_mean` or `discounted_past`.
      advantage: 0 where there is none.
      partner: of `partner_row`.
    """
    return jnp.where((partner >= 0)[:, None], past * advantage[partner], 0)


@part(writes={"advantage"})
def aligned_with_partner(
    estimator: Transform,
    weight: Finite = 1.0,
    discount: float | None = None,
    ids: str | None = None,
) -> Transform:
    """A'_t = A_t + w · past_t · A^other_t, the advantage-alignment term of the released code.

    Products of normalized advantages have heavy tails.

    Args:
      estimator: of the own advantage A.
      weight: w.
      discount: γ of `discounted_past`, in [0, 1], the written form; None: `past_mean`, the
        released one.
      ids: field of `Rollouts` that numbers the turns, such as "turn"; A of a turn is then the mean
        over its tokens, and all of them get A'. None: each token is one.
    Reads: what the estimator reads, group, rollout_id, mask, the ids. Writes: advantage.
    Metrics: the estimator's.
    Raises:
      ValueError: weight not finite, or discount outside [0, 1].
    Source: https://github.com/jduquevan/advantage-alignment.
    """
    if discount is not None:
        check_within(0, 1, "aligned_with_partner", discount=discount)

    def apply(signals, context, state):
        signals, state, metrics = estimator.apply(signals, context, state)
        own = jnp.where(signals.mask, signals.advantage, 0)
        if ids is not None:
            turns = find_steps(getattr(context.rollouts, ids), signals.mask)
            own = step_mean(own, turns)
        partner = partner_row(context.rollouts.group, context.rollouts.rollout_id)
        past = past_mean(own) if discount is None else discounted_past(own, discount)
        aligned = own + weight * alignment_term(past, own, partner)
        if ids is None:
            advantage = jnp.where(signals.mask, aligned, 0)
        else:
            advantage = at_tokens(aligned, turns)
        return replace(signals, advantage=advantage), state, metrics

    of_turns = {} if ids is None else {"ids": ids}
    # The partner's row is read, whose old log-probs may be those of the current pass.
    reads = estimator.reads | ({"batch_statistics"} if "logp" in estimator.reads else set())
    reads |= {*of_turns.values()}
    return Transform(
        apply, init=estimator.init, reads=reads, remark=estimator.remark, options=estimator.options
    )
