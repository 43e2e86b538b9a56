"""FTRL: a turn is paid for how many of its tool calls solve something that was open.

"Feedback-Driven Tool-Use Improvements in Large Language Models via Automated Build Environments",
https://github.com/bytedance/FTRL

    R    = 2 s / (n + 1), n calls of which s solve an open answer; or s / n, s, s² / n
    without calls: empty -½, broken tags -0.3, the final answer 1 / (1 + u), u open, else ½ if u = 0
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ [PPO clip + β k3] / Σ n_i - c · mean entropy

Training is on single turns from stored states. n, s and what a turn without calls earns are rewards
of the task (`columns`): `counted_calls` and `turn_without_calls` make them. Several right calls in
a turn pay more than 1. The building of environments is not part of it.
"""

from collections.abc import Callable, Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.experience import experience, shape
from rlvr_jax.objectives import (
    entropy_bonus,
    group_normalized,
    kl_penalty,
)
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.rewards.parts import Shaping, judged_mean
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon, KLCoefficient
from rlvr_jax.types.parts import part

Rows = Float[Array, "B"]


CallScore = Callable[[Array, Array], Array]
"""(calls, solved) -> score, of rows with calls."""


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


def automated_tool_envs(
    score: CallScore = call_f1,
    columns: Sequence[int] = (0, 1, 2),
    kl_coefficient: KLCoefficient = 0.001,
    entropy_coefficient: float = 0.001,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO on the token mean, on useful calls of tools.

    Args:
      score: of calls and solved answers: `call_f1`, `call_precision`, `call_rate` or
        `call_rate_precision`.
      columns: of the task's rewards: calls, solved, reward of a turn without calls.
      entropy_coefficient: weight of the entropy (c).
    """
    terms = [kl_penalty(kl_coefficient)] if kl_coefficient else []
    terms += [entropy_bonus(entropy_coefficient)] if entropy_coefficient else []
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            advantage=group_normalized(epsilon),
            regularizers=terms,
        ),
        experience=experience(stages=[shape(useful_calls(*columns, score=score))]),
    )


METHOD = Method(
    automated_tool_envs,
    "Feedback-Driven Tool-Use Improvements in Large Language Models via Automated Build"
    " Environments",
    "https://github.com/bytedance/FTRL",
    changes="reward",
    left_out="the building of environments",
    reports=(
        "better use of tools at several model sizes, general abilities kept (abstract, no numbers)"
    ),
    traps=(
        "its F1 is of s/n and s, not of a true recall: two right calls in a turn earn 1.33; the "
        "final answer too early earns 1 / (1 + u); the task must bring the three rewards of "
        "`columns`"
    ),
)
