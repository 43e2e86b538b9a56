"""Knights and knaves: find out who always tells the truth and who always lies."""

import functools
from random import Random

from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.tasks.checked import verifier
from rlvr_jax.tasks.generated import SIZE, TEST_SIZE, splits
from rlvr_jax.verifiers.checks import Check
from rlvr_jax.verifiers.puzzles.knights import NAMES, generate

_MODULE = "rlvr_jax.verifiers.puzzles.knights"
# With two, nobody has two others to speak about; with more than this, names run out.
_LEAST, _MOST = 3, len(NAMES)


@functools.cache
def knights(
    min_people: int = 3,
    max_people: int = 5,
    size: int = SIZE,
    test_size: int = TEST_SIZE,
    seed: int = 0,
    response_tokens: int = 256,
) -> Task:
    """Every puzzle has one solution; `meta["level"]` is how many people there are, less 2.

    Puzzles that differ in names alone are the same, so that none is in both splits.

    Args:
      min_people, max_people: how many people there are, 3 to 12; as many prompts of each.
      size, test_size: prompts of the two splits.
      seed: of the prompts.
      response_tokens: budget of a response.
    Raises:
      ValueError: people out of range, fewer different prompts than wanted.
    """
    if not _LEAST <= min_people <= max_people <= _MOST:
        raise ValueError(
            f"knights: min_people and max_people must be in {_LEAST} .. {_MOST} and in order, got"
            f" {min_people} and {max_people}"
        )

    def draw(random: Random, people: int) -> tuple[str, Prompt]:
        instance = generate(random, people)
        text = (
            "Everybody here is either a knight, who always tells the truth, or a knave, who always"
            f" lies.\n\n{instance.text}\n\nWho is what? Say of each person “NAME is a knight” or"
            " “NAME is a knave”, between <answer> and </answer>."
        )
        said = ", ".join(f"{name} is a {role}" for name, role in instance.roles.items())
        prompt = Prompt(
            text=text,
            answer=instance.roles,
            kind=f"{people}_people",
            gold=f"<answer>{said}</answer>",
            meta={"level": people - _LEAST + 1},
        )
        return repr(instance.statements), prompt

    people = range(min_people, max_people + 1)
    train, test = splits("knights", draw, people, size, test_size, seed)
    return Task(
        name="knights",
        train=train,
        test=test,
        verify=verifier(
            Check(f"{_MODULE}:check", f"{_MODULE}:extract"), workers=0, tags=("think", "answer")
        ),
        response_tokens=response_tokens,
        answers=True,
        derived=("meta",),
    )
