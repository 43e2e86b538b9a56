r"""Option sums: sums of two numbers, each with easier forms, and a base model of these forms.

    prompt    12+35?                          response  \boxed{47}
    form      12+35?\nA 48\nB 47\nC 46\nD 57  response  \boxed{B}      "four_choice", "ten_choice"
    form      12+35=_                         response  \boxed{47}     "fill_in"

Forms and grades are those of `arithmetic_forms`. The base model was trained on all forms, with
errors. It fills a third of the gaps correctly and guesses among options and without them. One of
seven responses has no box.
"""

import itertools
from pathlib import Path

from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.tasks.generated import held_apart
from rlvr_jax.tasks.settings import HeldOut, ResponseTokens, task
from rlvr_jax.tasks.sums.arithmetic_forms import verify_form, with_forms

__all__ = ["BASE_MODEL", "option_sums"]

BASE_MODEL = str(Path(__file__).parents[1] / "base_models" / "option_sums")
# All options of the largest sum are below 100.
NUMBERS = range(10, 40)


@task
def option_sums(held_out: HeldOut = "test", response_tokens: ResponseTokens = 6) -> Task:
    """The task; prompts are split 6:1:1 by the pair of numbers, both orders alike.

    Metrics: format (1 for a response that ends with a box).
    """
    train, test = (
        [_prompt(*order) for pair in chosen for order in sorted({pair, pair[::-1]})]
        for chosen in held_apart(
            list(itertools.combinations_with_replacement(NUMBERS, 2)), held_out
        )
    )
    return Task(
        name="option_sums",
        train=tuple(with_forms(prompt, f"{prompt.text[:-1]}=_") for prompt in train),
        test=tuple(test),
        verify=verify_form,
        response_tokens=response_tokens,
        base_model=BASE_MODEL,
        rewards=("outcome", "format"),
        answers=True,
    )


def _prompt(a: int, b: int) -> Prompt:
    return Prompt(f"{a}+{b}?", a + b, "sum", gold=f"\\boxed{{{a + b}}}")
