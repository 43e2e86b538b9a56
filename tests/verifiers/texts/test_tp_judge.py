"""Relations of a step, the loop of repairs, what verdicts are used for."""

import itertools

import pytest

from rlvr_jax.verifiers.texts.tp_judge import (
    allocation,
    autoformalise,
    check,
    check_step,
    faithful,
    judge,
)


@pytest.mark.parametrize(
    "step",
    [
        "Step 1: 2+2=4.",
        "Hence, 12 * 3 = 36 apples, as 6*6 = 36.",
        "2+2=4,4*2=8",
        "2 + 2 = 4; 4 * 2 = 8",
        "2 + 2 = 4\n4 * 2 = 8\n",
        "2 + 2 = 4 → 4 * 2 = 8",
        "| 2 + 2 = 4 |",
        "$2+2=4$",
        "1 < 2 <= 2 != 3 >= 3 > 1",
        "1 ≤ 2 ≠ 3 ≥ 3",
        "-2 - -2 = 0",
        "5 – 3 = 2",
        "5\u00a0−\u00a03 = 2",
        ".5 + .5 = 1",
        "so we get .5 + .5 = 1",
        "2**3**2 = 512",
        "2 = 2 and I say 3 = 3",
        "I don't see 2 = 3 - 1",
        "((1/3)) * 3 = 1",
        "0 = 2 - 2. ",
    ],
)
def test_true_relations_are_verified(step):
    assert check_step(step) == "VERIFIED"


@pytest.mark.parametrize(
    "step",
    [
        "2 < 2",
        "2 != 2",
        "3 ≥ 4",
        "1 < 2 > 3",
        "2 = 2\n3 = 4",
        "1/3 = 0.33",
        "so 2+2=5.",
        "-2^2 = 4",
    ],
)
def test_false_relations_are_refuted(step):
    assert check_step(step) == "FALSE"


@pytest.mark.parametrize(
    "step",
    [
        *("2 + 2 = x", "2 + 2 = 4x", "n! = 6", "6 = 3!", "f(2) = 4", "2 = 2 x", "a_1 = 1"),
        *("√4 = 2", "2 = √4", "10² = 100", "100 = 10²", "10 = 100 %", "50% = 0.5", "2 = 2 ± 0"),
        *(r"\frac{1}{2} = 0.5", r"2 \cdot 2 = 4", "{2} = 2", "x_{1} = 2", "|3 - 5| = 2"),
        *("1,000 + 1 = 1,001", "0,5 + 0,5 = 1", "3:2 = 1.5", "1 000 = 1000", "٣ = 3", "½ = 0.5"),
        *(
            "3 times 4 = 12",
            "12 = 3 times 4",
            "half of 10 = 5",
            "12 divided by 4 = 3",
            "1 and 2 = 3",
        ),
        *(r"3 \times 4 = 12", r"12 = 3 \times 4", "5000 = 5 thousand", "3 to 4 = 7", "(so 2 = 2)"),
        *("so -2 + 2 = 0", "= 4", "4 =", "4 = = 4", "4 == 4", "1.2.3 = 1.2.3"),
        *("2 + 2 = 4. 4 * 2 = 8", "2^0.5 = 1", "0^-1 = 0", "2^101 = 1", "(1 = 1", "1e3 = 1000"),
        "1" * 201 + " = 1",
        "",
    ],
)
def test_what_cannot_be_read_is_an_error(step):
    assert check_step(step) == "ERROR"


def test_as_a_reward_an_error_is_no_verdict():
    steps = ["2 + 2 = 4", "2 + 2 = 5", "x is large", "4 * 2 = 8"]
    assert [check(step) for step in steps] == [1, 0, None, 1]
    assert check(steps) == 0 and check([steps[0], steps[2]]) is None
    assert check([]) is None


def test_a_solution_is_false_before_it_is_an_error():
    verdicts = {"VERIFIED": "1 = 1", "FALSE": "1 = 2", "ERROR": "x"}
    order = ["FALSE", "ERROR", "VERIFIED"]
    for pair in itertools.product(verdicts, repeat=2):
        assert judge([verdicts[name] for name in pair]) == min(pair, key=order.index)


def test_what_does_not_run_is_repaired_with_its_message():
    seen = []

    def prove(formal):
        return ("VERIFIED", "") if formal == "2 = 2" else ("ERROR", f"no {formal}")

    def repair(step, formal, message):
        seen.append((step, formal, message))
        return "2 = 2" if formal == "second" else "second"

    judged = autoformalise("a step", lambda step: "first", prove, repair)
    assert judged == ("VERIFIED", 3, 2)
    assert seen == [("a step", "first", "no first"), ("a step", "second", "no second")]


@pytest.mark.parametrize(("repairs", "checks"), [(0, 1), (1, 2), (5, 6)])
def test_repairs_are_counted(repairs, checks):
    judged = autoformalise(
        "a step", str, lambda formal: ("ERROR", ""), lambda *texts: "again", repairs
    )
    assert judged == ("ERROR", checks, repairs)


def test_fewer_than_no_repairs_are_refused():
    with pytest.raises(ValueError, match="repairs must be at least 0, got -1"):
        autoformalise("a step", str, lambda formal: ("ERROR", ""), lambda *texts: "again", -1)


def test_a_formaliser_that_says_something_trivial_is_found_out():
    def prove(formal):
        return check_step(formal), ""

    assert faithful("2 + 2 = 4", "2 + 2 = 4", prove)
    assert faithful("2 + 2 = 2*2", "2 + 2 = 2*2", prove)
    assert faithful("3 < 4", "3 < 4", prove)
    assert not faithful("2 + 2 = 4", "1 = 1", prove)
    assert not faithful("2 + 2 = 4", "2 + 4 = 2 + 4 + 0*(1/0)", prove)
    assert not faithful("2 + 2 = 4", "2 4", prove)
    # A chain that says nothing about its end.
    assert not faithful("4 = 4", "4 = 4", lambda formal: ("VERIFIED", ""))


def test_two_solutions_are_allocated_by_the_table():
    table = {
        ("VERIFIED", "VERIFIED"): "SFT, both",
        ("VERIFIED", "FALSE"): "DPO, first chosen",
        ("FALSE", "VERIFIED"): "DPO, second chosen",
        ("FALSE", "FALSE"): "dropped",
    }
    for pair in itertools.product(("VERIFIED", "FALSE", "ERROR"), repeat=2):
        assert allocation(*pair) == table.get(pair, "excluded")
