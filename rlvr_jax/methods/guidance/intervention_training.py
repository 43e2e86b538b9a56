"""InT: the policy proposes the step that corrects its first error, and imitates it.

"InT: Self-Proposed Interventions Enable Credit Assignment in LLM Reasoning" (only the abstract was
read)

    t*   = the first step of an incorrect response whose score is below a bound
    ỹ    = one step that the policy proposes after the steps before t*, shown the worked solution
    use  (y_{<t*}, ỹ) if one of 32 continuations of (prompt, y_{<t*}, ỹ) is correct
    loss = mean of -logp over the tokens of y_{<t*} and ỹ, after the plain prompt

The beginning is the policy's own text, so only one step is new. A whole solution would be far from
the policy. This is the first stage. The second stage is RL from its weights (`grpo` with
`--model`). A reconstruction: in the notes, the policy finds t* itself. Here t* is the first step
that the task scores as incorrect. The notes' sum over the original step t* would imitate the error.

Left out: the policy's search for its error; several epochs over the stored pairs.
Reports: a 4B instruct model on IMO-AnswerBench: 11.68 to 25.62 % with RL afterwards.
Traps: The bound of 0 fits signed scores; with scores of 0 and 1, no step is incorrect. Each
incorrect response costs 32 continuations, and in the paper a quarter of them had a target. Without
any target, the loss is 0.
"""

from dataclasses import replace

import jax
import numpy as np

from rlvr_jax.experience import PLAIN, Batch, Stage, View, experience, score_steps
from rlvr_jax.experience.stages.donors.imitate_correct import to_imitate
from rlvr_jax.experience.stages.rewards.score_steps import scored_steps
from rlvr_jax.experience.stages.rounds.first_errors import repairable, requests_after
from rlvr_jax.experience.views import hint
from rlvr_jax.objectives import imitate, objective_of_terms, part
from rlvr_jax.tasks.base import Task
from rlvr_jax.types import Method, Recipe, is_correct
from rlvr_jax.types.hyperparameters import Count, Finite, Unit
from rlvr_jax.verifiers.grade import Grade


@part(writes={"supervised"}, by_row=True)
def imitate_interventions(proposer: View, below: Finite, continuations: Count) -> Stage:
    """Replaces the batch by beginnings of incorrect responses with one correcting step, to imitate.

    For each incorrect response with an incorrect step, the policy sees the proposer's view and
    continues from the tokens before the first such step. The first step of this text is the
    intervention. It is used if one of its continuations under the plain prompt is correct. Rows to
    imitate have the plain prompt. `score_steps` must come first.

    Args:
      proposer: view for the proposal, such as `hint(1.0)`.
    Samples: one response per row with an incorrect step, and the continuations.
    Metrics: proposed_interventions, accepted_interventions (fractions of the rows).
    """

    def apply(batch, actor, state, turn):
        can, start = repairable(batch, below)
        rows = np.flatnonzero(can)
        nothing = to_imitate(batch, False)
        metrics = {"proposed_interventions": 0.0, "accepted_interventions": 0.0}
        if not len(rows):
            return nothing, state, metrics
        beginnings = [batch.rollouts.tokens[row, : start[row]].tolist() for row in rows]
        proposals = actor.draw(requests_after(batch, rows, beginnings, proposer), turn.key)
        proposed = _up_to_the_next_step(proposals, start[rows], turn.setting.task)
        targets = [(row, ids) for row, ids in zip(rows, proposed, strict=True) if ids]
        metrics["proposed_interventions"] = len(targets) / len(batch)
        if not targets:
            return nothing, state, metrics
        tests = requests_after(batch, *zip(*targets, strict=True), PLAIN, continuations)
        tested = actor.grade(actor.draw(tests, jax.random.fold_in(turn.key, 1)))
        useful = is_correct(np.nan_to_num(tested.outcomes())).any(axis=1)
        accepted = [target for target, there in zip(targets, useful, strict=True) if there]
        metrics["accepted_interventions"] = len(accepted) / len(batch)
        if not accepted:
            return nothing, state, metrics
        plain = [
            replace(batch.requests[row], view=PLAIN, samples=1, given=()) for row, _ in accepted
        ]
        rows = actor.written(plain, [ids for _, ids in accepted])
        # The beginning of a response has no grade.
        rows = replace(rows.graded([Grade(None)] * len(accepted)), tokenizer=batch.tokenizer)
        return to_imitate(rows, True), state, metrics

    return Stage(apply, views=(proposer,))


def _up_to_the_next_step(proposals: Batch, start: np.ndarray, task: Task) -> list[list[int]]:
    """The tokens of each row up to the end of the first step after its beginning.

    There are none without such a step, or if no token fits after it.

    Args:
      start: int [B], tokens of the beginnings.
    """
    tokens = proposals.rollouts.tokens
    places = np.arange(tokens.shape[1])[None]
    step, _, _ = scored_steps(proposals, task)
    next_step = np.take_along_axis(step, start[:, None], axis=1)[:, 0]
    there = places < proposals.rollouts.length[:, None]
    count = imitated_steps(step, there, next_step).sum(axis=1)
    fits = count < tokens.shape[1]
    return [row[: n * fit].tolist() for row, n, fit in zip(tokens, count, fits, strict=True)]


def imitated_steps(step: np.ndarray, mask: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Tokens of the steps up to and including `first`, bool [B, T]; none for rows where it is -1.

    Args:
      step, mask: as of `first_incorrect_step`.
      first: its result; the step with this id is the correction.
    """
    return mask & (step >= 0) & (step <= first[:, None])


def intervention_training(
    incorrect_below: Finite = 0.0, continuations: Count = 32, hint_fraction: Unit = 1.0
) -> Recipe:
    """Imitates the beginning of incorrect responses and one step that corrects them.

    Args:
      incorrect_below: score below which a step is incorrect; 0.5 if scores are 0 and 1.
      continuations: samples that test an intervention, of which one must be correct.
      hint_fraction: fraction of the worked solution that the policy is shown for its proposal.
    """
    imitated = imitate_interventions(hint(hint_fraction), incorrect_below, continuations)
    return Recipe(
        objective=objective_of_terms([imitate(1.0)]),
        experience=experience(stages=[score_steps(), imitated]),
    )


METHOD = Method(
    intervention_training,
    changes="surrogate, sampling, guidance",
    evidence="reconstruction",
)
