"""SwS: the kinds of prompts that the first epochs do not learn get more prompts."""

import numpy as np
import pytest
import training_runs
from walks import numbers

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numbered_task import numbered_task
from rlvr_jax.experience.stages.problems.written import read_stored
from rlvr_jax.methods import recipe
from rlvr_jax.tasks import Grade, Prompt
from rlvr_jax.tasks.synthesis.concepts import budgets, combination, failed
from rlvr_jax.tasks.synthesis.majority import labelled
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
    own = dict(epochs=2, threshold=0.9, fraction=0.5, included=True, written=0)
    chain = recipe("sws", **own).experience
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


def test_the_policy_writes_problems_which_are_rated_and_then_trained_on():
    own = dict(epochs=1, threshold=0.9, fraction=0.5, included=True, written=4, votes=4)
    chain = recipe("sws", **own).experience
    found = numpy_actor.walk(chain, numpy_actor.NumpyActor(chance=0.4), 12)
    told = [told for _, told, _ in found]
    # Three steps are the first phase; the first problems are written in the fourth step.
    assert not any(t["written_problems"] for t in told[:3]) and told[3]["written_problems"] > 0
    assert not told[3]["accepted_problems"] and sum(t["accepted_problems"] for t in told) > 0
    pools = [state["shift_to_weaknesses"].pool for _, _, state in found]
    for (collected, t, _), before, after in zip(found[1:], pools, pools[1:], strict=False):
        assert after.held == before.held + t["accepted_problems"] == t["pool_problems"]
        new = [n for n in numbers(collected) if n >= 12]
        assert len(new) == t["synthetic_prompts"]
        assert not new or before.held
        rated = [b for b in collected.seen if b.requests[0].rating]
        # Four texts, and four answers to each problem of the step before.
        sizes = sorted(len(rows) for b in rated for rows in b.groups)
        assert set(sizes) <= {1, 4} and sizes.count(1) <= 4
        assert len(collected.batch.groups) == 4
    assert sum(t["synthetic_prompts"] for t in told) > 0
    last = read_stored(pools[-1].rows["problem"][: pools[-1].held])
    assert not {problem.text for problem in last} & {p.text for p in numbered_task().train}
    without = recipe("sws", **own | {"written": 0}).experience
    plain = numpy_actor.walk(without, numpy_actor.NumpyActor(chance=0.4), 12)
    assert not any(told["synthetic_prompts"] + told["pool_problems"] for _, told, _ in plain)


def test_a_written_problem_has_the_label_of_its_majority_and_a_middle_accuracy():
    task = replace(numbered_task(), read_problem=None)

    def label(answers, outcome=0.0, task=task, **bounds):
        grades = [Grade(None if a == "?" else outcome, answer=a) for a in answers]
        bounds = {"agreement": 0.5, "hardest": 0.25, "easiest": 0.75} | bounds
        found = labelled(Prompt("new", 3), grades, task, **bounds)
        return None if found is None else found.answer

    assert label(["7", "7", "5", "9"]) == 7
    assert label(["7", "7", "7", "9"]) == 7
    assert label(["7"] * 4) is None  # too easy
    assert label(["7", "8", "5", "9"]) is None  # no majority
    assert label(["7", "7", "?", "?", "?", "5"]) == 7  # ungraded answers do not count
    assert label(["?"]) is None
    assert label(["x", "x", "5", "9"]) is None  # not a number, as the answers of the task are
    assert label([None, None, "5", "9"]) is None
    # A task that reads problems grades the answers by their own label.
    own = numbered_task()
    assert label(["7", "8"], outcome=0.5, task=own) == 3
    assert label(["7", "8"], outcome=0.1, task=own) is None


def test_concepts_of_a_new_problem_occur_together():
    random = np.random.default_rng(0)
    subjects = [["a", "b"], ["a", "b"], ["c", "d"]]
    found = [frozenset(combination(random, subjects, 2, 0.02)) for _ in range(40)]
    assert set(found) == {frozenset("ab"), frozenset("cd")}
    assert found.count(frozenset("ab")) > found.count(frozenset("cd"))
    assert combination(random, [["a"]], 5, 0.2) == ["a"]


def test_a_task_that_cannot_label_problems_is_refused():
    chain = recipe("sws").experience
    task = replace(numbered_task(), read_problem=None, answers=False)
    with pytest.raises(ValueError, match=r"to label written problems, got 'numbered'; written=0"):
        chain.init(numpy_actor.setting(chain, task=task))
    with pytest.raises(ValueError, match=r"hardest must be at most easiest, got 0.8 and 0.75"):
        recipe("sws", hardest=0.8)


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
