"""Judges: replies that are read and replies that are not, and servers and functions that fail."""

import gc
import json
import math
import os
import sys
import threading

import judge_server
import numpy as np
import pytest
from judged_words import SHOW, asked, counting, judge
from own_cpu import own_cpu

from rlvr_jax.judges import (
    Judge,
    Question,
    Replies,
    Reply,
    Spending,
    by_function,
    check_rubric,
    comparison,
    number,
    one_by_one,
    points,
    question,
    read_rubric,
    rubric_question,
    server,
    shown_by,
    strength,
    two_numbers,
    yes_or_no,
)
from rlvr_jax.types import Criterion


def told(word, attempt=0):
    return Question(({"role": "user", "content": word},), attempt)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("Good.\n7", (7.0,)),
        ("Good.\n7/10\n\n", (7.0,)),
        ("Score: 7.5", (7.5,)),
        ("Note: 6", (6.0,)),
        ("评分：6", (6.0,)),
        ("评分：６", None),
        ("评分：六", None),
        ("7\nbut it could be better", None),
        ("3 or 8", None),
        ("11", None),
        ("-1", None),
        ("", None),
        ("<html>502</html>", None),
        ("nan", None),
        ("−1", None),
        ("–1", None),
        ("1.2.3", None),
        ("2024.5.1", None),
        ("Good: 8.", (8.0,)),
        ("7,5", None),
    ],
)
def test_one_number_in_the_last_line_is_a_verdict(words, found):
    assert number()(words) == found


def test_two_ratings_and_a_yes_are_read():
    assert two_numbers()("First is better.\n8, 4") == (8.0, 4.0)
    for unreadable in ("8", "8, 4, 2", "0, 4", "8, 11", "eight, four"):
        assert two_numbers()(unreadable) is None
    assert [yes_or_no()(text) for text in ("so\nYES", "No.", "maybe", "yes and no")] == [
        (1.0,),
        (0.0,),
        None,
        None,
    ]


def test_the_strength_of_a_comparison_is_the_difference_of_two_scores():
    read = strength()
    for found in (-3, -2, -1, 1, 2, 3):
        first, second = read(f"Both are good.\n{found}")
        assert second - first == found and min(first, second) == 0
    for unreadable in ("0", "4", "-4", "1.5", "1, 2", "second", ""):
        assert read(unreadable) is None


def test_points_of_criteria_are_read_by_their_names():
    read = points([Criterion("right", maximum=2), Criterion("short")])
    assert read("right: 1\nright: 2/2\n**Short**: 0.5") == (2.0, 0.5)
    first, second = read("right: 3\nshort: 1")
    assert math.isnan(first) and second == 1
    assert read("right: two\nshort:") is None


def test_points_are_read_within_their_line():
    read = points([Criterion("right"), Criterion("short")])
    # The judge has left one open: the number behind it is of the other.
    first, second = read("right:\nshort: 1")
    assert math.isnan(first) and second == 1
    assert read("right\n: 1") is None
    with own_cpu() as spent:
        assert read("\n" * 200_000) is None
    assert spent[0] < 5  # 250 s if each line is looked at to the end


def test_both_of_two_answers_are_shown_without_their_thoughts():
    shown = shown_by(comparison("{response}|{other}"), lambda text: text.partition(" ")[2])
    (message,) = shown(prompt="p", response="so a", other="but b", reference="", meta={})
    assert message["content"] == "a|b"


@pytest.mark.parametrize(
    ("rubric", "said"),
    [
        ("[]", "must have criteria"),
        ("{}", "must be a list"),
        ("[1", "must be JSON"),
        ('[{"text": "a"}]', "must have a name"),
        ('[{"name": "a", "points": 2}]', "none but"),
        ('[{"name": "a", "weight": "2"}]', "weight must be a number"),
        ('[{"name": "a", "weight": 0}]', "weight must be positive"),
        ('[{"name": "a"}, {"name": "a"}]', "must differ"),
        ('[{"name": "a"}, {"name": "A"}]', "must differ"),
        ('[{"name": "a: b"}]', "without a colon"),
    ],
)
def test_a_rubric_that_cannot_be_used_is_refused(tmp_path, rubric, said):
    path = tmp_path / "rubric.json"
    path.write_text(rubric)
    with pytest.raises(ValueError, match=said):
        read_rubric(path)


