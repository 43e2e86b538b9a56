"""Grades per second of each verifier, and the longest time of one grade.

    python -m experiments.bench_verifiers
    python -m experiments.bench_verifiers --tasks brackets sql --rows 512
    python -m experiments.bench_verifiers --types

The tasks that ship come first, then the checks that none of them uses. Each has one correct and one
incorrect answer. `rate` is of one call with both in turns, after a call that starts the verifier.
Where a number may precede an answer, every response has another one, so that grades are not cached.
`worst` is the longest grade of one hostile text: megabytes, unclosed brackets and boxes, towers of
powers, programs that do not end.
"""

import itertools
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import tyro
from rich.console import Console
from rich.table import Table

from rlvr_jax import tasks
from rlvr_jax.arguments import as_typed
from rlvr_jax.runs import described, guarded
from rlvr_jax.tasks import Prompt, Response, Task, from_rows, verifier
from rlvr_jax.verifiers import Check, MathVerifier

MATHS = "maths"

HOSTILE = {
    "a megabyte": "7" * 2**20,
    "boxes": r"\boxed{1}" * 1000,
    "open boxes": r"\boxed{" * 20_000,
    "brackets": "(" * 100_000,
    "powers": r"\boxed{" + "9^" * 200 + "9}",
    "fractions": r"\boxed{" + r"\frac{1}{" * 500 + "2" + "}" * 501,
    "repeats": "a" * 30_000 + "!",
    "a loop": "```python\nwhile True: pass\n```",
    "a query": "```sql\nwith recursive c(x) as (select 1 union all select x + 1 from c)"
    " select x from c\n```",
    "an answer": "<answer>" + "x " * 100_000 + "</answer>",
    "surrogates": "\ud800\udfff" * 1000,
}


class Rule(NamedTuple):
    """A check without a task: an answer, and golds with which it is correct and incorrect."""

    check: Check
    golds: tuple[Any, Any]
    answer: str
    threads: int | None = 1
    """None: one for each core, for checks that wait for a sandbox."""


def _rule(module: str, golds: tuple, answer: str, extract: str = "", **options: Any) -> Rule:
    room = f"rlvr_jax.verifiers.{module}"
    return Rule(Check(f"{room}:check", extract and f"{room}:{extract}", options), golds, answer)


def _points(of: Callable[[float], float]) -> dict[str, list]:
    x = [0.5, 1.0, 2.0, 3.0]
    rows, y = [[each] for each in x], [of(each) for each in x]
    return {"x_train": rows, "y_train": y, "x_test": rows, "y_test": y}


def _program(program: str, *tests: dict[str, Any]) -> Rule:
    """A program that passes its tests, and one more test that it fails."""
    code = "rlvr_jax.verifiers.programs.python.code"
    golds = list(tests), [*tests, {"kind": "assert", "code": "assert False"}]
    return Rule(
        Check(f"{code}:check", f"{code}:extract"), golds, f"```python\n{program}\n```", None
    )


