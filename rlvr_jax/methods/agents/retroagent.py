"""RetroAgent: lessons of earlier episodes in half of the prompts, and a reward for progress.

"RetroAgent: From Solving to Evolving via Retrospective Dual Intrinsic Feedback",
https://github.com/zhangxy-2019/RetroAgent

    half of each group sees the lesson with the largest  α cos + (1 - α)(u + κ √(ln Σn / n))
    after each episode the policy writes a reflection: sub-tasks, predicted success, lesson
    φ    = 1 if correct, else completed / all sub-tasks of the reflection, 0 if it is unreadable
    I_i  = max(0, φ_i - Φ(prompt)),  Φ ← max(Φ, fraction of correct responses)
    R_i  = outcome + c I_i;  R of a reflection: c I_i
    u    ← (1 - β) u + β outcome, of the lesson that a response saw
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1;  loss = Σ [PPO clip + β_KL k3] / Σ n_i

u is the utility of a lesson, 0.5 at first, and n its number of uses, 1 at first. A lesson is stored
if the reflection predicted the outcome. Only lessons with a cosine of at least 0.4 are shown. With
`tools`, or the task's environment, a response is an episode of turns. A reflection is a row after
the prompt, the response and a request, in the form of `Task.show_answer` if there is one.
`Task.read_reflection` reads it, else it is JSON (`json_reflection`). Reflections of one prompt are
a group.

The running maximum Φ is active in the released code. The moving average and the centering of the
paper are commented out there. Two choices are ours. The embedding is the mean hidden state of the
responses without a lesson; the authors use MiniLM. The memory has the newest `capacity` lessons.

Left out: the decay of c over the run, which is off by default; the logged reward for a correct
prediction.
Reports: gains over GRPO in points: ALFWorld 18.3, WebShop 15.4, Sokoban 27.1, MineSweeper 8.9.
Traps: φ is the response's report about itself, so overstatement pays on prompts that stay unsolved.
Groups without a success learn only from φ. A lesson may contain the answer of its prompt. A
reflection is sampled as a response is, so a call in it gets a reply.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rlvr_jax.experience import (
    Shaping,
    Stage,
    concatenate,
    experience,
    judged_mean,
    judged_rows,
    shape,
)
from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.parts import Actor, StepContext
from rlvr_jax.experience.stages.problems.written import with_request
from rlvr_jax.experience.store import as_bytes, as_texts
from rlvr_jax.experience.views import with_note
from rlvr_jax.methods._tools import Tools
from rlvr_jax.objectives import clipped_objective, group_mean
from rlvr_jax.rollout import named_key
from rlvr_jax.types import Method, Recipe, Shown, arguments_of, is_correct, part, replace
from rlvr_jax.types.hyperparameters import Count, Finite, NonNegative, Unit
from rlvr_jax.types.records import declare
from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.texts.reflections import json_reflection

declare("claimed", Float[Array, "B"], "reported fraction of completed sub-tasks", missing=0)

REQUEST = (
    "Look back at this attempt. Write only JSON:"
    ' {"subtasks": [{"name": "…", "done": true}, …], "success": true, "lesson": "…"}, with a'
    " sub-task for each thing that had to be done, whether the attempt succeeded, and one sentence"
    " of advice for similar questions."
)
EPISODE, REFLECTION = 0, 1
"""Cells of the rows."""
_BYTES = 256


class Lessons(NamedTuple):
    """The memory: lessons with the embedding of the responses that they are about.

    Fields:
      text: uint8 [C, 256]; embedding: [C, D]; utility: [C]; uses: int32 [C], 0 for no lesson.
      place: int32 [], place of the next lesson.
    """

    text: np.ndarray
    embedding: np.ndarray
    utility: np.ndarray
    uses: np.ndarray
    place: np.ndarray


def cosines(query: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Cosines of queries [Q, D] and items [C, D], [Q, C]; 0 for a vector of length 0."""
    lengths = np.linalg.norm(query, axis=-1)[:, None] * np.linalg.norm(items, axis=-1)[None]
    return np.where(lengths > 0, query @ items.T / np.where(lengths > 0, lengths, 1), 0)


def lesson_scores(
    relevance: np.ndarray, utility: np.ndarray, uses: np.ndarray, alpha: float, kappa: float
) -> np.ndarray:
    """α cos + (1 - α)(u + κ √(ln Σn / n)) of lessons with at least one use each.

    Args:
      relevance: cosine of each lesson with the prompt, [C] (cos).
      utility: moving average of the outcomes of responses that saw the lesson, [C] (u).
      uses: times that each lesson was shown, at least 1, [C] (n).
      alpha: weight of the relevance, in [0, 1] (α).
      kappa: weight of exploration, at least 0 (κ).
    """
    bound = kappa * np.sqrt(np.log(uses.sum()) / uses)
    return alpha * relevance + (1 - alpha) * (utility + bound)


