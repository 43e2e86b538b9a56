"""InT: the policy finds its first error, proposes the step that corrects it, and imitates it.

"InT: Self-Proposed Interventions Enable Credit Assignment in LLM Reasoning" (only the abstract was
read)

    t*   = the first incorrect step of an incorrect response, as the policy finds it
    ỹ    = the step that the policy writes in place of t*, shown the worked solution and all steps
    use  (y_{<t*}, ỹ) if one of 32 continuations of (prompt, y_{<t*}, ỹ) is correct
    loss = mean of -logp over the tokens of y_{<t*} and ỹ, after the plain prompt

The beginning is the policy's own text, so only one step is new. A whole solution would be far from
the policy. This is the first stage. The second stage is RL from its weights (`grpo` with
`--model`). Steps are separated by blank lines. Policies that cannot read a request have
`finder=scores`. The first step that the task scores as incorrect is then t*. The first step that
the policy writes after y_{<t*}, shown the worked solution, is ỹ. A reconstruction: the request and
its form are ours. The notes' sum over the original step t* would imitate the error. The targets of
a step are imitated in four epochs (`--epochs`); in the paper, those of all prompts.

Left out: a search over all prompts before the first epoch.
Reports: a 4B instruct model on IMO-AnswerBench: 11.68 to 25.62 % with RL afterwards.
Traps: Each incorrect response costs 32 continuations, and in the paper a quarter of them had a
target. Without any target, the loss is 0. A budget that truncates the proposal makes it unreadable.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import jax
import numpy as np

from rlvr_jax.experience import PLAIN, Batch, ShownPrompt, Stage, View, experience, score_steps
from rlvr_jax.experience.parts import Actor, StepContext
from rlvr_jax.experience.stages.donors.imitate_correct import to_imitate
from rlvr_jax.experience.stages.rewards.score_steps import (
    bound_of_steps,
    scored_steps,
    tokens_up_to,
)
from rlvr_jax.experience.stages.rounds.first_errors import repairable, requests_after
from rlvr_jax.experience.views import hint
from rlvr_jax.objectives import imitate, objective_of_terms, part
from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.types import Method, Recipe, Shown, is_correct
from rlvr_jax.types.hyperparameters import Count, Finite, Unit
from rlvr_jax.verifiers.grade import Grade

Target = tuple[int, list[int]]
"""A row, and the tokens of its correct beginning and of the intervention."""

SOLUTION, RESPONSE = "A correct solution:\n", "A response with an incorrect result:\n"
REQUEST = "Write the first incorrect step of this response again, corrected, on one line."
# The reply begins with this word, and continues with the number of the step.
OPENING = "Step"
_STEP = re.compile(r"\s*\S.*?(?:\n\s*\n|\Z)", re.DOTALL)
_REPLY = re.compile(rf"\s*{OPENING}\s*(\d{{1,4}})\s*[:.)]\s*(\S[^\n]*)(\n|\Z)", re.IGNORECASE)


@part(reads={"solution"}, fraction=1.0, responses=2)
def error_request(steps: Sequence[str]) -> View:
    """Shows the worked solution and the numbered steps of a response; requests the correction."""

    def show(prompt: Prompt, task: Task) -> ShownPrompt:
        listed = "\n".join(f"{OPENING} {n}: {step.strip()}" for n, step in enumerate(steps, 1))
        solution = "".join(prompt.solution).strip()
        texts = prompt.text, SOLUTION + solution, RESPONSE + listed, REQUEST
        return ShownPrompt("\n\n".join(texts), OPENING)

    return View(show)


def steps_of(text: str) -> list[str]:
    """The steps of a response with the blank lines after them."""
    return _STEP.findall(text)


def read_intervention(reply: str, steps: int, truncated: bool = False) -> tuple[int, str] | None:
    """The step that a reply replaces, from 0, and its replacement.

    Args:
      reply: such as "Step 2: 7 times 8 is 56."; further lines are not read.
      steps: number of steps of the response.
      truncated: the budget ended the reply.
    Returns:
      None without a number of a step, or without a complete replacement.
    """
    found = _REPLY.match(reply)
    if found is None or not 1 <= int(found[1]) <= steps or (truncated and not found[3]):
        return None
    return int(found[1]) - 1, found[2].strip()


@part(writes={"supervised"}, by_row=True)
def imitate_own_interventions(continuations: Count) -> Stage:
    """Replaces the batch by correct beginnings with the policy's own correcting step, to imitate.

    The policy is shown the worked solution and the numbered steps of each of its incorrect
    responses. It writes the number of the first incorrect step and a step in its place. Targets are
    accepted as in `imitate_scored_interventions`. Replies without a step and its replacement, and
    responses that do not fit, are unreadable.

    Samples: one reply per incorrect row, and the continuations.
    Metrics: proposed_interventions, accepted_interventions, unreadable_interventions (fractions of
      the rows).
    """

    def apply(batch, actor, state, turn):
        rows = np.flatnonzero(batch.decided & ~is_correct(batch.rollouts.outcome)).tolist()
        responses, room = batch.responses, 2 * turn.setting.response_tokens
        steps = {row: steps_of(responses[row].text) for row in rows}
        # Longer lists of steps may leave no positions for the reply.
        shown = [row for row in rows if steps[row] and _listed(actor, steps[row]) <= room]
        targets: list[Target] = []
        if shown:
            requests = [
                replace(request, view=error_request(tuple(steps[row])))
                for row, request in zip(
                    shown, requests_after(batch, shown, [[]] * len(shown), PLAIN), strict=True
                )
            ]
            replies = actor.draw(requests, turn.key).responses
            for row, reply in zip(shown, replies, strict=True):
                found = read_intervention(reply.text, len(steps[row]), reply.truncated)
                if found is not None:
                    ids = _beginning(batch, row, "".join(steps[row][: found[0]]))
                    targets.append((row, ids + list(actor.encode(found[1]))))
        targets = [(row, ids) for row, ids in targets if len(ids) < turn.setting.response_tokens]
        counts = {"unreadable_interventions": (len(rows) - len(targets)) / len(batch)}
        imitated, metrics = _accepted(batch, actor, turn, targets, continuations)
        return imitated, state, metrics | counts

    return Stage(apply, views=(error_request(()),))


def _listed(actor: Actor, steps: Sequence[str]) -> int:
    """Number of tokens of the numbered steps."""
    return len(actor.encode("".join(f"{OPENING} {n}: {s}" for n, s in enumerate(steps, 1))))


def _beginning(batch: Batch, row: int, text: str) -> list[int]:
    """The first tokens of a row, with this text."""
    if not text:
        return []
    ids = batch.rollouts.tokens[row, : batch.rollouts.length[row]].tolist()
    return ids[: tokens_up_to(batch.tokenizer, ids, [len(text)])[0]]


@part(writes={"supervised"}, by_row=True)
def imitate_scored_interventions(
    proposer: View, continuations: Count, incorrect_below: Finite | None = None
) -> Stage:
    """Replaces the batch by beginnings of incorrect responses with one correcting step, to imitate.

    For each incorrect response with an incorrect step, the policy sees the proposer's view and
    continues from the tokens before the first such step. The first step of this text is the
    intervention. It is used if one of its continuations under the plain prompt is correct. Rows to
    imitate have the plain prompt. `score_steps` must come first.

    Args:
      proposer: view for the proposal, such as `hint(1.0)`.
      incorrect_below: score below which a step is incorrect; None: the middle of the task's range.
    Samples: one response per row with an incorrect step, and the continuations.
    Metrics: proposed_interventions, accepted_interventions (fractions of the rows).
    Raises:
      ValueError: at the start of a run, a bound that no score, or every score, is below.
    """

    def init(setting):
        bound_of_steps(incorrect_below, setting.task)
        return ()

    def apply(batch, actor, state, turn):
        task = turn.setting.task
        can, start = repairable(batch, bound_of_steps(incorrect_below, task))
        rows, targets = np.flatnonzero(can), []
        if len(rows):
            beginnings = [batch.rollouts.tokens[row, : start[row]].tolist() for row in rows]
            proposals = actor.draw(requests_after(batch, rows, beginnings, proposer), turn.key)
            proposed = _up_to_the_next_step(proposals, start[rows], task)
            targets = [(row, ids) for row, ids in zip(rows, proposed, strict=True) if ids]
        imitated, metrics = _accepted(batch, actor, turn, targets, continuations)
        return imitated, state, metrics

    return Stage(apply, init, views=(proposer,))


def _accepted(
    batch: Batch,
    actor: Actor,
    turn: StepContext,
    targets: Sequence[Target],
    continuations: int,
) -> tuple[Batch, dict[str, float]]:
    """The targets with a correct continuation as rows to imitate, and metrics."""
    metrics = {"proposed_interventions": len(targets) / len(batch), "accepted_interventions": 0.0}
    if not targets:
        return to_imitate(batch, False), metrics
    tests = requests_after(batch, *zip(*targets, strict=True), PLAIN, samples=continuations)
    tested = actor.grade(actor.draw(tests, jax.random.fold_in(turn.key, 1)))
    useful = is_correct(np.nan_to_num(tested.outcomes())).any(axis=1)
    accepted = [target for target, there in zip(targets, useful, strict=True) if there]
    metrics["accepted_interventions"] = len(accepted) / len(batch)
    if not accepted:
        return to_imitate(batch, False), metrics
    plain = [replace(batch.requests[row], view=PLAIN, samples=1, given=()) for row, _ in accepted]
    rows = actor.written(plain, [ids for _, ids in accepted])
    # The beginning of a response has no grade.
    rows = replace(rows.graded([Grade(None)] * len(accepted)), tokenizer=batch.tokenizer)
    return to_imitate(rows, True), metrics


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
    finder: Literal["policy", "scores"] = "policy",
    continuations: Count = 32,
    incorrect_below: Finite | None = None,
    hint_fraction: Unit = 1.0,
) -> Recipe:
    """Imitates the beginning of incorrect responses and one step that corrects them.

    Args:
      finder: "policy": the policy names its first incorrect step; "scores": the task scores steps.
      continuations: samples that test an intervention, of which one must be correct.
      incorrect_below: with scores, a step is incorrect below it; None: the middle of the range.
      hint_fraction: with scores, fraction of the worked solution that the policy is shown for its
        proposal.
    """
    if finder == "policy":
        stages = [imitate_own_interventions(continuations)]
    else:
        view = hint(hint_fraction)
        stages = [score_steps(), imitate_scored_interventions(view, continuations, incorrect_below)]
    return Recipe(
        objective=objective_of_terms([imitate(1.0)]), experience=experience(stages=stages)
    )


METHOD = Method(
    intervention_training,
    changes="surrogate, sampling, guidance",
    evidence="reconstruction",
    shown=Shown(
        "hinted_brackets:judge_paths=true",
        "experience/accepted_interventions",
        hyperparameters={"finder": "scores", "continuations": 8},
        steps=300,
    ),
    presets={"": {"epochs": 4}},
)