def test_a_rubric_asks_for_each_criterion(tmp_path):
    path = tmp_path / "rubric.json"
    path.write_text('[{"name": "right", "text": "Is it right?", "maximum": 2}, {"name": "short"}]')
    rubric = read_rubric(path)
    check_rubric(rubric)
    (message,) = rubric_question(rubric)(prompt="1 + 1", response="2", reference="2")
    assert "right (0 to 2): Is it right?" in message["content"]
    assert message["content"].endswith("right: …\nshort: …")
    with pytest.raises(ValueError, match="rubric: must be a file"):
        read_rubric(tmp_path / "none.json")


@pytest.mark.parametrize("template", ["{prompt}", "{response} {who}", "{response", "{response} {}"])
def test_a_template_that_cannot_be_filled_is_refused(template):
    with pytest.raises(ValueError, match="question: template must"):
        question(template)


def test_two_answers_are_shown():
    (message,) = comparison()(prompt="p", response="a", other="b", reference="")
    assert "First answer:\na" in message["content"] and "Second answer:\nb" in message["content"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("word", "text", "failure", "calls"),
    [
        ("seven", "It is good.\n7", "", 1),
        ("page", None, "no chat completion", 1),
        ("refused", None, "status 401", 1),
        ("busy", None, "status 503", 3),
        ("lost", None, "no connection", 3),
        ("never", None, "time-out", 3),
        ("drip", None, "time-out", 3),
        ("headers", None, "time-out", 3),
        ("later", "5", "", 3),
    ],
)
def test_a_server_is_asked_again_where_that_may_help(word, text, failure, calls):
    seconds = 0.3 if failure == "time-out" else 60
    with judge_server.serving() as serving:
        call = server(
            "m", seconds=seconds, retries=2, wait=0.01, environment=serving.environment, tokens=9
        )
        (reply,) = call.query([told(word)], Spending())
        assert (reply.text, reply.failure, reply.calls) == (text, failure, calls)
        path, _, body = serving.seen[0]
        assert len(serving.seen) == calls and path == "/v1/chat/completions"
        assert (body["model"], body["max_tokens"], body["temperature"]) == ("m", 9, 0.0)


@pytest.mark.thorough
def test_a_connection_is_kept_as_long_as_the_judge(monkeypatch):
    lost = []
    monkeypatch.setattr(sys, "unraisablehook", lost.append)
    with judge_server.serving() as serving:
        call = server("m", environment=serving.environment)
        for word in ("seven", "yes", "seven"):
            (reply,) = call.query([told(word)], Spending())
            assert reply.text
        assert serving.connections == 1
        with monkeypatch.context() as forked:
            forked.setattr(os, "getpid", lambda: 1)
            call.query([told("yes")], Spending())
        assert serving.connections == 2
        del reply, call
        gc.collect()
    assert lost == []