@part
def retrospect(
    alpha: Unit = 0.7,
    beta: Unit = 0.05,
    kappa: NonNegative = 1.0,
    threshold: Finite = 0.4,
    capacity: Count = 256,
) -> Stage:
    """Samples half of each group with a lesson, and a reflection after every response.

    Args:
      alpha: weight of the relevance against the utility of a lesson (α).
      beta: weight of an outcome in the utility of its lesson (β).
      kappa: weight of the bonus of lessons that were seldom used (κ).
      threshold: smallest cosine of a lesson that is shown.
      capacity: maximum number of lessons of the memory.
    Samples: half of each group, and a reflection for each row. Writes: `claimed`, `cell`.
    Metrics: lessons_shown (groups), lesson_effect (mean outcome with the lesson less without),
      lessons, new_lessons (in the memory), unreadable_reflections (fraction), predicted_outcomes
      (fraction of readable ones).
    """

    def init(setting):
        return Lessons(
            np.zeros((capacity, _BYTES), np.uint8),
            np.zeros((capacity, max(setting.width, 1)), np.float32),
            np.zeros(capacity, np.float32),
            np.zeros(capacity, np.int32),
            np.array(0, np.int32),
        )

    def apply(batch, actor, state, turn):
        query = _queries(batch, actor)
        chosen = _chosen(query, state, alpha, kappa, threshold)
        batch, state, metrics = _with_lessons(batch, actor, state, turn, chosen, beta)
        reflections, state, more = _reflected(batch, actor, state, turn, query)
        claimed = reflections.rollouts.records["claimed"]
        cell = np.full(len(batch), EPISODE, np.int32)
        batch = batch.with_rollouts(claimed=claimed, cell=cell)
        return concatenate([batch, reflections]), state, metrics | more

    return Stage(
        apply,
        init,
        size=lambda samples: samples - samples // 2,
        writes={"claimed", "cell"},
        most=4.0,
        by_row=True,
        views=(
            replace(with_note(""), responses=1),
            replace(with_request(REQUEST, "", reader="read_reflection"), responses=1),
        ),
    )


def _queries(batch: Batch, actor: Actor) -> np.ndarray:
    """The mean embedding of each group's responses, [G, D]."""
    hidden = np.asarray(actor.score(batch, ["mean_hidden"])["mean_hidden"], np.float32)
    return np.stack([hidden[rows].mean(axis=0) for rows in batch.groups])


def _chosen(
    query: np.ndarray, state: Lessons, alpha: float, kappa: float, threshold: float
) -> np.ndarray:
    """The place of each group's lesson, -1 without one, int [G]."""
    held = np.flatnonzero(state.uses > 0)
    if not len(held):
        return np.full(len(query), -1)
    relevance = cosines(query, state.embedding[held])
    scores = lesson_scores(relevance, state.utility[held], state.uses[held], alpha, kappa)
    scores = np.where(relevance >= threshold, scores, -np.inf)
    return np.where(np.isfinite(scores.max(axis=1)), held[scores.argmax(axis=1)], -1)


def _with_lessons(
    batch: Batch,
    actor: Actor,
    state: Lessons,
    turn: StepContext,
    chosen: np.ndarray,
    beta: float,
) -> tuple[Batch, Lessons, dict[str, float]]:
    """The batch with the second half of each group, and the utilities after it."""
    more, texts = turn.setting.samples // 2, as_texts(state.text)
    metrics = {"lessons_shown": float(np.sum(chosen >= 0)), "lesson_effect": 0.0}
    if not more:
        return batch, state, metrics | {"lessons_shown": 0.0}
    requests = []
    for rows, place in zip(batch.groups, chosen.tolist(), strict=True):
        request = batch.requests[rows[0]]
        view = request.view if place < 0 else with_note(texts[place])
        requests.append(replace(request, samples=more, view=view))
    sampled = actor.grade(actor.draw(requests, turn.key))
    utility, uses, effects = state.utility.copy(), state.uses.copy(), []
    for place, rows, before in zip(chosen.tolist(), sampled.groups, batch.groups, strict=True):
        outcomes = sampled.rollouts.outcome[rows][sampled.decided[rows]]
        plain = batch.rollouts.outcome[before][batch.decided[before]]
        if place < 0 or not len(outcomes):
            continue
        uses[place] += len(outcomes)
        for outcome in outcomes.tolist():
            utility[place] = (1 - beta) * utility[place] + beta * outcome
        if len(plain):
            effects.append(outcomes.mean() - plain.mean())
    if effects:
        metrics["lesson_effect"] = float(np.mean(effects))
    whole = batch.with_groups(np.ones(len(batch.groups), bool), sampled, "append")
    return whole, state._replace(utility=utility, uses=uses), metrics


