"""Values between a program and its tests: compared as JSON, as Python does, or by handles."""

from code_tests import asserts, call

from rlvr_jax.verifiers.programs.python.trial import PASSED


def test_values_of_calls_are_compared_as_json_with_their_types(words):
    program = """
import collections, enum
class Small(enum.IntEnum):
    ONE = 1
values = {
    "tuple": (1, (2, 3)), "set": {1}, "none": None, "true": True, "one": 1, "float": 1.0,
    "dict": {1: "a", None: 2}, "default": collections.defaultdict(int, a=1), "bytes": b"a",
    "pair": collections.namedtuple("Pair", "a b")(1, 2), "enum": Small.ONE, "nan": float("nan"),
    "text": "ä\\n\\ud800", "huge": 10 ** 40, "close": 0.1 + 0.2,
}
def f(name): return values[name]
"""
    expected = [
        ("tuple", [1, [2, 3]], 1),
        ("tuple", [1, [2, 4]], 0),
        ("set", [1], 0),
        ("none", None, 1),
        ("none", False, 0),
        ("true", True, 1),
        ("true", 1, 0),
        ("one", True, 0),
        ("one", 1, 1),
        ("one", 1.0, 0),
        ("float", 1, 0),
        ("float", 1.0, 1),
        ("dict", {"1": "a", "null": 2}, 1),
        ("dict", {"1": "a"}, 0),
        ("default", {"a": 1}, 1),
        ("bytes", "a", 0),
        ("pair", [1, 2], 1),
        ("enum", 1, 1),
        ("nan", float("nan"), 1),
        ("text", "ä\n\ud800", 1),
    ]
    tests = [call("f", [name], value) for name, value, _ in expected]
    assert [word == PASSED for word in words(program, tests)] == [ok for *_, ok in expected]
    tests = [call("f", ["huge"], 10**40), call("f", ["close"], 0.3)]
    tests += [call("f", ["close"], 0.3, tolerance=1e-9), call("f", ["one"], 1.0, tolerance=1e-9)]
    assert [word == PASSED for word in words(program, tests)] == [1, 0, 1, 1]


def test_assertions_compare_built_in_values_as_python_does(words):
    program = """
import collections, itertools
def same(x): return x
def counted(text): return collections.Counter(text)
def pair(a, b=2, *, c=3): return (a, b, c)
"""
    tests = asserts(
        "assert same((1, 2)) == (1, 2) != [1, 2] and type(same((1, 2))) is tuple",
        "assert same({1, 2}) == {2, 1} and same(frozenset([1])) == {1}",
        "assert same(b'a') == b'a' and same(bytearray(b'a')) == b'a'",
        "assert same(1) == 1.0 == True and type(same(1.0)) is float and same(True) is True",
        "assert same({(1, 2): [None]}) == {(1, 2): [None]}",
        "assert same(2 ** 100) == 2 ** 100 and same(-(10 ** 5000)) == -(10 ** 5000)",
        "assert same(float('inf')) > 1 and same(float('nan')) != same(float('nan'))",
        "assert same(1j) == 1j and same(range(1, 9, 2)) == range(1, 9, 2)",
        "assert same('\\ud800') == '\\ud800' and same(None) is None",
        "assert counted('aab') == {'a': 2, 'b': 1}",
        "assert pair(1) == (1, 2, 3) and pair(*[1], **{'b': 5, 'c': 6}) == (1, 5, 6)",
        "assert list(same({'a': 1}.items())) == [('a', 1)]",
        "assert same({'a': 1}.keys()) == {'a'} and list(same({'a': 1}.values())) == [1]",
    )
    assert words(program, tests) == [PASSED] * len(tests)


