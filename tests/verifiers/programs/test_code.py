"""Python programs against tests: how a program is found, and what a test asks of it."""

import pytest
from code_tests import LIMITS, asserts, call
from machine import needs_root_of_its_own

from rlvr_jax.sandbox import Limits, Sandbox
from rlvr_jax.sandbox.layers import LAYERS
from rlvr_jax.verifiers.programs.python import trial
from rlvr_jax.verifiers.programs.python.code import check, extract
from rlvr_jax.verifiers.programs.python.trial import PASSED, NoVerdict, run_tests

ADD = "def add(a, b): return a + b"


def prints(wanted, given="", **fields):
    return {"kind": "io", "in": given, "out": wanted, **fields}


@pytest.mark.parametrize(
    ("response", "program"),
    [
        ("```python\nx\n```", "x\n"),
        ("```py\nx\n```", "x\n"),
        ("```PYTHON\nx\n```", "x\n"),
        ("``` python\nx\n```", "x\n"),
        ("```python title=a\nx\n```", "x\n"),
        ("so: ```python\nx\n```", "x\n"),
        ("````python\nx\n````", "x\n"),
        ("```python\nx```", "x"),
        ("```python\r\nx\r\n```\r\n", "x\r\n"),
        ("```python\nx\n```  \nbye", "x\n"),
        ("```python\nx = '```'\n```", "x = '```'\n"),
        ("```python\nx\n```\n```\noutput\n```", "x\n"),
        ("```python\nx\n```\n```json\n{}\n```", "x\n"),
        ("```python\nx\n```\n```python\ny", "x\n"),
        ("```python\nx\n```\nthen\n```py\ny\n```", "y\n"),
        ("1. first\n   ```python\n   if x:\n       y\n   ```", "if x:\n    y\n"),
        ("<think>```python\ny\n```</think>```python\nx\n```", "x\n"),
        ("a</think>b</think>```python\nx\n```", "x\n"),
        ("<think>```python\nx\n```", None),
        ("```python\nx\n``` </think> done", None),
        ("```python3\nx\n```", "x\n"),
        ("```Python3\nx\n```", "x\n"),
        ("```py3\nx\n```", "x\n"),
        ("```python3.11\nx\n```", "x\n"),
        ("```python 3\nx\n```", "x\n"),
        ("~~~python\nx\n~~~", "x\n"),
        ("~~~~ python3\nx = '~~~'\n~~~~\n", "x = '~~~'\n"),
        ("~~~python\nx = '''\n```\n'''\n~~~", "x = '''\n```\n'''\n"),
        ("~~~py\nx\n~~~\n```py\ny\n```", "y\n"),
        ("```py\ny\n```\n~~~py\nx\n~~~", "x\n"),
        ("```\nx\n```", "x\n"),
        ("~~~\nx\n~~~", "x\n"),
        ("So:\n\n```  \nx\n```\nDone.", "x\n"),
        ("```\nx\n```\n```\ny\n```", "y\n"),
        ("```json\n{}\n```\n```\nx\n```", "x\n"),
        ("```\nx\n```\n```json\n{}\n```", "x\n"),
        ("```py\nx\n```\n```\ny\n```", "x\n"),
        ("```py\nx\n```\n~~~\ny\n~~~", "x\n"),
        ("1. first\n   ```\n   if x:\n       y\n   ```", "if x:\n    y\n"),
        ("<think>```\ny\n```</think>\n~~~\nx\n~~~", "x\n"),
        ("~~~python\nx\n```", None),
        ("```\nx", None),
        ("```json\n{}\n```\nso", None),
        ("Use ``` and ```\nfor code", None),
        ("~~~\n \n~~~", None),
        ("```python2x\nx\n```", None),
        ("```javascript\nx\n```", None),
        ("```pypy\nx\n```", None),
        ("```python x```", None),
        ("```python\nx", None),
        ("```python\n \n\t\n```", None),
        ("x", None),
        ("", None),
    ],
)
def test_the_last_closed_block_behind_the_thinking_is_the_program(response, program):
    assert extract(response) == program


@pytest.mark.parametrize(
    "text",
    [
        *(
            "```python\n" * 50_000,
            "```" * 100_000,
            "`" * 300_000,
            "```python\n" + "```x\n" * 50_000,
        ),
        *("```\n" * 50_000, "~" * 300_000, "~~~\n```\n" * 50_000, " " * 300_000 + "\n```"),
    ],
    ids=["openings", "fences", "ticks", "languages", "unlabelled", "tildes", "both", "blanks"],
)
def test_a_response_of_fences_is_read_in_linear_time(text):
    extract(text)


def test_printed_lines_are_compared_token_by_token(words):
    program = "print(input()); print('b  c'); print(); print()"
    tests = [
        prints("a\nb c", "a\n"),
        prints("a \n b\tc\n\n\n", "a"),
        prints("a\nb\nc", "a"),
        prints("a b c", "a"),
        prints("\na\nb c", "a"),
        prints("A\nb c", "a"),
        prints("0.30000000000000004\nb c", "0.3"),
        prints("0.30000000000000004\nb c", "0.3", tolerance=1e-6),
        prints("0.31\nb c", "0.3", tolerance=1e-6),
        prints("nan\nb c", "0.3", tolerance=1e-6),
    ]
    assert [word == PASSED for word in words(program, tests)] == [1, 1, 0, 0, 0, 0, 0, 1, 0, 0]


