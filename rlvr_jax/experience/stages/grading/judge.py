"""A judge is asked about answers: by themselves, or about two at a time."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.heard import Heard
from rlvr_jax.experience.parts import Actor, Stage
from rlvr_jax.judges import Call, Judge, Replies, Reply, Verdicts
from rlvr_jax.judges.calls import OVER_BUDGET
from rlvr_jax.judges.judge import alone
from rlvr_jax.parallel import gather
from rlvr_jax.types.parts import Function, part


@part(at_grading=True, by_row=True)
def judge(asked: Judge, sampling: Mapping[str, Any] | None = None) -> Stage:
    """Adds what a judge says of an answer to its grade: a number for each name (`Grade.info`), NaN
    without a verdict, and its words (`Grade.said`).

    All answers that have a verdict of the task's verifier are judged where they are graded, before
    any filter; those that only rate a prompt are not. The names become the first of
    `Task.rewards`, so that methods weigh the numbers as rewards of the task; the outcome stays.
    Every process asks about its rows and hears of all.

    Args:
      asked: whose `call`, if it has none, is the policy itself at the weights of the step.
      sampling: of the policy; None: as the run samples.
    Reads: the texts of prompts and responses, Prompt.answer. Writes: info of grades.
    Metrics: counts, see `Verdicts`; a curve info/<name> of each number.
    """

    def apply(batch, actor, state, turn):
        rows = np.flatnonzero(batch.decided & [not ask.rating for ask in batch.asks])
        if not len(rows):
            return batch, state, {}
        numbers, words, counts = asked_about(
            asked, batch, rows, actor, turn.step, turn.key, sampling
        )
        grades = list(batch.grades)
        unknown = dict.fromkeys(asked.names, float("nan"))
        grades = [replace(grade, info={**grade.info, **unknown}) for grade in grades]
        for row, own, said in zip(rows.tolist(), numbers.tolist(), words, strict=True):
            told = dict(zip(asked.names, own, strict=True))
            grades[row] = replace(grades[row], info={**grades[row].info, **told}, said=said)
        return replace(batch, grades=grades), state, counts

    return Stage(apply, rewards=tuple(asked.names))


@part
def compare_with(
    asked: Judge, both_orders: bool = True, sampling: Mapping[str, Any] | None = None
) -> Function:
    """Compares two answers by a judge that reads two numbers.

    Args:
      asked: its `prompt_of` shows `response` and `other`.
      both_orders: it is asked twice, each answer standing first once, and a score is the mean of
        those that could be read; else the order is drawn.
      sampling: as for `judge`.
    Raises:
      ValueError: a judge that does not read two numbers.
    """
    if len(asked.names) != 2:
        raise ValueError(
            f"compare_with: asked must read two numbers, got {len(asked.names)}: {asked.names}"
        )

    def compare(batch, pairs, actor, turn):
        pairs = np.asarray(pairs)
        swapped = turn.random().uniform(size=len(pairs)) < 0.5
        shown = [pairs, pairs[:, ::-1]]
        if not both_orders:
            shown = [np.where(swapped[:, None], pairs[:, ::-1], pairs)]
        texts = []
        for order in shown:
            first, second = (_texts(batch, order[:, side]) for side in (0, 1))
            texts += [
                {**one, "other": two["response"]} for one, two in zip(first, second, strict=True)
            ]
        numbers, words, counts = _asked(asked, texts, actor, turn.step, turn.key, sampling)
        heard = [
            Heard(tuple(rows), None if np.isnan(own).any() else tuple(own), said)
            for rows, own, said in zip(np.concatenate(shown).tolist(), numbers, words, strict=True)
        ]
        if not both_orders:
            return np.where(swapped[:, None], numbers[:, ::-1], numbers), counts, heard
        one, two = numbers[: len(pairs)], numbers[len(pairs) :, ::-1]
        scores = np.where(np.isnan(one), two, np.where(np.isnan(two), one, (one + two) / 2))
        return scores, counts, heard

    return compare


def writing(
    actor: Actor, who: str, key: jax.Array, sampling: Mapping[str, Any] | None = None
) -> Call:
    """A policy of this process as somebody who answers; all processes run it together.

    Args:
      actor: whose `write` it is.
      who: names the weights.
      key: of the answers.
      sampling: of it.
    """
    told = sorted((sampling or {}).items())

    def ask(questions, spending):
        granted = [question for question in questions if spending.take()]
        chats = [question.messages for question in granted]
        attempts = [question.attempt for question in granted]
        texts = actor.write(chats, key, attempts, sampling) if granted else []
        replies = [
            Reply(None, "no room") if text is None else Reply(text.text, tokens=text.tokens)
            for text in texts
        ]
        for reply in replies:
            spending.spend(reply.tokens)
        return replies + [Reply(None, OVER_BUDGET, calls=0)] * (len(questions) - len(granted))

    return Call(ask, json.dumps(["policy", who, told]), together=True)


def asked_about(
    asked: Judge,
    batch: Batch,
    rows: np.ndarray,
    actor: Actor,
    step: int,
    key: jax.Array,
    sampling: Mapping[str, Any] | None,
) -> Verdicts:
    """What a judge says of some rows of a batch.

    Args:
      actor, key, sampling: of the policy, where it is the judge.
      step: of the run.
    """
    return _asked(asked, _texts(batch, rows), actor, step, key, sampling)


def _asked(asked, texts, actor, step, key, sampling) -> Verdicts:
    if asked.call is None:
        # What is written anew on resume is the same: nothing needs to be kept of it.
        call = writing(actor, f"step {step}", key, sampling)
        return replace(asked, call=call, replies=Replies()).ask(texts, step)
    if asked.call.together:
        return asked.ask(texts, step)
    return asked.ask(texts, step, _by_owners, jax.process_count())


def _by_owners(ask, questions):
    """Every process asks a share of the questions, and all hear all replies."""
    if jax.process_count() == 1:
        return alone(ask, questions)
    own = np.array_split(np.arange(len(questions)), jax.process_count())[jax.process_index()]
    replies = gather([list(reply) for reply in ask([questions[place] for place in own])])
    return [Reply(*reply) for part in replies for reply in part]


def _texts(batch: Batch, rows: np.ndarray) -> list[dict[str, Any]]:
    """What a judge is shown of some rows."""
    taken = batch.take(rows)
    return [
        {
            "prompt": prompt.text,
            "response": response.text,
            "reference": str(prompt.answer),
            "meta": prompt.meta,
        }
        for prompt, response in zip(taken.prompts, taken.responses, strict=True)
    ]
