"""What proposals are worth: how often the policy solves what it has proposed."""

from __future__ import annotations

import numpy as np

from rlvr_jax.experience.asks import Ask
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.problems.written import pass_rates
from rlvr_jax.objectives import (
    composed_proposer_reward,
    composed_solver_reward,
    learnability,
)
from rlvr_jax.tasks.worlds.triplets import graded_proposal, is_proposal, solve_prompt
from rlvr_jax.types.hyperparameters import Count, Finite
from rlvr_jax.types.parts import part

__all__ = ["earn_learnability"]

RIGHT = 0.5
"""An outcome above this counts as right."""
READABLE = "readable"
"""Of `Grade.info`: whether there is an answer, or a proposal; there is where that says nothing."""


@part(by_row=True)
def earn_learnability(samples: Count, wrong: Finite = -0.5, malformed: Finite = -1.0) -> Stage:
    """Pays proposals by how the policy solves them, and answers by whether they are right.

    It stands behind `propose_and_solve`. Each valid proposal is answered some times, which is not
    learned from; with s the share of right answers it earns 1 - s if that is above 0 and s is, too,
    `wrong` else, and `malformed` if it is none. An answer earns 1, `wrong`, or `malformed`.

    Args:
      samples: answers to each proposal.
      wrong, malformed: rewards.
    Reads: Grade.info["readable"], Grade.answer (of a proposal: its triplet). Writes: reward.
    Metrics: valid_proposals (share of them), proposal_rate (how often valid ones are solved),
      learnable_proposals (share of the valid ones), solved (share of answers that are right).
    Raises:
      ValueError: no samples, a reward that is not finite.
    Source: Absolute Zero, https://github.com/LeapLabTHU/Absolute-Zero-Reasoner.
    """

    def apply(batch, actor, state, turn):
        task = turn.setting.task
        proposed = np.array([is_proposal(ask.prompt) for ask in batch.asks])
        right = batch.decided & (batch.rollouts.outcome > RIGHT)
        readable = np.array([grade.info.get(READABLE, 1.0) > 0 for grade in batch.grades])
        reward = np.asarray(composed_solver_reward(right, readable, wrong, malformed)).copy()
        told = {}
        if (~proposed).any():
            told["solved"] = float(right[~proposed].mean())
        if proposed.any():
            read = map(graded_proposal, batch.prompts, batch.grades)
            found = {row: triplet for row, triplet in enumerate(read) if triplet is not None}
            valid = np.isin(np.arange(len(batch)), list(found))
            worth = np.zeros(len(batch))
            told["valid_proposals"] = float(valid[proposed].mean())
            if found:
                start = len(task.train) + turn.setting.prompts * turn.setting.rounds
                prompts = [
                    solve_prompt(task.world, batch.asks[row].prompt.answer["kind"], triplet)
                    for row, triplet in found.items()
                ]
                asks = [Ask(p, start + place, samples) for place, p in enumerate(prompts)]
                rates = pass_rates(actor.grade(actor.draw(asks, turn.key)).outcomes())
                worth[list(found)] = np.asarray(learnability(rates))
                told["proposal_rate"] = float(rates.mean())
                told["learnable_proposals"] = float((worth[list(found)] > 0).mean())
            earned = composed_proposer_reward(worth, valid, wrong, malformed)
            reward[proposed] = np.asarray(earned)[proposed]
        reward = np.where(batch.decided, reward, 0).astype(batch.rollouts.reward.dtype)
        return batch.with_rollouts(reward=reward), state, told

    return apply