@pytest.mark.parametrize(
    ("program", "word"),
    [
        ("print(3); raise SystemExit(1)", "status"),
        ("print(3); 1 / 0", "status"),
        ("print(3); import os; os.kill(os.getpid(), 15)", "status"),
        ("print(3); raise SystemExit(0)", PASSED),
        ("import sys; sys.stderr.write('note'); print(3)", PASSED),
        ("if __name__ == '__main__': print(3)", PASSED),
        ("print(3)\nexit()", PASSED),
        ("print(3)\nquit()", PASSED),
        ("print(3)\nexit(0)", PASSED),
        ("def main():\n    print(3)\n    exit()\n\nmain()\nprint(4)", PASSED),
        ("if True:\n    print(3)\n    quit(0)\nprint(4)", PASSED),
        ("print(3)\nif 3 > 2: exit(1)", "status"),
        ("print(3)\nexit('wrong')", "status"),
        ("print(3)\nexit", PASSED),
        ("import os; print(3, flush=True); os._exit(0)", PASSED),
        ("print(3) if input() else 0", "status"),
        ("print('3' * 2 ** 21)", "output"),
        ("print(3); x = 'x' * 2 ** 31", "status"),
        ("print(3", "status"),
        ("print(3)\0", "status"),
        ("print(3) # \ud800", "program"),
        pytest.param("print(3)" + " " * 2**20, "program", id="a megabyte"),
    ],
)
def test_a_program_that_prints_must_end_well(words, program, word):
    assert words(program, [prints("3")]) == [word]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "program",
    [
        "print(sum(map(int, open('/dev/stdin').read().split())))",
        "with open('/dev/stdin') as lines: print(sum(int(line) for line in lines))",
        "print(int(input()) + int(open('/dev/stdin').read().split()[-1]))",
        "import fileinput; print(sum(map(int, fileinput.input('/dev/stdin'))))",
        "print(sum(map(int, open('/dev/fd/0'))))",
        "print(sum(map(int, open('/proc/self/fd/0'))), file=open('/dev/stdout', 'w'))",
        "import sys; print(sum(map(int, sys.stdin))); print('note', file=open('/dev/stderr', 'w'))",
        "print(sum(map(int, open(0))))\nquit()",
    ],
)
def test_a_program_reads_and_writes_its_streams_by_name(words, program):
    with Sandbox() as sandbox:
        needs_root_of_its_own(sandbox)
    assert words(program, [prints("7", "3\n4\n")]) == [PASSED]


@pytest.mark.thorough
@pytest.mark.parametrize("end", ["exit()", "quit()", "import sys; sys.exit(0)", "raise SystemExit"])
def test_what_a_program_has_defined_before_it_ends_well_is_there(words, end):
    tests = [*asserts("assert add(1, 2) == 3"), call("add", [1, 2], 3)]
    program = f"{ADD}\nprint(add(1, 2))\n{end}\ndel add"
    assert words(program, tests) == [PASSED, PASSED]
    assert PASSED not in words(f"{ADD}\nexit(1)", tests)
    assert PASSED not in words(f"{end}\n{ADD}", tests)


@pytest.mark.thorough
def test_a_loop_without_end_is_stopped(words):
    given = Limits(wall_seconds=3.0, cpu_seconds=0.1), 3.0
    assert words("while True: pass", [prints("3")], *given)[0] in ("cpu", "time")
    assert words(f"{ADD}\nwhile True: pass", asserts("assert add(1, 2) == 3"), *given) != [PASSED]


@pytest.mark.thorough
def test_one_test_that_is_stopped_costs_only_itself(words):
    program = "def f(x):\n    import os, time\n    if x == 2: time.sleep(60)\n"
    program += "    if x == 3: os.kill(-1, 9)\n    return x"
    limits = Limits(wall_seconds=2.0, cpu_seconds=1.0)
    tests = [call("f", [1], 1), call("f", [2], 2), call("f", [3], 3), call("f", [4], 4)]
    assert [word == PASSED for word in words(program, tests, limits)] == [1, 0, 0, 1]


def test_a_test_that_ends_its_own_process_costs_only_itself(words):
    codes = "import os\nos._exit(0)", "import os\nos.kill(os.getpid(), 9)", "assert add(1, 2) == 3"
    assert words(ADD, asserts(*codes)) == ["ended", "ended", PASSED]


def test_tests_that_are_not_reached_in_time_are_not_passed(words):
    limits = Limits(wall_seconds=0.6, cpu_seconds=1.0)
    tests = [call("f", [], 1)] * 3
    assert words("import time\ndef f(): time.sleep(5)", tests, limits, 0.5) == ["time"] * 3