def test_functions_iterators_and_objects_cross_as_handles(words):
    program = """
def count(n):
    for number in range(n): yield number
def forever():
    while True: yield 1
def adder(n): return lambda x: x + n
def twice(f, x): return f(f(x))
def total(values): return sum(values)
def compose(f, g): return lambda x: f(g(x))
class Stack:
    name = "stack"
    def __init__(self, items=()): self.items = list(items)
    def push(self, x):
        self.items.append(x)
        return self
    def pop(self): return self.items.pop()
class Equal:
    def __eq__(self, other): return True
"""
    tests = asserts(
        "assert list(count(3)) == [0, 1, 2] and next(count(1)) == 0 and sum(count(4)) == 6",
        "it = forever()\nassert [next(it), next(it)] == [1, 1]",
        "assert adder(3)(4) == 7",
        "assert twice(lambda x: x * 2, 3) == 12 and twice(str.strip, ' a ') == 'a'",
        "assert total(x for x in [1, 2]) == 3 and total(iter([])) == 0",
        "assert compose(adder(1), adder(2))(3) == 6 and twice(adder(1), 1) == 3",
        "assert compose(abs, lambda x: -x)(3) == 3",
        "s = Stack()\ns.push(1)\ns.push(2)\nassert s.pop() == 2 and s.items == [1]",
        "assert Stack().name == 'stack'",
        "assert Stack([1]).push(2).pop() == 2",
    )
    assert words(program, tests) == [PASSED] * len(tests)
    tests = asserts("assert Equal() == 3", "assert Equal().x == 3", "assert count(3) == [0, 1, 2]")
    assert PASSED not in words(program, tests)


def test_a_call_alone_changes_its_arguments_and_others_do_not(words):
    program = "def f(x):\n    x.clear()\n    return x"
    tests = asserts(
        "x = [3, 1]\nf(x)\nassert x == []",
        "x = {1: 2}\nf(x)\nassert x == {}",
        "x = {1}\nf(x=x)\nassert x == set()",
        "x = [3, 1]\nassert f(x) == sorted(x)",
        "x = [3, 1]\ny = f(x)\nassert x == [3, 1] and y == []",
    )
    assert [word == PASSED for word in words(program, tests)] == [1, 1, 1, 0, 1]


def test_exceptions_arrive_as_built_in_ones_and_an_end_is_none(words):
    program = """
class Mine(ValueError): pass
def f(x):
    if x == 0: raise Mine("zero", 0)
    if x == 1: {}["key"]
    if x == 2: raise SystemExit(0)
    if x == 3: b"\\xff".decode()
    if x == 4: raise type("Other", (Exception,), {})("other")
    if x == 5: import os; os._exit(0)
"""

    def caught(x, kind):
        return f"try:\n    f({x})\nexcept {kind} as e:\n    pass\nelse:\n    assert False"

    tests = asserts(
        caught(0, "ValueError") + "\ntry:\n    f(0)\nexcept ValueError as e:\n    "
        "assert e.args == ('zero', 0)",
        caught(1, "KeyError"),
        caught(3, "UnicodeDecodeError"),
        caught(4, "Exception"),
        caught(0, "KeyError"),
        "try:\n    f(2)\nexcept:\n    pass",
        "try:\n    f(5)\nexcept:\n    pass",
    )
    assert [word == PASSED for word in words(program, tests)] == [1, 1, 1, 1, 0, 0, 0]


def test_what_the_prompt_defines_comes_from_the_prompt(words):
    setup = "import math\ndef half(x): return x / 2\ndef f(x):\n    '''To do.'''\n"
    cheat = "def half(x): return 9\ndef f(x): return 9\nmath = None"
    tests = asserts("assert half(f(4)) == 4", setup=setup, function="f")
    assert words(cheat, tests) != [PASSED]
    assert words("def f(x): return 2 * x", tests) == [PASSED]
    uses = "def f(x): return int(half(4 * math.floor(x)))"
    assert words(uses, tests) == [PASSED]  # a program has the prompt's definitions, too
    absent = asserts("assert f(4) is None", setup=setup, function="f")
    assert words("x = 1", absent) != [PASSED]
    named_as_builtin = asserts("assert sum(1, 2) == 3", function="sum")
    assert words("def sum(a, b): return a + b", named_as_builtin) == [PASSED]


def test_builtins_and_modules_are_the_judges_own(words):
    program = "import math\ndef abs(x): return 9\ndef f(x): return 8.5\n"
    tests = asserts("assert abs(-3) == 9", "assert math.isclose(f(1), 8.5)", "assert undefined(1)")
    assert [word == PASSED for word in words(program, tests)] == [0, 1, 0]
