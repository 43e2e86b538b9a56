"""The policy judges its own answers by giving them again, or not."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from rlvr_jax.experience import column, experience, give_again, shape
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numbered_task import numbered_task
from rlvr_jax.experience.views import YOUR_TURN
from rlvr_jax.tasks import Grade


@dataclass(frozen=True)
class Stubborn(numpy_actor.NumpyActor):
    """Answers with its first word; shown an answer, it gives it again if that is below "6"."""

    def grade(self, batch):
        grades = []
        for request, response in zip(batch.requests, batch.responses, strict=True):
            shown = request.view.show(request.prompt, numbered_task()).text
            answer = None if response.truncated else (response.text.split() or [None])[0]
            if shown != request.prompt.text:
                before = shown.removesuffix(YOUR_TURN).split()[-1]
                answer = before if before[-1] in "012345" else "another"
            grades.append(Grade(float(answer == "word3"), info={"ended": 1.0}, answer=answer))
        return batch.graded(grades)


def test_an_answer_that_is_given_again_earns_one_and_the_outcome_stays():
    chain = experience(stages=[give_again(), shape(column(0))])
    found = numpy_actor.walk(chain, Stubborn(), steps=1)[0][0]
    batch = found.batch
    told = [grade.info["again"] for grade in batch.grades]
    wanted = [float((grade.answer or "9")[-1] in "012345") for grade in batch.grades]
    assert told == wanted and 0 < np.mean(told) < 1
    assert any(grade.answer is None for grade in batch.grades)
    np.testing.assert_array_equal(batch.rollouts.reward, wanted)
    correct = [float(grade.answer == "word3") for grade in batch.grades]
    np.testing.assert_array_equal(batch.rollouts.outcome, correct)
    # Equal answers to one prompt are shown once, and what that draws is counted.
    known = {
        (request.number, grade.answer): again
        for request, grade, again in zip(batch.requests, batch.grades, told, strict=True)
        if grade.answer
    }
    assert found.metrics["shown_answers"] == len(known) < len(batch)
    assert found.metrics["answers_given_again"] == sum(known.values())
    assert found.metrics["sampled_tokens"] > batch.rollouts.length.sum()


def test_a_task_without_final_answers_is_refused():
    task = replace(numbered_task(), answers=False)
    chain = experience(stages=[give_again()])
    with pytest.raises(ValueError, match=r"task must have Task.answers, got 'numbered'"):
        chain.init(numpy_actor.setting(chain, task))
