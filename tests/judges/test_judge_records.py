"""Replies and costs of a judge: replayed in a resumed run, and within the budget."""

import judge_server
import numpy as np
import pytest
from judged_words import asked, counting, judge

from rlvr_jax.judges import (
    Replies,
    server,
)


def test_a_resumed_run_is_told_the_same_without_asking(tmp_path):
    path = tmp_path / "judge.jsonl"

    def steps(own, first=0):
        return [own.query(asked("a", str(step // 2)), step) for step in range(first, 4)]

    call, calls = counting(["1", None, "what?", None, "2", "3", "4", "5", "6", "7"])
    whole = steps(judge(call, replies=Replies(path)))
    made = len(calls)
    for first in range(4):
        again = steps(judge(call, replies=Replies(path)), first)
        for one, two in zip(whole[first:], again, strict=True):
            np.testing.assert_array_equal(one.numbers, two.numbers)
            assert one.words == two.words and one.metrics == two.metrics
    assert len(calls) == made and made > 4


def test_a_failure_is_replayed_in_its_step_and_asked_again_later(tmp_path):
    path = tmp_path / "judge.jsonl"
    call, calls = counting([None, "5"])
    own = judge(call, tries=1, replies=Replies(path))
    assert np.isnan(own.query(asked("a"), 3).numbers).all()
    assert own.query(asked("a"), 7).numbers.tolist() == [[5]]
    again = judge(call, tries=1, replies=Replies(path))
    assert np.isnan(again.query(asked("a"), 3).numbers).all()
    assert again.query(asked("a"), 9).numbers.tolist() == [[5]]
    assert len(calls) == 2


def test_a_line_that_was_cut_off_is_asked_again_and_others_are_refused(tmp_path):
    path = tmp_path / "judge.jsonl"
    call, calls = counting(["1", "2", "3"])
    judge(call, replies=Replies(path)).query(asked("a", "b"), 0)
    path.write_bytes(path.read_bytes()[:-5])
    found = judge(call, replies=Replies(path)).query(asked("a", "b"), 0)
    assert found.numbers.tolist() == [[1], [3]] and len(calls) == 3
    assert len(path.read_text().splitlines()) == 2
    path.write_text("{}\n")
    with pytest.raises(ValueError, match="must hold replies of judges, got line 1"):
        Replies(path)


def test_processes_that_do_not_write_leave_the_file_alone(tmp_path):
    path = tmp_path / "judge.jsonl"
    call, _ = counting(["1"])
    judge(call, replies=Replies(path, writes=False)).query(asked("a"), 0)
    assert not path.exists()


def test_the_budget_of_calls_holds_over_steps_and_starts(tmp_path):
    path = tmp_path / "judge.jsonl"
    call, calls = counting([str(n % 10) for n in range(100)])

    def own():
        return judge(call, tries=1, most_calls=3, replies=Replies(path))

    first = own().query(asked("a", "b"), 0)
    second = own().query(asked("c", "d", "a"), 1)
    assert first.metrics["judge_no_verdict"] == 0
    np.testing.assert_array_equal(np.isnan(second.numbers[:, 0]), [False, True, False])
    assert second.metrics["judge_failed/over budget"] == 1 and len(calls) == 3
    # No question was sent, so no reply is stored, and a resumed run has equal results.
    assert len(path.read_text().splitlines()) == 3
    again = own().query(asked("c", "d", "a"), 1)
    assert again.metrics == second.metrics and len(calls) == 3


def test_a_share_of_the_budget_that_was_used_up_is_so_for_a_resumed_run(tmp_path):
    """A process of two had three questions and two calls; the other one left its two."""
    path = tmp_path / "judge.jsonl"
    call, calls = counting([str(n) for n in range(9)])

    def own():
        return judge(call, tries=1, most_calls=4, replies=Replies(path))

    first = own()
    told = first.query(asked("a", "b", "c"), 0, processes=2)
    assert told.metrics["judge_failed/over budget"] == 1 and len(calls) == 2
    again = own().query(asked("a", "b", "c"), 0, processes=2)
    assert again.metrics == told.metrics and len(calls) == 2
    np.testing.assert_array_equal(again.numbers, told.numbers)
    # The rest of the budget is for later steps.
    later = first.query(asked("c", "d"), 1, processes=2)
    assert later.metrics["judge_failed/over budget"] == 1 and len(calls) == 3


def test_the_budget_of_tokens_ends_the_calls():
    with judge_server.serving() as serving:
        call = server("m", environment=serving.environment, at_once=1)
        own = judge(call, tries=1, most_tokens=25)
        found = own.query(asked(*"abcde"), 0)
        # The one that goes over is known only when it has come.
        assert len(serving.seen) == 3 and found.metrics["judge_tokens"] == 30
        assert own.query(asked("f"), 1).metrics["judge_failed/over budget"] == 1
        assert len(serving.seen) == 3


def test_retries_are_taken_from_the_budget():
    with judge_server.serving() as serving:
        call = server("m", environment=serving.environment, retries=5, wait=0.0)
        found = judge(call, tries=1, most_calls=2).query(asked("busy"), 0)
        assert len(serving.seen) == 2 and found.metrics["judge_calls"] == 2


def test_a_process_of_its_own_is_asked_and_half_the_budget_is_its_share():
    with judge_server.process() as environment:
        call = server("m", environment=environment)
        own = judge(call, most_calls=4, tries=1)
        found = own.query(asked("seven", "german", "x"), 0, processes=2)
    assert found.metrics["judge_failed/over budget"] == 1
