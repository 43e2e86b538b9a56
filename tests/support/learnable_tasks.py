"""The sums of `training_runs`, graded now and then."""

import dataclasses

import training_runs

from rlvr_jax.tasks import Grade

NONE = Grade(None, stage="raised")
ONE, NOTHING = Grade(1.0), Grade(0.0)


def _graded(rule):
    """The sums, graded by a rule: (prompt, text, number of the response) -> `Grade`."""

    def verify(prompts, responses):
        pairs = enumerate(zip(prompts, responses, strict=True))
        return [rule(prompt, response.text, n) for n, (prompt, response) in pairs]

    return dataclasses.replace(training_runs.sums(), verify=verify, rewards=("outcome",))


def never():
    return _graded(lambda prompt, text, n: NONE)


def gold_never():
    return _graded(lambda prompt, text, n: NONE if text == prompt.gold else NOTHING)


def gold_alone():
    return _graded(lambda prompt, text, n: ONE if text == prompt.gold else NONE)


def gold_and_one():
    """Of a step's sixteen responses one is graded."""
    return _graded(lambda prompt, text, n: ONE if text == prompt.gold or n == 0 else NONE)


def raising():
    return _graded(lambda prompt, text, n: prompt.nothing)


def three_of_four():
    return _graded(lambda prompt, text, n: NONE if n % 4 and text != prompt.gold else NOTHING)


def without_golds():
    task = never()
    train = [dataclasses.replace(prompt, gold=None) for prompt in task.train]
    return dataclasses.replace(task, train=train)


def _odd(split):
    task = training_runs.sums()
    first, *others = getattr(task, split)
    odd = dataclasses.replace(first, text=first.text.replace("+", "plus"))
    return dataclasses.replace(task, **{split: [*others, odd]})


def odd_train():
    return _odd("train")


def odd_test():
    return _odd("test")