def test_what_a_program_does_beside_is_free(words):
    tests = [call("add", [1, 2], 3), *asserts("print('passed')\nassert add(1, 2) == 3")]
    beside = "import sys\nprint('x')\nsys.stdout.write('y')\n"
    main = "\nif __name__ == '__main__':\n    print(input())"
    assert words(beside + ADD + main, tests) == [PASSED] * 2
    data = "import dataclasses\n@dataclasses.dataclass\nclass P: x: 'int'\n"
    assert words(data + ADD, tests) == [PASSED] * 2
    assert words(ADD + "\n1 / 0", tests) == ["program"] * 2


def test_each_test_begins_anew(words):
    program = "seen = []\ndef f(x, more=[]):\n    seen.append(x)\n    more.append(x)\n"
    program += "    open('file', 'a').write('x')\n    return len(seen) + len(more)"
    assert words(program, [call("f", [1], 2), call("f", [1], 2)]) == [PASSED] * 2


def test_the_score_is_strict_or_the_share():
    tests = [call("add", [1, 2], 3), call("add", [1, 1], 3)]
    strict, share = (check(ADD, tests, score=score) for score in ("strict", "fraction"))
    assert (strict.outcome, share.outcome) == (0.0, 0.5)
    assert strict.info == share.info == {"strict": 0.0, "fraction": 0.5}
    assert (strict.stage, strict.answer) == ("value", ADD)


def test_of_many_tests_the_same_ones_are_run():
    tests = [call("f", [number], number % 2) for number in range(50)]
    found = [check("def f(x): return 0", tests, most_tests=4) for _ in range(2)]
    assert found[0] == found[1]
    assert (found[0].info["fraction"] * 4) % 1 == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("gold", "stage"),
    [
        ([], "no tests"),
        (None, "no tests"),
        ("assert f(1)", "no tests"),
        ([3], "a test of no known kind"),
        ([{"kind": "unit"}], "a test of no known kind"),
        ([{"kind": []}], "a test of no known kind"),
        ([{"kind": "io", "in": ""}], "a test without out"),
        ([{"kind": "io", "in": "", "out": 3}], "a test whose out is a int"),
        ([{"kind": "io", "in": "\ud800", "out": ""}], "a test whose in is not a text"),
        ([{"kind": "call", "function": "f", "args": 3, "value": 1}], "a test whose args is a int"),
        ([{"kind": "assert", "code": "x", "setup": 3}], "a test whose setup is a int"),
    ],
)
def test_tests_that_are_none_are_no_verdict(gold, stage):
    found = check(ADD, gold)
    assert (found.outcome, found.stage) == (None, stage)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"score": "half"}, "code: score must be one of strict, fraction, got 'half'"),
        ({"most_tests": 0}, "code: most_tests must be at least 1, got 0"),
        ({"cpu_seconds": -1.0}, "cpu_seconds must be .* got -1.0"),
        ({"total_seconds": 0.0}, "code: total_seconds must be more than 0, got 0.0"),
        ({"packages": ["no_such_package"]}, "packages must be installed"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        check(ADD, [call("add", [1, 2], 3)], **options)


def test_a_program_may_import_the_packages_that_are_named():
    with Sandbox() as box:
        needs_root_of_its_own(box)  # where packages can be read
    program = "import numpy as np\ndef f(x): return np.int64(x) + np.arange(2)"
    tests = asserts("assert f(1) == [1, 2]")
    assert check(program, tests).outcome == 0
    assert check(program, tests, packages=["numpy"], cpu_seconds=3, wall_seconds=10).outcome == 1


def test_without_a_sandbox_nothing_runs_and_a_sentence_says_so():
    tests = [call("add", [1, 2], 3)]
    without = set(LAYERS) - {"rlimits", "watch", "tree"}
    with (
        Sandbox(_without=without) as closed,
        pytest.raises(NoVerdict, match="must keep programs from files, network and other"),
    ):
        run_tests(closed, ADD, tests, LIMITS)
    with Sandbox(_without=without, unsafe_local=True) as opened:
        assert run_tests(opened, ADD, tests, LIMITS) == [PASSED]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["_judged", "alone"])
def test_a_program_that_loops_is_not_waited_for_in_every_test(words, monkeypatch, name):
    plain, run = getattr(trial._Trial, name), []

    def counted(*arguments):
        told = plain(*arguments)
        run.extend(told[1] if name == "_judged" else [told])
        return told

    monkeypatch.setattr(trial._Trial, name, counted)
    made = [call("f", [n], n) if name == "_judged" else prints(str(n)) for n in range(12)]
    found = words("def f(x): return x\nwhile True: pass", made, LIMITS, 60.0)
    assert len(found) == 12 and PASSED not in found
    assert 2 <= len(run) <= 4  # two, and once more what the wall limit stopped


@pytest.mark.thorough
def test_two_slow_tests_apart_stop_nothing(words):
    program = "import time\ndef f(x):\n    if x in (1, 3): time.sleep(60)\n    return x"
    limits = Limits(wall_seconds=2.0, cpu_seconds=1.0)
    found = words(program, [call("f", [n], n) for n in range(6)], limits)
    assert [word == PASSED for word in found] == [1, 0, 1, 0, 1, 1]
