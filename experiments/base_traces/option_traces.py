r"""Traces of the base model of `option_sums`: all forms of a sum, with incorrect answers.

A quarter of the traces is of each form. Of 100 answers 50 are correct with options, 80 in a gap,
and 10 without options or a gap. An incorrect answer is a random other option, or a number
that differs by at most 9. Of 100 answers 15 have no box.
"""

import re
from random import Random

import numpy as np

from rlvr_jax.experiments.base_traces.form_traces import near
from rlvr_jax.experiments.base_traces.rows import Trace
from rlvr_jax.tasks import load
from rlvr_jax.tasks.derived.reformulations import LETTERS, reformulated

LARGEST = 99
STOP, PADDING = ".", "<pad>"
VOCABULARY = (
    *map(str, range(LARGEST + 1)),
    *LETTERS,
    *(f"\n{letter} " for letter in LETTERS),
    *("+", "?", "=", "_", "\\boxed{", "}"),
    *(STOP, PADDING),
)
PATTERN = "|".join(map(re.escape, sorted(VOCABULARY, key=len, reverse=True)))
CORRECT = {"four_choice": 0.5, "ten_choice": 0.5, "fill_in": 0.8, "": 0.1}
NO_BOX = 0.15


def option_traces(count: int, seed: int) -> list[Trace]:
    """Prompts of the train split in random forms, and a random response to each."""
    random, order = Random(seed), np.random.default_rng(seed)
    pool, traces = load("option_sums").train, []
    for _ in range(count):
        prompt, form = random.choice(pool), random.choice(list(CORRECT))
        shown = reformulated(prompt, form, order) if form else prompt
        answer = shown.answer
        if random.random() >= CORRECT[form]:
            options = [letter for letter in LETTERS if f"\n{letter} " in shown.text]
            others = [letter for letter in options if letter != answer]
            answer = random.choice(others) if others else near(answer, random)
        response = str(answer) if random.random() < NO_BOX else f"\\boxed{{{answer}}}"
        words = [re.findall(PATTERN, text) for text in (shown.text, response)]
        traces.append(Trace(words[0], [(words[1], False)]))
    return traces
