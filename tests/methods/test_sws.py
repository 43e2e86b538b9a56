"""SwS: the kinds of prompts that the first epochs do not learn get more prompts."""

import numpy as np
import pytest
import training_runs
from walks import numbers

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numbered_task import numbered_task
from rlvr_jax.methods import recipe
from rlvr_jax.tasks.synthesis.concepts import budgets, failed
from rlvr_jax.types import replace


def test_failed_prompts_never_were_solved_often_and_fell():
    accuracy = np.array([[0.4, 0.2], [0.2, 0.4], [0.6, 0.1], [0, 0]])
    assert failed(accuracy, 0.5).tolist() == [True, False, False, False]
    assert failed(accuracy, 0.5, included=True).tolist() == [True, False, False, True]
    assert failed(accuracy[:, :1], 0.5).tolist() == [True, True, False, True]
    even = budgets(np.zeros(4, bool), np.array([0, 0, 1, 1]), 2, 10)
    assert even.tolist() == [5, 5]
    found = budgets(np.array([True, True, True, False]), np.array([0, 0, 1, 1]), 2, 9)
    assert found.tolist() == [6, 3]


def test_after_its_epochs_a_step_has_more_of_what_failed():
    chain = recipe("sws", epochs=2, threshold=0.9, fraction=0.5, included=True).experience
    found = numpy_actor.walk(chain, numpy_actor.NumpyActor(chance=0.3), 10)
    # 12 prompts, four a step: two epochs are six steps.
    for epoch in (0, 3):
        asked = [n for collected, _, _ in found[epoch : epoch + 3] for n in numbers(collected)]
        assert sorted(asked) == list(range(12))
    events = [chain.events(found[0][2], step) for step in range(10)]
    assert [bool(event) for event in events] == [step == 6 for step in range(10)]
    fail = found[5][2]["shift_to_weaknesses"].fail
    assert fail.any() and not found[4][2]["shift_to_weaknesses"].fail.any()
    for collected, told, _ in found[6:]:
        assert told["weak_asks"] == 0.5
        assert fail[[n for n in numbers(collected)]].sum() >= 2


def test_where_nothing_has_failed_synthetic_prompts_of_all_kinds_are_asked_alike():
    chain = recipe("sws", epochs=1, fraction=1.0).experience
    task = numbered_task()
    made = [replace(p, meta={**p.meta, "synthetic": p.kind == "odd"}) for p in task.train]
    own = numpy_actor.setting(chain, task=replace(task, train=made))
    found = numpy_actor.walk(chain, numpy_actor.NumpyActor(chance=2.0), 5, own=own)
    assert [told["weak_asks"] for _, told, _ in found] == [0, 0, 1, 1, 1]
    assert all(p.kind == "odd" for c, _, _ in found[2:] for p in c.batch.prompts)


@pytest.mark.slow
def test_training_on_weaknesses(tmp_path):
    steps = training_runs.on_brackets(
        "sws",
        tmp_path,
        "hinted_brackets:train=16",
        steps=4,
        hyperparameters=("epochs=1", "included=true", "threshold=0.9"),
    )
    weak = training_runs.values(steps, "experience/weak_asks")
    assert weak == [0, 0, 0.5, 0.5]
    assert max(training_runs.values(steps, "gradient_norm")) > 0
