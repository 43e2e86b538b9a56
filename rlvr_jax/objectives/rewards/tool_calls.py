"""Rewards of a turn with tool calls, of which some solve what was open."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.types import Rollouts

__all__ = ["CallCounts", "counted_calls", "replies_read"]


class CallCounts(NamedTuple):
    """The calls of a turn, and how many of them solved something that was open."""

    calls: int
    solved: int


def counted_calls(
    calls: Sequence[str],
    results: Sequence[str],
    unsolved: dict[str, Sequence[str]],
    equal: Callable[[str, str], bool] = str.__eq__,
) -> CallCounts:
    """Which calls solve an answer that is still open, in their order.

    A call solves the first open answer of its own tool that its result is equal to; each answer is
    solved once.

    Args:
      calls: name of the tool of each call.
      results: what the tools gave.
      unsolved: open answers, by tool.
      equal: (result, answer) -> whether they are the same.
    """
    left = {tool: list(answers) for tool, answers in unsolved.items()}
    solved = 0
    for tool, result in zip(calls, results, strict=True):
        hit = next((one for one in left.get(tool, ()) if equal(result, one)), None)
        if hit is not None:
            left[tool].remove(hit)
            solved += 1
    return CallCounts(len(calls), solved)


def replies_read(rollouts: Rollouts) -> Float[Array, "B"]:
    """How many replies of an environment each row has read: half its last turn's number, as turns
    of the policy are numbered 0, 2, … and replies between them."""
    turn = jnp.asarray(rollouts.turn)
    places = jnp.arange(turn.shape[1], dtype=jnp.int32)[None]
    inside = places < jnp.asarray(rollouts.length)[:, None]
    last = jnp.max(jnp.where(inside, turn, 0), axis=1)
    return jnp.maximum(last, 0).astype(jnp.asarray(rollouts.outcome).dtype) / 2