_ADD = "def add(a, b):\n    return a + b"
_CALLS = [{"kind": "call", "function": "add", "args": [1, n], "value": 1 + n} for n in range(8)]
_LOOP = "for n in range(8):\n    assert add(1, n) == 1 + n"
_ASSERTS = [{"kind": "assert", "code": f"assert add(1, {n}) == {1 + n}"} for n in range(8)]
_PATCH = """<think>t</think><solution>
```python
### a.py
<<<<<<< SEARCH
x = 1
=======
x = 2
>>>>>>> REPLACE
```
</solution>"""
_TABLE = r"\begin{tabular}{cc}a & b \\ c & d\end{tabular}"
_MAP = {"type": "route", "from": "A", "transfers": 0, "map": "easy", "lines": {"L1": [*"ABCD"]}}
_FIGURE = """```geo
A = point(0, 0)
B = point(3, 4)
answer = distance(A, B)
```"""
RULES = {
    "swe_rl": _rule(
        "programs.swe_rl",
        tuple({"files": {"a.py": "x = 1\n"}, "oracle": {"a.py": f"x = {n}\n"}} for n in (2, 3)),
        _PATCH,
    ),
    "geometry_formal": _rule("programs.geometry_formal", (5, 6), _FIGURE, "extract"),
    "symbolic_regression": _rule(
        "programs.symbolic_regression",
        (_points(lambda x: 2 * x + 1), _points(lambda x: 100 * x**3)),
        "2*x1 + 1",
    ),
    "table2latex_dual_reward": _rule(
        "texts.table2latex_dual_reward", (_TABLE, r"\begin{tabular}{c}a\end{tabular}"), _TABLE
    ),
    "critique_rl": _rule("texts.critique_rl", (True, False), r"\conclusion{True}", "extract"),
    "rewardmap": _rule(
        "texts.rewardmap",
        (_MAP | {"to": "C"}, _MAP | {"to": "D"}),
        "Route Name: L1\nDeparture Stop: A\nArrival Stop: C",
    ),
    "affectgpt_r1": _rule(
        "texts.affectgpt_r1", ("happy", "sad"), "happy", wheel={"happy": "joy", "sad": "sadness"}
    ),
    "format_rewards": _rule(
        "texts.format_rewards", ("", "<think>"), "<think>a</think><answer>b</answer>"
    ),
    "code_io": _program("print(int(input()) + 1)", {"kind": "io", "in": "2\n", "out": "3\n"}),
    "code_call": _program(_ADD, _CALLS[0]),
    "code_calls": _program(_ADD, *_CALLS),
    "code_assert_of_8": _program(_ADD, {"kind": "assert", "code": _LOOP}),
    "code_asserts": _program(_ADD, *_ASSERTS),
    # The arithmetic of a text is right or wrong by itself.
    "tp_judge": _rule("texts.tp_judge", ("", ""), "12*3 = 36, then 36 + 4 = 40"),
}


# A gold, a correct and an incorrect answer, # being another number each time.
TYPES = {
    "integer": ("#234", "#,234", "#243"),
    "fraction": (r"\frac{#}{4}", r"\frac{2\cdot #}{8}", r"\frac{#}{5}"),
    "decimal": ("#.50", "#.5", "#.51"),
    "tuple": ("(#,2)", "(#.0, 2)", "(2,#)"),
    "interval": ("[0,#)", r"0 \le x < #", "[0,#]"),
    "set": (r"\{1,2,#\}", r"\{#,2,1\}", r"\{1,#\}"),
    "unit": ("# cm", r"# \text{ cm}", "# m"),
    "polynomial": ("x^2+2x+#", "(x+1)^2+#-1", "(x-1)^2+#"),
    "equation": ("y=2x+#", "2x-y+#=0", "y=x+#"),
    "radical": (r"#\sqrt{3}", r"\sqrt{3\cdot #^{2}}", r"\sqrt{#}"),
    "trigonometry": (r"\sin #x", r"\cos(#x-\frac{\pi}{2})", r"\cos #x"),
}
ROUNDS = 200
FIRST = 100  # so that all numbers are as long


@dataclass(frozen=True)
class Config:
    """Verifiers and responses."""

    tasks: tuple[str, ...] = ()
    """Names of tasks and of checks; empty: all that can be built here."""
    rows: int = 512
    """Responses of the timed call."""
    types: bool = False
    """Time only the maths verifier, one answer at a time: microseconds by type of answer."""


def main(arguments: Sequence[str]) -> None:
    """Measures and prints the table."""
    config = tyro.cli(Config, args=list(arguments), description=described(__doc__))
    if config.rows < 1:
        raise ValueError(f"--rows must be at least 1, got {config.rows}")
    if config.types:
        print(f"{'type':14} {'correct':>9} {'incorrect':>9}  µs per grade; stage of the correct")
        for name, (right, wrong, stage) in speed().items():
            print(f"{name:14} {right:>9.0f} {wrong:>9.0f}  {stage}")
        return
    table = Table("task", "grades / s", "ms / grade", "worst, s", "of")
    left_out = []
    for name in config.tasks or (MATHS, *tasks.names(), *RULES):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                task = _task(name)
        except ValueError as error:
            if config.tasks:
                raise
            left_out.append(f"{name}: {error}")
            continue
        seconds = rate(task, config.rows)
        worst, what = hostile(task)
        cells = f"{1 / seconds:,.0f}", f"{1000 * seconds:.3f}", f"{worst:.2f}", what
        known = any(prompt.gold for prompt in task.train)
        table.add_row(name if known else f"{name}, of no answer", *cells)
    console = Console()
    console.print(table)
    for line in left_out:
        console.print(f"left out: {line}", highlight=False, soft_wrap=True)


