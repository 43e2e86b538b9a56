"""Advantages over the turns of a response, each of which is one action."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.objectives.advantages.returns import generalized_advantages
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.steps import Steps, at_tokens, find_steps, step_sum
from rlvr_jax.types import Rollouts, replace
from rlvr_jax.types.hyperparameters import Unit
from rlvr_jax.types.parts import part

__all__ = ["generalized_turn_advantage", "turn_values"]


def turn_values(rollouts: Rollouts) -> Float[Array, "B T"]:
    """V of the turn's first token, before anything of it is written, at each of its tokens."""
    turns = find_steps(rollouts.turn, rollouts.mask)
    return at_tokens(_first(rollouts.values, turns), turns)


@part(writes={"advantage"}, once=True)
def generalized_turn_advantage(discount: Unit = 1.0, trace_decay: Unit = 1.0) -> Transform:
    """Â_n = δ_n + γλ Â_{n+1}, δ_n = r_n + γ V_{n+1} - V_n over the turns n, at every token of n.

    r_n is the sum of the turn's `process_reward`, V_n the value of its first token; after the last
    turn V and Â are 0. With turns of one token it is the recurrence over tokens.

    Args:
      discount, trace_decay: γ and λ per turn, in [0, 1].
    Reads: process_reward, values, turn, mask. Writes: advantage. Metrics: none.
    Raises:
      ValueError: discount or trace_decay outside [0, 1].
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        turns = find_steps(rollouts.turn, signals.mask)
        rewards = step_sum(rollouts.process_reward, turns)
        values = _first(rollouts.values, turns)
        table = generalized_advantages(rewards, values, turns.exists, discount, trace_decay)
        return replace(signals, advantage=at_tokens(table, turns)), state, {}

    reads = {"process_reward", "values", "turn"}
    return Transform(apply, reads=reads)


def _first(values: Float[Array, "B T"], turns: Steps) -> Float[Array, "B T"]:
    """The entry of each turn's first token, as a table; 0 where there is no turn."""
    rows, width = values.shape
    row = jnp.arange(rows, dtype=jnp.int32)[:, None]
    column = jnp.broadcast_to(jnp.arange(width, dtype=jnp.int32)[None], (rows, width))
    own = jnp.where(turns.member, turns.index, width)
    earliest = jnp.full((rows, width), width, jnp.int32).at[row, own].min(column, mode="drop")
    at = jnp.where(turns.exists, earliest, 0)
    return jnp.where(turns.exists, jnp.take_along_axis(values, at, axis=1), 0)
