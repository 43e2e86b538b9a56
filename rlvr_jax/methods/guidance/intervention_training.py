"""InT: the policy finds the step that should have stood where it went wrong, and imitates it.

"InT: Self-Proposed Interventions Enable Credit Assignment in LLM Reasoning", of which the abstract
was read.

    t* = the first step of a wrong answer whose score is below a bound
    ỹ  = one step that the policy proposes behind the steps before t*, shown the worked solution
    kept if one of 32 continuations of (prompt, y_{<t*}, ỹ) is right
    loss = mean of -logp over the tokens of y_{<t*} and ỹ, behind the prompt alone

The beginning is the policy's own text, so what is new is one step; a whole solution would be far
from the policy. This is the first stage; the second is RL from its weights (`grpo` with
`--model`). In the notes the policy finds t* itself; here it is the first step that the task scores
as wrong. A sum over the original answer's step t*, as the notes print it, would imitate the error.
"""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np

from rlvr_jax.experience import experience, score_steps
from rlvr_jax.experience.asks import PLAIN, View
from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.donors.imitate_right import to_imitate
from rlvr_jax.experience.stages.rewards.score_steps import scored_steps
from rlvr_jax.experience.stages.rounds.first_errors import RIGHT, repairable
from rlvr_jax.experience.views import hint
from rlvr_jax.objectives import imitate
from rlvr_jax.objectives.compositions import objective_of_terms
from rlvr_jax.tasks.base import Grade, Task
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import Count, Finite
from rlvr_jax.types.parts import part


def imitated_steps(step: np.ndarray, mask: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Tokens of the steps up to the first wrong one, that included, bool [B, T]; none without one.

    Args:
      step, mask: as of `first_wrong_step`.
      first: its result; the step that stands there is the one that replaced the wrong one.
    """
    return mask & (step >= 0) & (step <= first[:, None])


@part(writes=frozenset({"supervised"}), by_row=True)
def imitate_interventions(proposer: View, below: Finite, continuations: Count) -> Stage:
    """Learns from the right beginning of wrong answers and one step that corrects them.

    For every wrong answer with a first wrong step, the policy is shown more (such as the solution)
    and writes on from what stands before that step; of this the first step is the intervention. It
    is kept if one of some continuations, drawn behind it from the prompt as it is, is right. What
    is imitated is the beginning and the intervention, nothing behind them, under the prompt as it
    is. Nothing else is learned from. `score_steps` stands before it.

    Args:
      proposer: what the policy is shown that proposes, such as `hint(1.0)`.
      below: score below which a step is wrong.
      continuations: drawn to try an intervention.
    Reads: outcome, step, process_reward, the task's score_steps. Draws: one row for each answer
      with a wrong step, and the continuations. Writes: mask (nothing is on it), supervised.
    Metrics: proposed_interventions (share of the rows), kept_interventions (share of the rows).
    Raises:
      ValueError: a bound that is not finite, fewer than one continuation.
    """

    def apply(batch, actor, state, turn):
        if batch.rollouts.step is None or batch.rollouts.process_reward is None:
            raise ValueError("imitate_interventions: steps must be scored, put score_steps() first")
        can, start = repairable(batch, below)
        rows = np.flatnonzero(can)
        nothing = to_imitate(batch, np.zeros(len(batch), bool))
        told = {"proposed_interventions": 0.0, "kept_interventions": 0.0}
        if not len(rows):
            return nothing, state, told
        place = np.concatenate([np.arange(len(group)) for group in batch.groups])

        def asked(row, view, samples, given):
            first = int(place[row]) * samples
            own = replace(batch.asks[row], view=view, samples=samples, given=given)
            return replace(own, first_sample=first)

        begun = [batch.rollouts.tokens[row, : start[row]].tolist() for row in rows]
        asks = [asked(row, proposer, 1, ids) for row, ids in zip(rows, begun, strict=True)]
        written = actor.draw(asks, turn.key)
        proposed = _up_to_the_next_step(written, start[rows], turn.setting.task)
        targets = [(row, ids) for row, ids in zip(rows, proposed, strict=True) if ids]
        told["proposed_interventions"] = len(targets) / len(batch)
        if not targets:
            return nothing, state, told
        tries = [asked(row, PLAIN, continuations, ids) for row, ids in targets]
        tried = actor.grade(actor.draw(tries, jax.random.fold_in(turn.key, 1)))
        good = (np.nan_to_num(tried.outcomes()) > RIGHT).any(axis=1)
        kept = [target for target, there in zip(targets, good, strict=True) if there]
        told["kept_interventions"] = len(kept) / len(batch)
        if not kept:
            return nothing, state, told
        plain = [replace(batch.asks[row], view=PLAIN, samples=1, given=()) for row, _ in kept]
        rows = actor.written(plain, [ids for _, ids in kept])
        # They are the beginning of an answer, which nobody grades.
        rows = replace(rows, grades=[Grade(None)] * len(kept), tokenizer=batch.tokenizer)
        return to_imitate(rows, np.ones(len(kept), bool)), state, told

    return Stage(apply, reads=proposer.reads, views=(proposer,))


def _up_to_the_next_step(written: Batch, start: np.ndarray, task: Task) -> list[list[int]]:
    """The tokens of each row up to the end of the first step behind its beginning; none where it
    has no such step, or where nothing could follow it.

    Args:
      start: int [B], tokens of the beginnings.
    """
    tokens = written.rollouts.tokens
    places = np.arange(tokens.shape[1])[None]
    step, _, _ = scored_steps(written, task)
    next_step = np.take_along_axis(step, start[:, None], axis=1)[:, 0]
    there = places < written.rollouts.length[:, None]
    count = imitated_steps(step, there, next_step).sum(axis=1)
    fits = count < tokens.shape[1]
    return [row[: n * fit].tolist() for row, n, fit in zip(tokens, count, fits, strict=True)]


def intervention_training(
    wrong_below: float = 0.0, continuations: int = 32, hint_fraction: float = 1.0
) -> Recipe:
    """Imitation of the right beginning of wrong answers and of one step that corrects them.

    Args:
      wrong_below: score below which a step is wrong; 0.5 where scores are 0 and 1.
      continuations: drawn to try an intervention, of which one must be right.
      hint_fraction: of the worked solution that the policy is shown when it proposes.
    """
    proposed = imitate_interventions(hint(hint_fraction), wrong_below, continuations)
    return Recipe(
        objective=objective_of_terms([imitate(1.0)]),
        experience=experience(stages=[score_steps(), proposed]),
    )


METHOD = Method(
    intervention_training,
    "InT: Self-Proposed Interventions Enable Credit Assignment in LLM Reasoning",
    "",
    changes="surrogate, sampling, guidance",
    evidence="reconstruction",
    left_out="the policy as finder of the error; several epochs over the kept pairs",
    reports="a 4B instruct model: IMO-AnswerBench 11.68 to 25.62 with RL afterwards",
    traps=(
        "the bound of 0 fits signed scores: with 0 and 1 nothing is ever wrong; each wrong answer "
        "costs 32 continuations, and in the paper a quarter gave a target; where none is kept the "
        "loss is 0"
    ),
)