def _task(name: str) -> Task:
    if name == MATHS:
        return mathematics()
    if name not in RULES:
        with as_typed("--tasks", "load: name"):
            return tasks.load(name)
    check, golds, answer, threads = RULES[name]
    train = [Prompt(f"{name} {n}", answer=gold, gold=answer) for n, gold in enumerate(golds)]
    test = [Prompt(f"{name}, held out", answer=golds[0], gold=answer)]
    verify = verifier(check, workers=0, threads=threads)
    return Task(name, train, test, verify, response_tokens=256)


def mathematics() -> Task:
    """Answers as data sets have them: numbers, fractions, formulas, sets, tuples."""
    forms = r"{n}", r"\frac{{{n}}}{{7}}", r"{n}x^2 + 1", r"\{{1, {n}\}}", r"({n}, \sqrt{{{n}}})"
    rows = [
        {"prompt": f"{form} {number}", "answer": form.format(n=number)}
        for number in range(2, 202)
        for form in forms
    ]
    return from_rows(rows)


def rate(task: Task, rows: int) -> float:
    """Seconds of a grade, in one call for so many responses."""
    prompts = list(itertools.islice(itertools.cycle(task.train), 2 * rows))
    golds = [prompt.gold or "" for prompt in prompts]

    def answers(form: str) -> list[Response]:
        """Every other one answers the prompt before; a number makes each text its own."""
        pairs = [golds[number - number % 2] for number in range(len(prompts))]
        return [Response(form.format(number, gold)) for number, gold in enumerate(pairs)]

    # As long as an answer with a number before it is one; what is asked twice is not remembered by
    # those that take the text as it is.
    numbered, plain = answers("{0}\n{1}"), answers("{1}")
    first = [task.verify(prompts[:1], texts[:1])[0].outcome for texts in (numbered, plain)]
    texts = numbered if first[0] == first[1] else plain
    warm = max(1, min(rows, 16))
    task.verify(prompts[rows : rows + warm], texts[rows : rows + warm])
    started = time.perf_counter()
    task.verify(prompts[:rows], texts[:rows])
    return (time.perf_counter() - started) / rows


def speed() -> dict[str, tuple[float, float, str]]:
    """Microseconds per grade of correct and incorrect answers, and the stage of the correct one.

    Answers are graded one by one, and none was seen before; a tenth of them are faster. "digits"
    includes the way to a worker and back.
    """
    found = {}
    with MathVerifier(workers=1) as verifier:
        verifier.grade([r"\sqrt{3}"], [r"\boxed{3^{1/2}}"])
        for name, (gold, right, wrong) in TYPES.items():
            fastest, stage = [], ""
            for answer, first in ((wrong, FIRST), (right, FIRST + ROUNDS)):
                times = []
                for number in range(first, first + ROUNDS):
                    texts = [text.replace("#", str(number)) for text in (gold, answer)]
                    start = time.perf_counter()
                    (grade,) = verifier.grade([texts[0]], [f"\\boxed{{{texts[1]}}}"])
                    times.append(time.perf_counter() - start)
                    stage = grade.stage
                    if grade.outcome != (answer is right):
                        raise RuntimeError(
                            f"bench_verifiers: {texts} must be graded correct, got {grade}"
                        )
                fastest.append(1e6 * sorted(times)[ROUNDS // 10])
            found[name] = fastest[1], fastest[0], stage
    return found


def hostile(task: Task) -> tuple[float, str]:
    """The longest grading time of a text of `HOSTILE`, and the name of this text."""
    found = []
    for what, text in HOSTILE.items():
        started = time.perf_counter()
        task.verify(task.train[:1], [Response(text)])
        found.append((time.perf_counter() - started, what))
    return max(found)


if __name__ == "__main__":
    guarded(main)
