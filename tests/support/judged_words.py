"""Small judges made of functions, and their questions."""

from rlvr_jax.judges import (
    Judge,
    by_function,
    number,
    question,
)

SHOW = question("{prompt} {response}")


def asked(*words):
    return [{"prompt": "say", "response": word, "reference": ""} for word in words]


def judge(call, **settings):
    return Judge(call, SHOW, number(), ["good"], **settings)


def counting(words):
    """A judge that says the next of some words, None for a failure, and counts its calls."""
    left = iter(words)
    calls = []

    def function(messages):
        calls.append(messages)
        word = next(left)
        if word is None:
            raise OSError
        return word

    return by_function(function, "counting"), calls
