"""RetroAgent: an episode is also paid for coming further than its task has ever been solved.

"RetroAgent: From Solving to Evolving via Retrospective Dual Intrinsic Feedback",
https://github.com/zhangxy-2019/RetroAgent

    φ    = 1 if right, else the share of its sub-tasks that the response says it has done
    R_i  = outcome + c max(0, φ_i - Φ(prompt)),  Φ ← max(Φ, share of right responses)
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1;  loss = Σ [PPO clip + β k3] / Σ n_i

What runs in the released code is the running maximum; the moving average of the paper is commented
out there. The share is a reward of the task (`column`), theirs of a reflection that the policy
writes after the episode. Lessons that are shown to half of each group (`lesson_scores`,
`updated_utility`) are not part of this. With `tools`, or the task's environment, a response is an
episode of turns.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.experience import experience, shape
from rlvr_jax.methods._tools import named_turns
from rlvr_jax.objectives import group_normalized
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.regularizers.preferences import outcome_is_right
from rlvr_jax.objectives.rewards.parts import Shaping, judged_mean, judged_rows
from rlvr_jax.objectives.statistics.groups import group_mean
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon, KLCoefficient, NonNegative
from rlvr_jax.types.parts import part

Rows = Float[Array, "B"]


def potential(outcome: Rows, progress: Rows) -> Rows:
    """φ: 1 for a right response, else the share of its steps that it says it has done.

    Args:
      outcome: above ½ is right.
      progress: the share, in [0, 1]; 0 where nothing can be read.
    """
    return jnp.where(outcome_is_right(outcome), 1, progress)


def progress(phi: Rows, best: Rows) -> Rows:
    """I = max(0, φ - Φ): how much further than the task has been solved."""
    return jnp.maximum(phi - best, 0)


@part
def beyond_best(column: int, coefficient: NonNegative = 1.0) -> Shaping:
    """R = outcome + c max(0, φ - Φ), Φ the largest share of right responses the prompt ever had.

    The state is Φ of every prompt of the task, 0 at first. What a response says of its own progress
    is not checked: on prompts that are never solved Φ stays and self-praise keeps paying.

    Args:
      column: of the task's rewards, what a response says it has done.
      coefficient: c, at least 0.
    Reads: outcome, group, component_rewards. Metrics: reward/outcome, reward/progress, best_share
      (mean Φ of the batch's rows, before it).
    """

    def init(prompts):
        return np.zeros(prompts, np.float32)

    def apply(rollouts, state, moment):
        kind, number = rollouts.outcome.dtype, np.asarray(moment.prompt)
        known = number < len(state)
        place = np.where(known, number, 0)
        best = jnp.asarray(np.where(known, state[place], 0), kind)
        told = rollouts.component_rewards[:, column]
        phi = potential(rollouts.outcome, jnp.where(jnp.isnan(told), 0, told))
        gain = progress(phi, best)
        share = np.asarray(group_mean(rollouts.outcome, rollouts.group))
        counted = np.asarray(judged_rows(rollouts)) & known
        state = state.copy()
        np.maximum.at(state, place[counted], share[counted].astype(state.dtype))
        metrics = {
            "reward/outcome": judged_mean(rollouts.outcome, rollouts),
            "reward/progress": judged_mean(gain, rollouts),
            "best_share": judged_mean(best, rollouts),
        }
        return rollouts.outcome + coefficient * gain, state, metrics

    reads = frozenset({"component_rewards"})
    return Shaping(apply, init, reads, column + 1)


def updated_utility(utility: Rows, outcome: Rows, rate: float) -> Rows:
    """(1 - β) u + β outcome: what a lesson is worth after it was shown.

    Args:
      rate: β, in [0, 1].
    """
    return (1 - rate) * utility + rate * outcome


def lesson_scores(
    query: Float[Array, "B D"],
    lessons: Float[Array, "B D"],
    utility: Rows,
    uses: Int[Array, "B"],
    similarity: float,
    exploration: float,
    least: float,
) -> tuple[Rows, Bool[Array, "B"], Rows]:
    """Cosine, whether a lesson may be shown, and α cos + (1 - α)(u + κ √(ln Σn / n)).

    Args:
      query: what a lesson is wanted for, one for each lesson.
      lessons: embeddings of the lessons.
      utility: u, of each.
      uses: n, at least 1 each; Σn is that of all.
      similarity: α.
      exploration: κ.
      least: cosine from which on a lesson may be shown.
    """
    dot = jnp.sum(query * lessons, axis=1)
    size = jnp.sqrt(jnp.sum(query**2, axis=1) * jnp.sum(lessons**2, axis=1))
    cosine = dot / jnp.where(size > 0, size, 1)
    number = uses.astype(utility.dtype)
    bonus = jnp.sqrt(jnp.log(jnp.sum(number)) / number)
    score = similarity * cosine + (1 - similarity) * (utility + exploration * bonus)
    return jax.lax.stop_gradient(cosine), cosine >= least, score


def retroagent(
    column: int = 0,
    coefficient: float = 1.0,
    kl_coefficient: KLCoefficient = 0.01,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
    tools: Sequence[str] | None = (),
    style: str = "json",
    max_turns: int = 8,
    reply_tokens: int = 512,
    describe: bool = True,
) -> Recipe:
    """GRPO on the token mean, on outcomes and progress beyond the best so far.

    Args:
      column: of the task's rewards, what the response says it has done, in [0, 1].
      coefficient: of the progress (c).
      tools: that may be called, by name (`named_toolbox`); none: a response is one text; None: the
        task has an environment.
      style: how calls are written: "json", "tags" or "fenced".
      max_turns: replies of a response at most.
      reply_tokens: of a reply at most.
      describe: a system message says what tools there are; it needs a chat template.
    """
    draw = named_turns(tools, style, max_turns, reply_tokens, describe)
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            advantage=group_normalized(epsilon),
            kl_coefficient=kl_coefficient,
        ),
        experience=experience(draw=draw, stages=[shape(beyond_best(column, coefficient))]),
    )


METHOD = Method(
    retroagent,
    "RetroAgent: From Solving to Evolving via Retrospective Dual Intrinsic Feedback",
    "https://github.com/zhangxy-2019/RetroAgent",
    changes="sampling, reward",
    left_out="the reflection after an episode; the memory of lessons",
    reports="over GRPO: ALFWorld 18.3, WebShop 15.4, Sokoban 27.1, MineSweeper 8.9 points",
    traps=(
        "the share is the response's own claim, so self-praise pays on prompts that stay "
        "unsolved; all-wrong groups learn from it alone; the moving average and centring in the "
        "code's comments do not run"
    ),
)
