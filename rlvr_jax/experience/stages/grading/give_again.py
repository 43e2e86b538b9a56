"""The policy judges its own answers: whether it repeats an answer that it is shown."""

from dataclasses import replace

import numpy as np

from rlvr_jax.experience.grades import with_info
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.donors.siblings import SHOWN
from rlvr_jax.experience.views import with_answer
from rlvr_jax.types.parts import part

NAME = "again"
"""Name of the number in a grade."""


@part(at_grading=True, by_row=True, of_task=frozenset({"answers"}), rewards=(NAME,), views=(SHOWN,))
def give_again() -> Stage:
    """Adds to each grade whether the policy repeats its answer when it is shown.

    The number is 1 if the greedy response to the prompt with the answer (`with_answer`) has the
    same answer, else 0; it is 0 for a response without an answer. So a policy that cannot read a
    question in words can judge. The verifier only reads answers here. Equal answers to one prompt
    are shown once. The number becomes the first of `Task.rewards`; the outcome does not change.

    Samples: a response for every different answer.
    Metrics: shown_answers (responses that are shown), answers_given_again (responses that are given
      again), info/again (their fraction).
    Raises:
      ValueError: at the start of a run, a task that shows answers in words that the policy does not
        know.
    """

    def apply(batch, actor, state, turn):
        asked = batch.decided & [not request.rating for request in batch.requests]
        keys = [
            (request.number, grade.answer) if own and (grade.answer or "").strip() else None
            for request, grade, own in zip(batch.requests, batch.grades, asked, strict=True)
        ]
        first = {key: keys.index(key) for key in keys if key}
        again: dict[tuple[int, str] | None, float] = {None: 0.0}
        if first:
            requests = [
                replace(
                    batch.requests[row],
                    view=with_answer(key[1]),
                    samples=1,
                    given=(),
                    prefix=None,
                    temperature=None,
                    limit=None,
                )
                for key, row in first.items()
            ]
            second = actor.grade(actor.draw(requests, turn.key, {"top_k": 1})).grades
            again |= {
                key: float(one.answer == key[1]) for key, one in zip(first, second, strict=True)
            }
        counts = {
            "shown_answers": float(len(first)),
            "answers_given_again": float(sum(again.values())),
        }
        numbers = [again[key] if own else np.nan for key, own in zip(keys, asked, strict=True)]
        return with_info(batch, [{NAME: number} for number in numbers]), state, counts

    return apply
