r"""Judged sums: is a worked solution of a sum correct?

    prompt    4+17+6?4+17=24;24+6=30;verdict?
    response  21;27\nWRONG

Each problem has two prompts: one with a correct solution, and one with a slip. So the problem does
not reveal the verdict, and a constant verdict is correct for half of the prompts. The verdict is
the last line of the response (`rlvr_jax.verifiers.texts.heimdall`); the text before it is free.

The base model computes the results again, and then writes a verdict that is often incorrect.
"""

from random import Random

from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.tasks.checked import verifier_of
from rlvr_jax.tasks.forms.words import BASE_MODEL
from rlvr_jax.tasks.forms.worked_sums import candidates, problems
from rlvr_jax.tasks.settings import HeldOut, ResponseTokens, Seed, task

__all__ = ["judged_sums"]

# Two results, their signs, the verdict and the stop token; some more for other texts.
MAX_TOKENS = 12
KINDS = {True: "correct", False: "slip"}


@task
def judged_sums(
    held_out: HeldOut = "test", seed: Seed = 0, response_tokens: ResponseTokens = MAX_TOKENS
) -> Task:
    """The task; problems are split 6:1:1 by their sorted numbers, and the seed determines slips."""
    random = Random(f"judged_sums {seed}")
    train, test = (
        tuple(
            Prompt(
                f"{one.problem}{one.solution};verdict?",
                answer=one.right,
                kind=KINDS[one.right],
                gold="RIGHT" if one.right else "WRONG",
            )
            for numbers in chosen
            for one in candidates(numbers, random)
        )
        for chosen in problems(held_out)
    )
    return Task(
        name="judged_sums",
        train=train,
        test=test,
        verify=verifier_of("rlvr_jax.verifiers.texts.heimdall", workers=0),
        response_tokens=response_tokens,
        base_model=BASE_MODEL,
        mixture=dict.fromkeys(KINDS.values(), 0.5),
        answers=True,
    )