def _reflected(
    batch: Batch, actor: Actor, state: Lessons, turn: StepContext, query: np.ndarray
) -> tuple[Batch, Lessons, dict[str, float]]:
    """A reflection for each row, with its row's outcome, and the memory with new lessons."""
    read = turn.setting.task.read_reflection or json_reflection
    place_in_group = np.concatenate([np.arange(len(rows)) for rows in batch.groups])
    requests = [
        replace(
            request,
            samples=1,
            first_sample=int(place),
            given=(),
            view=with_request(REQUEST, response.text, reader="read_reflection"),
        )
        for request, response, place in zip(
            batch.requests, batch.responses, place_in_group, strict=True
        )
    ]
    key = named_key(turn.setting.seed, "retroagent/reflections", turn.step)
    sampled = actor.draw(requests, key).with_rollouts(group=batch.rollouts.group).renumbered()
    found = [read(response.text) for response in sampled.responses]
    outcome, decided = batch.rollouts.outcome, batch.decided
    correct = np.asarray(is_correct(outcome))
    claimed = [0.0 if one is None else one.completed / one.total for one in found]
    pairs = zip(found, correct.tolist(), strict=True)
    foreseen = [one is not None and one.success == won for one, won in pairs]
    new = [
        (one.lesson, query[group])
        for one, group, there in zip(found, batch.rollouts.group, decided & foreseen, strict=True)
        if there and one.lesson and len(one.lesson.encode()) <= _BYTES
    ]
    capacity = len(state.uses)
    places = (int(state.place) + np.arange(len(new[-capacity:]))) % capacity
    text, embedding = state.text.copy(), state.embedding.copy()
    utility, uses = state.utility.copy(), state.uses.copy()
    if new:
        text[places] = as_bytes([lesson for lesson, _ in new[-capacity:]], _BYTES)
        embedding[places] = np.stack([each for _, each in new[-capacity:]])
        utility[places], uses[places] = 0.5, 1
    state = Lessons(
        text,
        embedding,
        utility,
        uses,
        np.array((int(state.place) + len(places)) % capacity, np.int32),
    )
    readable = sum(one is not None for one in found)
    metrics = {
        "lessons": float(np.sum(uses > 0)),
        "new_lessons": float(len(new)),
        "unreadable_reflections": 1 - readable / len(found),
        "predicted_outcomes": sum(foreseen) / max(readable, 1),
    }
    grades = [
        Grade(float(own)) if there else Grade(None)
        for own, there in zip(outcome, decided, strict=True)
    ]
    rows = sampled.graded(grades).with_rollouts(
        claimed=np.array(claimed, outcome.dtype), cell=np.full(len(batch), REFLECTION, np.int32)
    )
    return rows, state, metrics


@part
def beyond_best(coefficient: NonNegative = 1.0) -> Shaping:
    """R = outcome + c max(0, φ - Φ), Φ the largest past fraction of correct responses.

    The reward of a reflection is the second term. The state is Φ of every prompt of the task, 0 at
    first. The reported progress is not checked: on prompts that are never solved, Φ stays 0 and
    overstatement always pays.

    Args:
      coefficient: as for `retroagent`.
    Reads: outcome, group, `claimed`, `cell`.
    Metrics: reward/outcome (mean outcome), reward/progress (mean of max(0, φ - Φ)), best_fraction
      (mean Φ of the batch's rows, before it).
    """

    def init(prompts):
        return np.zeros(prompts, np.float32)

    def apply(rollouts, state, moment):
        kind, number = rollouts.outcome.dtype, np.asarray(moment.prompt)
        known = number < len(state)
        place = np.where(known, number, 0)
        best = jnp.asarray(np.where(known, state[place], 0), kind)
        potential = jnp.where(is_correct(rollouts.outcome), 1, rollouts.records["claimed"])
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
        own = jnp.where(rollouts.records["cell"] == REFLECTION, 0, rollouts.outcome)
        return own + coefficient * gain, state, metrics

    return Shaping(apply, init, frozenset({"claimed", "cell"}))


@arguments_of(Tools, into="tools")
@arguments_of(retrospect, into="memory")
@arguments_of(
    clipped_objective, "clip_low", "clip_high", "epsilon", "kl_coefficient", kl_coefficient=0.01
)
def retroagent(
    coefficient: NonNegative = 1.0, *, memory: Stage, tools: Tools, **clip: Any
) -> Recipe:
    """Applies GRPO with the token mean to outcomes and progress beyond the best so far.

    Args:
      coefficient: weight of the progress (c).
    """
    stages = [memory, shape(beyond_best(coefficient))]
    return Recipe(
        objective=clipped_objective(**clip),
        experience=experience(draw=tools.draw() if tools else None, stages=stages),
    )


METHOD = Method(
    retroagent,
    changes="sampling, guidance, reward",
    shown=Shown("noted_calculations", "experience/lessons_shown", without="verltool"),
)
