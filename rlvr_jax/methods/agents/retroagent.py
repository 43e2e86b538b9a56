"""RetroAgent: adds a reward for progress beyond the best past success on the same task.

"RetroAgent: From Solving to Evolving via Retrospective Dual Intrinsic Feedback",
https://github.com/zhangxy-2019/RetroAgent

    φ    = 1 if correct, else the fraction of its sub-tasks that the response claims to have done
    R_i  = outcome + c max(0, φ_i - Φ(prompt)),  Φ ← max(Φ, fraction of correct responses)
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1;  loss = Σ [PPO clip + β k3] / Σ n_i

φ is a reward of the task (`column`). In the paper, it is the result of a reflection that the policy
writes after the episode. The running maximum Φ is active in the released code. The moving average
of the paper is commented out there. The paper also shows lessons to half of each group. With
`tools`, or the task's environment, a response is an episode of turns.

Left out: the reflection after an episode; the memory of lessons.
Reports: gains over GRPO in points: ALFWorld 18.3, WebShop 15.4, Sokoban 27.1, MineSweeper 8.9.
Traps: φ is the response's report about itself, so overstatement pays on prompts that stay unsolved.
Groups without a success learn only from φ. The released code has moving average and centering only
in comments.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from rlvr_jax.experience import Shaping, experience, judged_mean, judged_rows, shape
from rlvr_jax.methods._tools import Tools
from rlvr_jax.objectives import clipped_objective, group_mean
from rlvr_jax.types import Method, Recipe, arguments_of, is_correct, part
from rlvr_jax.types.hyperparameters import NonNegative, NonNegativeInt


@part
def beyond_best(column: NonNegativeInt, coefficient: NonNegative = 1.0) -> Shaping:
    """R = outcome + c max(0, φ - Φ), Φ the largest past fraction of correct responses.

    The state is Φ of every prompt of the task, 0 at first. The reported progress is not checked: on
    prompts that are never solved, Φ stays 0 and overstatement always pays.

    Args:
      column, coefficient: as for `retroagent`; NaN of the column counts as 0.
    Reads: outcome, group, component_rewards. Metrics: reward/outcome (mean outcome),
      reward/progress (mean of max(0, φ - Φ)), best_fraction (mean Φ of the batch's rows, before
      it).
    """

    def init(prompts):
        return np.zeros(prompts, np.float32)

    def apply(rollouts, state, moment):
        kind, number = rollouts.outcome.dtype, np.asarray(moment.prompt)
        known = number < len(state)
        place = np.where(known, number, 0)
        best = jnp.asarray(np.where(known, state[place], 0), kind)
        claimed = rollouts.records["component_rewards"][:, column]
        claimed = jnp.where(jnp.isnan(claimed), 0, claimed)
        potential = jnp.where(is_correct(rollouts.outcome), 1, claimed)
        gain = jnp.maximum(potential - best, 0)
        solved = np.asarray(group_mean(rollouts.outcome, rollouts.group))
        counted = np.asarray(judged_rows(rollouts)) & known
        state = state.copy()
        np.maximum.at(state, place[counted], solved[counted].astype(state.dtype))
        metrics = {
            "reward/outcome": judged_mean(rollouts.outcome, rollouts),
            "reward/progress": judged_mean(gain, rollouts),
            "best_fraction": judged_mean(best, rollouts),
        }
        return rollouts.outcome + coefficient * gain, state, metrics

    return Shaping(apply, init, frozenset({"component_rewards"}), column + 1)


@arguments_of(Tools, into="tools")
@arguments_of(
    clipped_objective, "clip_low", "clip_high", "epsilon", "kl_coefficient", kl_coefficient=0.01
)
def retroagent(
    column: NonNegativeInt = 0, coefficient: NonNegative = 1.0, *, tools: Tools, **clip: Any
) -> Recipe:
    """Applies GRPO with the token mean to outcomes and progress beyond the best so far.

    Args:
      column: index of the task's reward that is the reported fraction of sub-tasks, in [0, 1].
      coefficient: weight of the progress (c).
    """
    draw = tools.draw() if tools else None
    return Recipe(
        objective=clipped_objective(**clip),
        experience=experience(draw=draw, stages=[shape(beyond_best(column, coefficient))]),
    )


METHOD = Method(retroagent, changes="sampling, reward")
