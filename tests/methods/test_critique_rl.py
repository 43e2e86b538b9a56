"""Critique RL: a fifth of the prompts requests a verdict on a solution."""

import numpy as np
import pytest
import text_tasks
import training_runs
from training_runs import trained, values

from rlvr_jax.tasks import Labelled, Response, with_verdicts


@pytest.mark.slow
def test_verdicts_on_solutions_are_prompts_beside_a_tasks_own(tmp_path, monkeypatch):
    words = [*training_runs.WORDS, *text_tasks.VERDICTS]
    monkeypatch.setattr(training_runs, "WORDS", words)
    model = training_runs.write_policy(tmp_path / "policy")
    lines = trained(
        model, tmp_path / "run", "critique_rl", task="text_tasks:judged_sums", prompts_per_step=8
    )
    told = np.array([values(lines, f"outcome/{kind}") for kind in ("verdict", "small")])
    assert told[0].max() > 0 and max(values(lines, "experience/refill/rounds")) > 1


def test_a_verdict_is_right_if_it_is_the_label():
    task = text_tasks.judged_sums()
    verdicts = [prompt for prompt in task.train if prompt.kind == "verdict"][:2]
    assert [prompt.answer for prompt in verdicts] == [True, False]
    told = task.verify(
        [verdicts[0], task.train[0], verdicts[1], verdicts[0]],
        [Response(text) for text in ("\\conclusion{True}", "0", "\\conclusion{True}", "fine")],
    )
    assert [grade.outcome for grade in told][::2] == [1.0, 0.0]
    assert told[3].outcome == 0 and np.isnan(told[3].info["words"])
    assert task.mixture["verdict"] == 0.5 and sum(task.mixture.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("fraction", "labels", "said"),
    [(1.0, (True, False), "fraction must be in"), (0.2, (True, True), "solutions of both labels")],
)
def test_verdicts_that_teach_nothing_are_refused(fraction, labels, said):
    labelled = [Labelled("1 + 1 =", str(n), label) for n, label in enumerate(labels)]
    with pytest.raises(ValueError, match=said):
        with_verdicts(training_runs.sums(), labelled, fraction)
