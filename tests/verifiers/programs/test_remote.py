"""Values that do not cross as they are: programs that are right are paid, and claims are not."""

import json

import pytest
from remote_programs import (
    CHEATS,
    CLAIMS,
    EQUAL,
    LIBRARY,
    LIST,
    OBJECTS,
    OWN_CLASSES,
    OWN_STATE,
    PROMPTS,
)

from rlvr_jax.sandbox import Limits, Sandbox
from rlvr_jax.verifiers.programs.python.code import check
from rlvr_jax.verifiers.programs.python.outputs import same_value
from rlvr_jax.verifiers.programs.python.trial import PASSED, run_tests

LIMITS = Limits(wall_seconds=20.0, cpu_seconds=2.0)  # wall time is ample for a busy machine


@pytest.fixture(scope="module")
def word():
    """(program, test, setup) -> the word for it."""
    with Sandbox() as sandbox:

        def run(program, code, setup=""):
            test = {"kind": "assert", "code": code, "setup": setup, "function": "f"}
            return run_tests(sandbox, program, [test], LIMITS)[0]

        yield run


@pytest.mark.thorough
@pytest.mark.parametrize(("program", "holds"), LIBRARY)
def test_a_value_of_the_standard_library_crosses(word, program, holds):
    assert word(program, f"assert {holds}") == PASSED
    assert word(program, f"assert not ({holds})") == "assertion"


@pytest.mark.parametrize(
    "value", ["deque([1])", "Fraction(1, 2)", "Decimal(3)", "Counter('a')", "P(3)"]
)
def test_it_crosses_as_an_argument_too(word, value):
    names = "from collections import *\nfrom decimal import *\nfrom fractions import *"
    code = f"{names}\nP = namedtuple('P', 'x')\nx = {value}\nassert f(x) == x"
    code += " and repr(f(x)) == repr(x)"
    assert word("def f(x): return x", code) == PASSED


@pytest.mark.thorough
@pytest.mark.parametrize(("program", "code"), OBJECTS)
def test_an_object_of_the_program_is_asked(word, program, code):
    assert word(program, code) == PASSED


@pytest.mark.thorough
@pytest.mark.parametrize(("setup", "program", "code"), PROMPTS)
def test_an_object_of_the_prompts_class_crosses_as_a_copy(word, setup, program, code):
    assert word(program, code, setup) == PASSED


@pytest.mark.thorough
@pytest.mark.parametrize("cheat", CHEATS)
def test_an_object_that_claims_to_be_equal_earns_nothing(cheat):
    tests = [{"kind": "assert", "code": code} for code in CLAIMS]
    with Sandbox() as sandbox:
        words = run_tests(sandbox, f"{EQUAL}\n{cheat}", tests, LIMITS)
    paid = [code for code, word in zip(CLAIMS, words, strict=True) if word == PASSED]
    assert paid == []


@pytest.mark.thorough
@pytest.mark.parametrize(("program", "code"), OWN_CLASSES)
def test_objects_that_are_equal_to_all_of_their_class_earn_nothing(word, program, code):
    assert word(program, code) != PASSED


def test_a_copy_has_the_methods_and_equality_of_the_prompt(word):
    setup = LIST.replace(
        "def linked", "    def total(self, wanted): return self.val == wanted\ndef linked"
    )
    for code in (
        "assert f(None).val == 9",
        "assert f(None).total(9)",
        "assert items(f(None)) == [9]",
    ):
        assert word(OWN_STATE, code, setup) != PASSED


BIG = 10**5000 + 7


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("program", "args", "value", "paid"),
    [
        ("def f(n): return 10 ** n", [4300], 10**4300, 1),
        ("def f(n): return 10 ** n + 1", [4300], 10**4300, 0),
        ("def f(n): return -(10 ** n)", [5000], -(10**5000), 1),
        ("def f(n): return [10 ** n, {'a': 10 ** n}]", [4400], [10**4400, {"a": 10**4400}], 1),
        ("def f(n): return 10.0 ** n", [4], 10000, 0),
        ("def f(x): return x % 10", [BIG], 7, 1),
        ("def f(x): return x", [BIG], BIG, 1),
        ("def f(x): return x + 1", [BIG], BIG, 0),
        ("def f(xs): return sum(xs)", [[BIG, -BIG, 1]], 1, 1),
        ("def f(x, y): return {'a': x, 'b': y}", ["a", None], {"a": "a", "b": None}, 1),
    ],
    ids=range(10),
)
def test_integers_have_no_longest(program, args, value, paid):
    test = {"kind": "call", "function": "f", "args": args, "value": value}
    assert check(program, [test] * 3, most_tests=2, wall_seconds=20.0).outcome == paid


def test_an_assertion_may_hold_an_integer_of_any_length(word):
    assert word("def f(): return 10 ** 5000", f"assert f() == 1{'0' * 5000}") == PASSED
    assert word("def f(): return 10 ** 5000", f"assert f() == 1{'0' * 4999}1") == "assertion"


def test_a_long_integer_is_compared_in_linear_time():
    nines = "9" * 2**20
    assert not same_value(nines, 9)
    assert not same_value(f"[{nines}, {nines}]", [9, 9])
    assert not same_value(nines, 9.0) and not same_value(nines, json.loads("1e999"), 0.1)
