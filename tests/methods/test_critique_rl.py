"""Critique RL: a fifth of the prompts requests a verdict on a solution."""

import jax
import numpy as np
import pytest
import training_runs

from rlvr_jax.experience import RunInfo, StepContext
from rlvr_jax.methods.judges.critique_rl import some_verdicts
from rlvr_jax.tasks import Labelled, Response, load, with_verdicts

LABELLED = [Labelled("1 + 1 =", str(answer), answer == 2) for answer in (2, 3)]


def requests_of(task, fraction):
    setting = RunInfo(task, 20, 2, 2, 4)
    turn = StepContext(0, jax.random.key(0), setting, list)
    return some_verdicts(fraction).propose([], (), turn)


@pytest.mark.parametrize(("fraction", "wanted"), [(0.0, 0), (0.2, 4), (0.5, 10)])
def test_a_fraction_of_a_batch_requests_verdicts(fraction, wanted):
    requests = requests_of(load("critiqued_sums"), fraction)
    assert len(requests) == 20
    assert sum(request.prompt.kind == "verdict" for request in requests) == wanted


def test_a_task_without_verdicts_has_its_own_mixture():
    assert len(requests_of(training_runs.sums(), 0.2)) == 20


def test_a_verdict_is_right_if_it_is_the_label():
    task = with_verdicts(load("brackets:train=9"), LABELLED, 0.5, "{problem} {solution} ?")
    verdicts = [prompt for prompt in task.train if prompt.kind == "verdict"]
    assert [prompt.answer for prompt in verdicts] == [True, False]
    assert verdicts[0].text == "1 + 1 = 2 ?"
    told = task.verify(
        [verdicts[0], task.train[0], verdicts[1], verdicts[0]],
        [Response(text) for text in ("\\conclusion{True}", "0", "\\conclusion{True}", "fine")],
    )
    assert [grade.outcome for grade in told] == [1, 0, 0, 0]
    assert [np.isnan(grade.info["legal"]) for grade in told] == [True, False, True, True]
    assert task.mixture["verdict"] == 0.5 and sum(task.mixture.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("fraction", "labels", "said"),
    [(1.0, (True, False), "fraction must be in"), (0.2, (True, True), "solutions of both labels")],
)
def test_verdicts_that_teach_nothing_are_refused(fraction, labels, said):
    labelled = [Labelled("1 + 1 =", str(n), label) for n, label in enumerate(labels)]
    with pytest.raises(ValueError, match=said):
        with_verdicts(training_runs.sums(), labelled, fraction)
