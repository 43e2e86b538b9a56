"""How many grades a second the verifier of each task gives, and the longest time of one.

    python -m experiments.bench_verifiers
    python -m experiments.bench_verifiers --tasks brackets sql --rows 512

`rate` is of one call with right and wrong answers in turns, as a step makes it, after a call that
starts what the verifier needs; every response is asked once, so that nothing is remembered.
`worst` is the longest grade of one hostile text alone: megabytes, brackets and boxes without end,
towers of powers, programs that run for ever.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import tyro
from rich.console import Console
from rich.table import Table

from rlvr_jax import tasks
from rlvr_jax.runs import guarded
from rlvr_jax.tasks import Response, Task, from_rows

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


@dataclass(frozen=True)
class Config:
    """What is timed."""

    tasks: tuple[str, ...] = ()
    """Names; empty: all that are built in and can be made here."""
    rows: int = 512
    """Responses of the call that is timed."""


def main(arguments: Sequence[str]) -> None:
    """Measures and prints the table."""
    config = tyro.cli(Config, args=list(arguments), description=__doc__)
    if config.rows < 1:
        raise ValueError(f"rows must be at least 1, got {config.rows}")
    table = Table("task", "grades / s", "ms / grade", "worst, s", "of")
    left_out = []
    for name in config.tasks or (MATHS, *tasks.names()):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                task = mathematics() if name == MATHS else tasks.load(name)
        except ValueError as error:
            if config.tasks:
                raise
            left_out.append(f"{name}: {error}")
            continue
        seconds = rate(task, config.rows)
        worst, what = hostile(task)
        told = f"{1 / seconds:,.0f}", f"{1000 * seconds:.3f}", f"{worst:.2f}", what
        table.add_row(name, *told)
    console = Console()
    console.print(table)
    for line in left_out:
        console.print(f"left out: {line}", highlight=False, soft_wrap=True)


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
    # Every other one answers the prompt before; a number makes each text its own.
    texts = [Response(f"{number}\n{golds[number - number % 2]}") for number in range(len(prompts))]
    warm = max(1, min(rows, 16))
    task.verify(prompts[rows : rows + warm], texts[rows : rows + warm])
    started = time.perf_counter()
    task.verify(prompts[:rows], texts[:rows])
    return (time.perf_counter() - started) / rows


def hostile(task: Task) -> tuple[float, str]:
    """The longest time of a grade of `HOSTILE`, and of which."""
    found = []
    for what, text in HOSTILE.items():
        started = time.perf_counter()
        task.verify(task.train[:1], [Response(text)])
        found.append((time.perf_counter() - started, what))
    return max(found)


if __name__ == "__main__":
    guarded(main)