def test_the_key_is_sent_and_nothing_else_says_it(tmp_path):
    with judge_server.serving() as serving:
        environment = {**serving.environment, "OPENAI_API_KEY": "secret"}
        call = server("m", environment=environment)
        found = judge(call, replies=Replies(tmp_path / "judge.jsonl")).query(asked("seven"), 0)
        assert serving.seen[0][1] == "Bearer secret"
    assert found.numbers.tolist() == [[7.0]] and found.words == ["It is good.\n7"]
    written = (tmp_path / "judge.jsonl").read_text()
    assert "secret" not in written + call.identity and "127.0.0.1" not in written


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"environment": {}}, "OPENAI_BASE_URL must be an address .* got none"),
        ({"environment": {"OPENAI_BASE_URL": "me:pass@host"}}, "got another text"),
        ({"environment": {"OPENAI_BASE_URL": "http://host:port/v1"}}, "got another text"),
        ({"environment": {"OPENAI_BASE_URL": "http://host:99999/v1"}}, "got another text"),
        ({"environment": {"OPENAI_BASE_URL": "http://[::1/v1"}}, "got another text"),
        ({"environment": {"OPENAI_BASE_URL": "http://a..b/v1"}}, "got another text"),
        ({"environment": {"OPENAI_BASE_URL": "http://host/é"}}, "got another text"),
        ({"seconds": 0}, "seconds must be positive"),
        ({"tokens": 0}, "tokens must be at least 1"),
        ({"retries": -1}, "retries must be at least 0"),
        ({"model": ""}, "model must be a name"),
    ],
)
def test_a_server_that_cannot_be_asked_is_refused(settings, said):
    given = {"model": "m", "environment": {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, **settings}
    with pytest.raises(ValueError, match=said):
        server(**given)


@pytest.mark.parametrize("key", ["secret\n", "sec\nret", "–secret", "sec ret"])
def test_a_key_that_no_header_holds_is_refused_without_being_told(key):
    environment = {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_API_KEY": key}
    with pytest.raises(ValueError, match="OPENAI_API_KEY must be visible ASCII") as raised:
        server("m", environment=environment)
    assert "sec" not in str(raised.value)


def test_a_judge_that_cannot_be_read_is_no_verdict_and_counted():
    words = ["seven", "nonsense", "two", "chinese", "german", "empty", "page", "refused", "second"]
    with judge_server.serving() as serving:
        call = server("m", environment=serving.environment, retries=0)
        found = judge(call).query(asked(*words), 0)
    nan = math.nan
    np.testing.assert_array_equal(found.numbers[:, 0], [7, nan, nan, nan, 6, nan, nan, nan, 5])
    assert found.metrics == {
        "judge_asked": 9,
        "judge_no_verdict": 6,
        "judge_unreadable": 4 + 4 + 1,  # of both tries, and of the first of "second"
        "judge_calls": 9 + 7,
        "judge_tokens": 10 * (7 + 5),
        "judge_failed/no chat completion": 2,
        "judge_failed/status 401": 2,
    }


def test_equal_texts_are_asked_about_once():
    calls = []
    call = by_function(lambda messages: calls.append(messages) or "7", "f")
    found = judge(call).query(asked("a", "b", "a"), 0)
    assert len(calls) == 2 and found.numbers.tolist() == [[7], [7], [7]]
    assert found.metrics["judge_calls"] == 2


def broken(messages):
    raise RuntimeError("no")


def test_what_a_reply_has_cost_is_counted_once_in_a_step():
    call, calls = counting(["1", None, "3"])
    own = judge(call, tries=1)
    # A step may ask several times: of a first and of a second draw, of each round of pairs.
    told = [
        own.query(asked("a", "b"), 0),
        own.query(asked("b", "a"), 0),
        own.query(asked("a", "c"), 0),
    ]
    assert [one.metrics["judge_calls"] for one in told] == [2, 0, 1] and len(calls) == 3
    assert [one.metrics.get("judge_failed/OSError") for one in told] == [1, None, None]
    assert [one.metrics["judge_no_verdict"] for one in told] == [1, 1, 0]


@pytest.mark.parametrize(
    ("function", "why"), [(broken, "RuntimeError"), (lambda messages: 7, "no text")]
)
def test_a_function_that_fails_is_no_verdict(function, why):
    found = judge(by_function(function, "f"), tries=1).query(asked("a"), 0)
    assert np.isnan(found.numbers).all() and found.metrics[f"judge_failed/{why}"] == 1


def test_a_function_that_never_ends_is_given_up():
    ended, gave_up = threading.Event(), threading.Event()

    def stuck(messages):
        if messages[-1]["content"].endswith("a") and not ended.wait(60):
            gave_up.set()
        return "7"

    call = by_function(stuck, "stuck", seconds=0.2)
    found = judge(call).query(asked("a", "b"), 0)
    assert not gave_up.is_set()
    ended.set()
    np.testing.assert_array_equal(found.numbers[:, 0], [math.nan, 7])
    assert found.metrics["judge_failed/time-out"] == 2
    with pytest.raises(ValueError, match="seconds must be positive, got 0"):
        by_function(stuck, "stuck", seconds=0)


def test_questions_are_under_way_together_and_no_more_than_wanted():
    now, most, lock = [0], [0], threading.Lock()
    together = threading.Barrier(4, timeout=60)

    def reply(question, spending):
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        together.wait()
        with lock:
            now[0] -= 1
        return Reply("1")

    one_by_one(reply, "slow", at_once=4).query([told(str(n)) for n in range(16)], Spending())
    assert most[0] == 4
    with pytest.raises(ValueError, match="at_once must be at least 1, got 0"):
        one_by_one(reply, "slow", at_once=0)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"names": []}, "names must be those of the numbers"),
        ({"tries": 0}, "tries must be at least 1"),
        ({"most_calls": -1}, "most_calls must be at least 0"),
    ],
)
def test_a_judge_that_cannot_judge_is_refused(settings, said):
    given = {"call": None, "prompt_of": SHOW, "parse": number(), "names": ["good"], **settings}
    with pytest.raises(ValueError, match=said):
        Judge(**given)


def test_another_model_or_temperature_is_another_judge():
    environment = {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
    made = [
        server(model, temperature=heat, environment=environment).identity
        for model in ("a", "b")
        for heat in (0.0, 1.0)
    ]
    assert len(set(made)) == 4 and json.loads(made[0])
