"""Rewards of a turn with tool calls, of which some solve what was open."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.objectives.arguments import check_count, check_finite
from rlvr_jax.objectives.rewards.parts import Shaping, judged_mean, shaping
from rlvr_jax.types import Rollouts
from rlvr_jax.types.hyperparameters import Finite
from rlvr_jax.types.parts import Function, part

__all__ = [
    "CallCounts",
    "call_bonus",
    "call_f1",
    "call_precision",
    "call_rate",
    "call_rate_precision",
    "counted_calls",
    "replies_read",
    "reply_bonus",
    "tool_use_reward",
    "turn_without_calls",
    "useful_calls",
]

Rows = Float[Array, "B"]
CallScore = Callable[[Array, Array], Array]
"""(calls, solved) -> score, of rows with calls."""


class CallCounts(NamedTuple):
    """The calls of a turn, and how many of them solved something that was open."""

    calls: int
    solved: int


@part
def call_bonus(bonus: Finite = 0.1, column: int | None = None) -> Shaping:
    """`bonus` for each tool call.

    Args:
      bonus: of one call.
      column: of the task's rewards, the number of calls; None: the turns of a row, as far as rows
        have any.
    Reads: component_rewards, or turn.
    Raises:
      ValueError: a bonus that is not finite, or a negative column.
    Source: SPEAR, https://github.com/TencentYoutuResearch/SPEAR.
    """
    if column is not None:
        check_count(0, "call_bonus", column=column)

    def reward(rollouts):
        if column is not None:
            return bonus * rollouts.component_rewards[:, column]
        if rollouts.turn is None:
            return jnp.zeros_like(rollouts.outcome)
        last = jnp.max(jnp.where(rollouts.mask, rollouts.turn, -1), axis=1)
        return bonus * (last + 1).astype(rollouts.outcome.dtype)

    return shaping(reward, columns=0 if column is None else column + 1)


def call_f1(calls: Rows, solved: Rows) -> Rows:
    """2 s / (n + 1), the harmonic mean of s / n and s: several right calls pay more than 1."""
    return 2 * solved / (calls + 1)


def call_precision(calls: Rows, solved: Rows) -> Rows:
    """s / n."""
    return solved / calls


def call_rate(calls: Rows, solved: Rows) -> Rows:
    """s."""
    del calls
    return solved


def call_rate_precision(calls: Rows, solved: Rows) -> Rows:
    """s² / n."""
    return solved**2 / calls


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


def turn_without_calls(text: str, answer: str, unsolved: int) -> float:
    """What a turn without calls earns: -½ if it is empty, -0.3 with broken tags of a call,
    1 / (1 + u) if it has the final answer, ½ if nothing was open, else 0; the first that holds.

    Args:
      text: of the turn.
      answer: the final one; found as a part of the text, in any case, without commas.
      unsolved: u, answers that are open.
    """
    if not text.strip():
        return -0.5
    if "<tool_call>" in text or "</tool_call>" in text:
        return -0.3
    plain = [part.lower().replace(",", "") for part in (answer, text)]
    if plain[0] and plain[0] in plain[1]:
        return 1 / (1 + unsolved)
    return 0.0 if unsolved else 0.5


@part
def useful_calls(
    calls: int = 0, solved: int = 1, otherwise: int = 2, score: CallScore = call_f1
) -> Shaping:
    """The score of a turn's calls, or what a turn without calls earns.

    Args:
      calls, solved, otherwise: columns of the task's rewards: n, s, and the reward of a turn
        without calls (`turn_without_calls`).
      score: of n and s.
    Reads: component_rewards. Metrics: reward/calls, reward/solved, reward/without_calls.
    Raises:
      ValueError: a negative column.
    Source: FTRL, https://github.com/bytedance/FTRL.
    """
    columns = (calls, solved, otherwise)
    if min(columns) < 0:
        raise ValueError(f"useful_calls: columns must be at least 0, got {columns}")

    def apply(rollouts, state, moment):
        del moment
        number, right, fixed = (rollouts.component_rewards[:, column] for column in columns)
        called = number > 0
        earned = score(jnp.where(called, number, 1), right)
        reward = jnp.where(called, earned, jnp.where(jnp.isnan(number), jnp.nan, fixed))
        metrics = {
            "reward/calls": judged_mean(number, rollouts),
            "reward/solved": judged_mean(jnp.where(called, right, 0), rollouts),
            "reward/without_calls": judged_mean(jnp.where(called, jnp.nan, fixed), rollouts),
        }
        return reward, state, metrics

    reads = frozenset({"component_rewards"})
    return Shaping(apply, reads=reads, columns=max(columns) + 1)


def replies_read(rollouts: Rollouts) -> Float[Array, "B"]:
    """How many replies of an environment each row has read: half its last turn's number, as turns
    of the policy are numbered 0, 2, … and replies between them."""
    turn = jnp.asarray(rollouts.turn)
    places = jnp.arange(turn.shape[1], dtype=jnp.int32)[None]
    inside = places < jnp.asarray(rollouts.length)[:, None]
    last = jnp.max(jnp.where(inside, turn, 0), axis=1)
    return jnp.maximum(last, 0).astype(jnp.asarray(rollouts.outcome).dtype) / 2


@part
def reply_bonus(bonus: Finite = 0.1) -> Shaping:
    """`bonus` for each reply that a row has read, of rows that are written in turns.

    Args:
      bonus: of one reply.
    Reads: turn, length.
    Raises:
      ValueError: a bonus that is not finite.
    Source: SPEAR, https://github.com/TencentYoutuResearch/SPEAR.
    """
    return shaping(lambda rollouts: bonus * replies_read(rollouts))


@part
def tool_use_reward(bonus: float = 0.1, ceiling: float = -0.6) -> Function:
    """1 for a right response, for a wrong one -1 and a bonus for each reply that it has read.

    Args:
      bonus: of a reply; 0: none.
      ceiling: of what a wrong response earns.
    Reads: outcome, turn, length.
    Raises:
      ValueError: a number that is not finite.
    """
    check_finite("tool_use_reward", bonus=bonus, ceiling=ceiling)

    def reward(rollouts):
        calls = replies_read(rollouts)
        wrong = jnp.minimum(-1 + bonus * calls, ceiling) if bonus else jnp.full_like(calls, -1.0)
        return jnp.where(jnp.asarray(rollouts.outcome) >= 0.5, 1.0, wrong)

    return reward
