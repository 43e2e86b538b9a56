"""A task whose answers are correct by chance, for laws and for tests of single parts."""

import functools
from dataclasses import replace

import numpy as np

from rlvr_jax.tasks import Prompt, StepScore, Task
from rlvr_jax.tasks.worlds.triplets import Triplet, World


def words_of(prompt: Prompt, text: str) -> list[StepScore]:
    """Every second word ends a step, which is correct if the word ends with an even digit."""
    words = text.split()
    ends = np.cumsum([len(word) + 1 for word in words]) - 1
    return [
        StepScore(int(end), float(word[-1] in "02468"))
        for end, word in list(zip(ends, words, strict=True))[1::2]
    ]


def second_word(prompt: Prompt, text: str) -> Prompt | None:
    """The problem of a text with at least two words: its second one."""
    words = text.split()
    return replace(prompt, text=f"about {words[1]}?", solution=()) if len(words) > 1 else None


def _one(words):
    """A program is one word that returns its input."""
    return words.split()[0] if words.split() else None


ONE_WORD = World(
    "one word",
    Triplet("word1", (1,), (1,)),
    run=lambda pairs: [list(inputs) for _, inputs in pairs],
    same=lambda one, two: one == two,
    read_value=lambda text: _one(text),
    read_program=_one,
    read_proposal=lambda kind, text: (_one(text), [1]) if _one(text) else None,
    show=lambda kind, triplet: f"{kind} {triplet.program}",
    request=lambda kind, references: f"{kind} unlike {len(references)}",
)


@functools.cache
def numbered_task(prompts=12, correct=0.4):
    """A task whose answers are correct by chance, less often for later prompts.

    Every prompt has a worked solution, hints and a level. Every second one has an easier form.
    Texts state problems, and their words are steps with scores.

    Args:
      prompts: number of prompts in the train split; four more are held out.
      correct: mean probability of a correct answer.
    """

    def made(number):
        return Prompt(
            f"question {number}",
            answer=number,
            kind="even" if number % 2 == 0 else "odd",
            solution=("first", "second", "third", "fourth"),
            hints=("begin", "go on"),
            meta={
                "level": number % 3,
                "chance": correct * 2 * (1 - number / (prompts + 4)),
                "flawed": {"slip": "fir sec thi"},
                **({} if number % 2 else {"variants": {"choice": {"options": ["a", "b", "c"]}}}),
            },
        )

    every = [made(number) for number in range(prompts + 4)]
    return Task(
        "numbered",
        every[:prompts],
        every[prompts:],
        None,
        response_tokens=8,
        rewards=("outcome", "ended"),
        answers=True,
        score_steps=words_of,
        read_problem=second_word,
        world=ONE_WORD,
    )
