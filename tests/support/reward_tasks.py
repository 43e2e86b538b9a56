"""The sums of `training_runs` with several rewards, for methods that weigh them."""

import dataclasses

import numpy as np
import training_runs

from rlvr_jax.tasks import Grade, StepScore, Task

NAMES = ("outcome", "words", "ended")


def verify(prompts, responses):
    """Right if the sum is among the words; how much was written; whether it was ended. A response
    that begins with the first number of the prompt has no verdict."""
    grades = []
    for grade, prompt, response in zip(
        training_runs.verify(prompts, responses), prompts, responses, strict=True
    ):
        words = response.text.split()
        info = {"words": len(words) / training_runs.BUDGET, "ended": float(not response.truncated)}
        if words[:1] == prompt.text.split()[:1]:
            grades.append(Grade(None, info=info))
        else:
            grades.append(dataclasses.replace(grade, info=info))
    return grades


def score_steps(prompt, text):
    """Each word is a step, right if it is the sum."""
    words = text.split()
    ends = np.cumsum([len(word) + 1 for word in words]) - 1
    return [
        StepScore(int(end), 1.0 if word == str(prompt.answer) else -0.5)
        for end, word in zip(ends, words, strict=True)
    ]


def graded_sums() -> Task:
    """The task."""
    return dataclasses.replace(
        training_runs.sums(),
        name="graded_sums",
        verify=verify,
        rewards=NAMES,
        score_steps=score_steps,
        step_range=(-0.5, 1.0),
    )
