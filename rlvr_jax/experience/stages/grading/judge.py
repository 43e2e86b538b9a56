"""Requests to a judge about single responses or pairs of them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.grades import with_info
from rlvr_jax.experience.heard import Heard
from rlvr_jax.experience.parts import Actor, Stage
from rlvr_jax.judges import Call, Judge, Replies, Reply, Verdicts
from rlvr_jax.judges.calls import OVER_BUDGET
from rlvr_jax.judges.judge import alone
from rlvr_jax.parallel import gather
from rlvr_jax.types.parts import Function, part


@part(at_grading=True, by_row=True)
def judge(asked: Judge, sampling: Mapping[str, Any] | None = None) -> Stage:
    """Adds a judge's numbers (`Grade.info`, NaN without a verdict) and its reply (`Grade.reply`).

    The judge sees all responses that the task's verifier graded, before any filter, except those
    that only rate a prompt. The names become the first of `Task.rewards`, so methods use the
    numbers as rewards; the outcome does not change. Every process sends requests for its rows.

    Args:
      asked: a judge; without a `call` it is the policy itself at the weights of the step.
      sampling: sampler settings of the policy; None: those of the run.
    Metrics: info/<name> (mean of a number of the judge); those of `Verdicts`.
    """

    def apply(batch, actor, state, turn):
        rows = np.flatnonzero(batch.decided & [not request.rating for request in batch.requests])
        if not len(rows):
            return batch, state, {}
        policy = JudgingPolicy(actor, turn.step, turn.key, sampling)
        numbers, words, counts = asked_about(asked, batch, rows, policy)
        info = [dict.fromkeys(asked.names, np.nan) for _ in batch.grades]
        grades = list(batch.grades)
        for row, own, text in zip(rows.tolist(), numbers.tolist(), words, strict=True):
            info[row] = dict(zip(asked.names, own, strict=True))
            grades[row] = replace(grades[row], reply=text)
        return with_info(replace(batch, grades=grades), info), state, counts

    return Stage(apply, rewards=tuple(asked.names))


@part
def compare_with(
    asked: Judge, both_orders: bool = True, sampling: Mapping[str, Any] | None = None
) -> Function:
    """Compares two responses by a judge with two numbers.

    Args:
      asked: the judge; its `prompt_of` shows `response` and `other`.
      both_orders: send two requests, one in each order; a score is the mean of the readable ones.
        Otherwise the order is random.
      sampling: as for `judge`.
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
        policy = JudgingPolicy(actor, turn.step, turn.key, sampling)
        numbers, words, counts = verdicts_on(asked, texts, policy)
        heard = [
            Heard(tuple(rows), None if np.isnan(own).any() else tuple(own), text)
            for rows, own, text in zip(np.concatenate(shown).tolist(), numbers, words, strict=True)
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
    """The policy of an actor as a `Call`; all processes run it together.

    Args:
      actor: has the policy.
      who: name of the weights.
      key: of the replies.
      sampling: settings of the sampler by name; None: those of the run.
    """

    def query(questions, spending):
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

    identity = json.dumps(["policy", who, sorted((sampling or {}).items())])
    return Call(query, identity, together=True)


@dataclass(frozen=True)
class JudgingPolicy:
    """The policy as a judge, at the weights of a step of the run."""

    actor: Actor
    step: int
    key: jax.Array
    sampling: Mapping[str, Any] | None


def asked_about(asked: Judge, batch: Batch, rows: np.ndarray, policy: JudgingPolicy) -> Verdicts:
    """A judge's `Verdicts` on some rows of a batch.

    Args:
      asked: the judge.
      batch: graded responses.
      rows: int [n], rows of the batch.
      policy: the judge if `asked` has no `call`.
    """
    return verdicts_on(asked, _texts(batch, rows), policy)


def verdicts_on(
    asked: Judge, texts: Sequence[Mapping[str, Any]], policy: JudgingPolicy
) -> Verdicts:
    """A judge's `Verdicts` on some texts, the arguments of its `prompt_of`."""
    step = policy.step
    if asked.call is None:
        # A resumed run writes the same replies again, so they need not be stored.
        call = writing(policy.actor, f"step {step}", policy.key, policy.sampling)
        return replace(asked, call=call, replies=Replies()).query(texts, step)
    if asked.call.together:
        return asked.query(texts, step)
    return asked.query(texts, step, _by_owners, jax.process_count())


def _by_owners(query, questions):
    """Every process requests replies to some of the questions, and all get all replies."""
    if jax.process_count() == 1:
        return alone(query, questions)
    own = np.array_split(np.arange(len(questions)), jax.process_count())[jax.process_index()]
    replies = gather([list(reply) for reply in query([questions[place] for place in own])])
    return [Reply(*reply) for own in replies for reply in own]


def _texts(batch: Batch, rows: np.ndarray) -> list[dict[str, Any]]:
    """The texts of some rows for a judge's prompt."""
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
