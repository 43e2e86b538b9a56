"""Credit of rows that branched off one another, or were found by a search."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.arguments import check_positive
from rlvr_jax.objectives.statistics.groups import group_count, group_mean, group_std, group_sum
from rlvr_jax.objectives.statistics.trees import branch_points, parent_rows
from rlvr_jax.types import Rollouts, replace
from rlvr_jax.types.hyperparameters import NonNegative
from rlvr_jax.types.parts import part

__all__ = [
    "between_branch_points",
    "last_token_centered",
    "prefix_values",
    "shorten_right_rows",
    "stretch_credit",
]


def prefix_values(
    reward: Float[Array, "B"], group: Int[Array, "B"], points: Bool[Array, "B T"]
) -> Float[Array, "B T"]:
    """V(k): mean reward of the prompt's rows that have position k among their branch points; 0
    where none has.

    Args:
      points: of `branch_points`.
    """
    columns = jax.vmap(group_sum, in_axes=(1, None, 1), out_axes=1)
    rewards = jnp.broadcast_to(reward[:, None], points.shape)
    number = columns(points.astype(reward.dtype), group, points)
    return columns(rewards, group, points) / jnp.maximum(number, 1)


@part(writes={"advantage"})
def between_branch_points(length_penalty: NonNegative = 0.0) -> Transform:
    """A_t = V(k₁) - V(k₀) between two branch points of a row, R - V(k₀) behind the last one.

    V(k) is the mean reward of the prompt's rows that branch, or are branched off, at position k
    (`prefix_values`); positions are pooled over the tree, as the authors have it. Each stretch of a
    row is credited with how much better what follows from its end is than from its beginning.

    With a length penalty, rows that earn anything (|R| > 1e-6) pay for what is longer than the
    shortest of them behind the last branch point k that both have: A_t ← A_t - f |A_t| from k on,
    f = 1 - ((L_s - k) / (L - k))^λ where that is positive.

    Args:
      length_penalty: λ; 0: off.
    Reads: reward, group, parent, branch_position, length. Writes: advantage. Metrics: none.
    Raises:
      ValueError: a negative penalty.
    Source: ROSE, https://github.com/ZiqiZhao1/ROSE-rl (`core_algos.py`).
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        parent = parent_rows(rollouts.parent, rollouts.rollout_id)
        tokens = signals.mask.shape[1]
        points = branch_points(parent, rollouts.branch_position, tokens)
        advantage, _ = stretch_credit(rollouts, points)
        if length_penalty:
            advantage = shorten_right_rows(advantage, rollouts, points, length_penalty)
        return replace(signals, advantage=jnp.where(signals.mask, advantage, 0)), state, {}

    return apply


def stretch_credit(rollouts: Rollouts, points: Bool[Array, "B T"]) -> tuple[Array, Array]:
    """The advantage of each token and the value of the beginning of its stretch, [B, T]."""
    width = points.shape[1]
    places = jnp.arange(width, dtype=jnp.int32)[None]
    value = prefix_values(rollouts.reward, rollouts.group, points)
    inside = points & (places < rollouts.length[:, None])
    first = jax.lax.cummax(jnp.where(inside, places, 0), axis=1)
    beyond = jnp.where(inside, places, width)
    # The next one behind each place: the smallest from there on, one place further.
    following = jax.lax.cummin(beyond, axis=1, reverse=True)
    following = jnp.pad(following[:, 1:], ((0, 0), (0, 1)), constant_values=width)
    begun = jnp.take_along_axis(value, first, axis=1)
    ended = jnp.take_along_axis(value, jnp.minimum(following, width - 1), axis=1)
    ended = jnp.where(following < width, ended, rollouts.reward[:, None])
    return ended - begun, begun


def shorten_right_rows(
    advantage: Float[Array, "B T"],
    rollouts: Rollouts,
    points: Bool[Array, "B T"],
    exponent: float,
) -> Float[Array, "B T"]:
    """The length penalty of `between_branch_points`.

    Args:
      points: of `branch_points`.
      exponent: λ, positive.
    """
    check_positive("shorten_right_rows", exponent=exponent)
    length, width = rollouts.length, points.shape[1]
    rows = jnp.arange(len(length), dtype=jnp.int32)
    places = jnp.arange(width, dtype=jnp.int32)[None]
    counts = jnp.abs(rollouts.reward) > 1e-6
    same = (rollouts.group[:, None] == rollouts.group[None]) & counts[None]
    lengths = jnp.where(same, length[None], jnp.iinfo(length.dtype).max)
    shortest = jnp.argmin(lengths, axis=1).astype(jnp.int32)
    several = group_count(rollouts.group, counts) > 1
    both = points & points[shortest]
    both &= places <= jnp.minimum(length, length[shortest])[:, None]
    common = jnp.max(jnp.where(both, places, 0), axis=1)
    own = (length - common).astype(advantage.dtype)
    other = (length[shortest] - common).astype(advantage.dtype)
    share = 1 - (other / jnp.where(own > 0, own, 1)) ** exponent
    pays = counts & several & (shortest != rows) & (own > 0) & (share > 0)
    behind = pays[:, None] & (places >= common[:, None]) & (places < length[:, None])
    return jnp.where(behind, advantage - share[:, None] * jnp.abs(advantage), advantage)


@part(reads={"process_reward"}, writes={"advantage"})
def last_token_centered(epsilon: float | None = None) -> Transform:
    """A_t = r_t - mean over the prompt's rows of the reward of their last token.

    r_t is `process_reward`, of every token; no standard deviation unless it is asked for.

    Args:
      epsilon: A is divided by the population's standard deviation of the same rewards plus this;
        None: not divided.
    Reads: process_reward, group. Writes: advantage. Metrics: none.
    Raises:
      ValueError: epsilon not positive.
    Source: DeepSearch, https://github.com/smiles724/DeepSearch (`reward_manager/advantage_fn.py`).
    """
    if epsilon is not None:
        check_positive("last_token_centered", epsilon=epsilon)

    def apply(signals, context, state):
        rollouts, mask = context.rollouts, signals.mask
        places = jnp.arange(mask.shape[1], dtype=jnp.int32)[None]
        last = jnp.max(jnp.where(mask, places, 0), axis=1, keepdims=True)
        reward = jnp.take_along_axis(rollouts.process_reward, last, axis=1)[:, 0]
        counted = jnp.any(mask, axis=1)
        baseline = group_mean(reward, rollouts.group, where=counted)[:, None]
        own = rollouts.process_reward - baseline
        if epsilon is not None:
            spread = group_std(reward, rollouts.group, where=counted, ddof=0)
            own = own / (spread + epsilon)[:, None]
        return replace(signals, advantage=jnp.where(mask, own, 0)), state, {}

    return apply
