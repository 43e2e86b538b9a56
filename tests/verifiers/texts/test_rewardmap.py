"""Routes and their partial credit: neighbours of the cases."""

import pytest

from rlvr_jax.verifiers.texts.rewardmap import Leg, check, legs

LINES = {"L1": ["A", "B", "C"], "L2": ["A", "C", "F"], "L3": ["F", "G"]}


def route(*rides):
    parts = [f"Route Name: {n}\nDeparture Stop: {a}\nArrival Stop: {b}" for n, a, b in rides]
    return "\n--\n".join(parts)


def question(start, end, transfers, level="easy"):
    return {
        "type": "route",
        "from": start,
        "to": end,
        "transfers": transfers,
        "map": level,
        "lines": LINES,
    }


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        (route(("L1", "A", "B")), [Leg("L1", "A", "B")]),
        ("Here:\n" + route(("L1", "A", "B")) + "\nEnjoy.", [Leg("L1", "A", "B")]),
        (route(("L1", "A", "B")).replace("\n", "\r\n"), [Leg("L1", "A", "B")]),
        (route(("L1", "A", "B"), ("L2", "B", "")), [Leg("L1", "A", "B")]),
        ("so\n--\n" + route(("L1", "A", "B")) + "\n--\n", [Leg("L1", "A", "B")]),
        ("route name: L1\ndeparture stop: A\narrival stop: B", []),
        ("--", []),
    ],
)
def test_legs_are_parted_by_dashes(answer, wanted):
    assert legs(answer) == wanted


@pytest.mark.parametrize(
    ("rides", "asked", "correct", "detail"),
    [
        # Both lines go from A to C: with no transfer the first of them is the right one.
        ([("L1", "A", "C")], ("A", "C", 0), 1, 2 - 5 + 4),
        ([("L2", "A", "C")], ("A", "C", 0), 1, 2 - 5),
        ([("L1", "A", "B"), ("L1", "B", "C")], ("A", "C", 0), 1, 2 + 2 * (4 - 5)),
        # Of two allowed changes the ones that meet earn 1 each, the last leg earns none.
        ([("L1", "A", "C"), ("L2", "C", "F"), ("L3", "F", "G")], ("A", "G", 2), 1, 2 + 4 + 4 - 2),
        ([("L1", "A", "B"), ("L2", "C", "F"), ("L3", "F", "G")], ("A", "G", 2), 0, 2 + 3 + 4 - 2),
        ([("L1", "A", "C")] * 3, ("A", "C", 9), 0, 2 + 3 * 3),
        ([("L1", "A", "C"), ("L1", "C", "A")] * 4 + [("L1", "A", "C")], ("A", "C", 9), 1, 10),
        ([("L1", "B", "C")], ("A", "C", 0), 0, 0),
    ],
)
def test_partial_credit_goes_leg_by_leg(rides, asked, correct, detail):
    found = check(route(*rides), question(*asked))
    weight = 1.5 if asked[2] else 1.0
    assert found.outcome == correct
    assert found.info == {
        "detail": min(detail, 10),
        "score": weight * (10 * correct + min(detail, 10) / 2),
    }


@pytest.mark.parametrize(
    ("answer", "kind", "gold", "correct"),
    [
        ("no\n", "truefalse", "No", 1),
        ("yes.", "truefalse", "yes", 0),
        (" 7 ", "count", 7, 1),
        ("07", "count", 7, 1),
        ("+7", "count", 7, 0),
        ("seven", "count", 7, 0),
        ("", "count", 0, 0),
    ],
)
def test_small_questions_are_compared_as_they_are(answer, kind, gold, correct):
    assert check(answer, {"type": kind, "gold": gold, "map": "easy"}).outcome == correct


@pytest.mark.parametrize(
    "gold", [{"type": "planning", "map": "easy"}, {"type": "count", "map": ""}]
)
def test_an_unknown_question_has_no_verdict(gold):
    assert check("7", {"gold": 7, **gold}).outcome is None
