"""FTRL: the reward of a turn is the fraction of its tool calls that solve an open question.

"Feedback-Driven Tool-Use Improvements in Large Language Models via Automated Build Environments",
https://github.com/bytedance/FTRL

    R    = 2 s / (n + 1), or s / n, or s, or s² / n: n calls, s of which solve an open question
    without calls: empty -½, broken tags -0.3, the final answer 1 / (1 + u), u open, else ½ if u = 0
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ [PPO clip + β k3] / Σ n_i - c · mean entropy

Training uses single turns from stored states. The task provides n, s and the reward of a turn
without calls (`columns`); `rlvr_jax.verifiers.texts.automated_tool_envs` computes them. The task
`tool_turns` has generated states, two tools and their open questions.

Left out: the building of environments from documents by a model; states that a policy sampled.
Reports: The use of tools improves at several model sizes without a loss of general abilities
(abstract, no numbers).
Traps: The F1 is the harmonic mean of s/n and s, so two correct calls in a turn earn 1.33. A final
answer that is given too early still earns 1 / (1 + u). The task must have the rewards of `columns`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.experience import Shaping, experience, judged_mean, shape
from rlvr_jax.objectives import clipped_objective
from rlvr_jax.types import Method, Recipe, Shown, arguments_of, part
from rlvr_jax.types.hyperparameters import EntropyCoefficient, KLCoefficient, NonNegativeInt

Rows = Float[Array, "B"]

CallScore = Callable[[Array, Array], Array]
"""(n, s) -> score, of rows with calls."""


def call_f1(calls: Rows, solved: Rows) -> Rows:
    """2 s / (n + 1), the harmonic mean of s / n and s: several correct calls earn more than 1."""
    return 2 * solved / (calls + 1)


@part
def useful_calls(
    calls: NonNegativeInt = 0,
    solved: NonNegativeInt = 1,
    otherwise: NonNegativeInt = 2,
    score: CallScore = call_f1,
) -> Shaping:
    """The score of a turn's calls, or the task's reward of a turn without calls.

    Args:
      calls, solved, otherwise: `columns` of `automated_tool_envs`.
      score: reward of a turn with calls, from the numbers of its calls and of its solving calls,
        [B] each: `call_f1`, or a function with its arguments.
    Reads: component_rewards. Metrics: reward/calls (mean number of calls), reward/solved (mean
      number of solving calls), reward/without_calls (mean reward of turns without calls).
    """
    columns = (calls, solved, otherwise)

    def apply(rollouts, state, moment):
        number, solving, fixed = (
            rollouts.records["component_rewards"][:, column] for column in columns
        )
        called = number > 0
        earned = score(jnp.where(called, number, 1), solving)
        reward = jnp.where(called, earned, jnp.where(jnp.isnan(number), jnp.nan, fixed))
        metrics = {
            "reward/calls": judged_mean(number, rollouts),
            "reward/solved": judged_mean(jnp.where(called, solving, 0), rollouts),
            "reward/without_calls": judged_mean(jnp.where(called, jnp.nan, fixed), rollouts),
        }
        return reward, state, metrics

    reads = frozenset({"component_rewards"})
    return Shaping(apply, reads=reads, columns=max(columns) + 1)


def call_precision(calls: Rows, solved: Rows) -> Rows:
    """s / n."""
    return solved / calls


def call_rate(calls: Rows, solved: Rows) -> Rows:
    """s."""
    return solved


def call_rate_precision(calls: Rows, solved: Rows) -> Rows:
    """s² / n."""
    return solved**2 / calls


@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon")
def automated_tool_envs(
    score: CallScore = call_f1,
    columns: Sequence[NonNegativeInt] = (0, 1, 2),
    kl_coefficient: KLCoefficient = 0.001,
    entropy_coefficient: EntropyCoefficient = 0.001,
    **clip: Any,
) -> Recipe:
    """Applies GRPO with the token mean, rewarded for useful tool calls.

    Args:
      score: function of calls and solved questions: `call_f1`, `call_precision`, `call_rate` or
        `call_rate_precision`.
      columns: of the task's rewards: calls, solved, reward of a turn without calls.
    """
    return Recipe(
        objective=clipped_objective(
            kl_coefficient=kl_coefficient, entropy_coefficient=entropy_coefficient, **clip
        ),
        experience=experience(stages=[shape(useful_calls(*columns, score=score))]),
    )


METHOD = Method(
    automated_tool_envs,
    changes="reward",
    shown=Shown("tool_turns", "experience/reward/solved"),
)
