"""Tasks of mathematics: golds that are read late, processes that die, verdicts that fail."""

import contextlib
import os
import signal

import pytest
from interference import again_and_again

from rlvr_jax.sandbox.watch import descendants
from rlvr_jax.tasks import Prompt, Response
from rlvr_jax.tasks.mathematics import mathematics
from rlvr_jax.verifiers.pool import _POOLS

TRAIN = [("row 1", Prompt("8?", r"\int_0^1 8 dx"))]  # a worker has to read it
TEST = [("row 2", Prompt("9?", "9"))]


@pytest.mark.thorough
def test_a_gold_that_is_read_late_is_tried_again_with_more_time(monkeypatch):
    warned = pytest.warns(UserWarning, match=r"1 of 1 questions were dropped.*row 1")
    with warned, pytest.raises(ValueError, match="split 'train' must have gradable questions"):
        mathematics("late", TRAIN, TEST, 10, wall_seconds=1e-5)
    monkeypatch.setattr("rlvr_jax.tasks.mathematics._PATIENCE", 2e6)
    task = mathematics("late", TRAIN, TEST, 10, wall_seconds=1e-5)
    assert [prompt.answer for prompt in task.train] == [TRAIN[0][1].answer]


def kill_serving() -> None:
    """Kills every server of a pool that has forked its worker."""
    for server in [server for pool in list(_POOLS) for server in pool._servers]:
        if server.layers is not None and descendants(server.process.pid):
            with contextlib.suppress(OSError):
                os.kill(server.process.pid, signal.SIGKILL)


@pytest.mark.thorough
def test_golds_whose_processes_die_stop_the_task_and_are_not_dropped():
    lost = pytest.raises(RuntimeError, match=r"lost: row 1: the verifier's processes must be able")
    with lost, again_and_again(kill_serving):
        mathematics("lost", TRAIN, TEST, 10)


def test_a_gold_that_nobody_can_read_any_more_gives_no_verdict():
    task = mathematics("read", TRAIN, TEST, 10)
    grade = task.verify([Prompt("?", "foo(")], [Response(r"\boxed{3}")])[0]
    assert (grade.outcome, grade.reward, grade.timed_out, grade.answer) == (None, None, False, "3")
    assert grade.stage == "gold"


def test_thinking_that_a_template_has_opened_has_to_end_as_well():
    task = mathematics("thought", [("row 1", Prompt("8?", "8"))], TEST, 10)
    texts = ["maybe \\boxed{8}", "maybe \\boxed{7}</think> \\boxed{8}"]
    for tail, wanted in (("assistant\n<think>\n", [0, 1]), ("assistant\n", [1, 1])):
        answers = [Response(text, prompt_tail=tail) for text in texts]
        assert [grade.outcome for grade in task.verify([task.train[0]] * 2, answers)] == wanted
