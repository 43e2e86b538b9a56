r"""Discussed sums: sums of three numbers, with a base model that reads requests in words.

    prompt    4+17+6?
    response  4+17=21\n21+6=27                                       the lines
    response  <think>4+17=21\n21+6=27</think><response>27</response>  a thought and the answer
    response  27                                                     the answer only

A response is correct if its last number is the sum. The worked solution is the lines.

The base model writes all three forms, the lines most often. It is often incorrect where the last
digits carry. It follows the requests of `meml_grpo`, `mel`, `v1_pairwise`, `rl_v` and `rlbff`, with
errors. A note of `mel` is `line 2:21+6=29;mind the units`: it names the incorrect line and the
digits to mind. The base model makes fewer errors after it. Its tokens are the words of these
requests. One of them, `<|vision_start|>`, occurs in no text.
"""

from collections.abc import Sequence
from pathlib import Path

from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.tasks.forms.worked_sums import problem_text, problems, verify_sum, worked
from rlvr_jax.tasks.settings import HeldOut, ResponseTokens, task

__all__ = ["BASE_MODEL", "discussed_sums", "lines_of"]

# A thought and an answer are 16 tokens, a note is at most 15; some more for other texts.
MAX_TOKENS = 20
BASE_MODEL = str(Path(__file__).parents[1] / "base_models" / "requests")


@task
def discussed_sums(
    held_out: HeldOut = "test", response_tokens: ResponseTokens = MAX_TOKENS
) -> Task:
    """The task; problems are split 6:1:1 by their sorted numbers."""
    train, test = problems(held_out)
    return Task(
        name="discussed_sums",
        train=tuple(map(_prompt, train)),
        test=tuple(map(_prompt, test)),
        verify=verify_sum,
        response_tokens=response_tokens,
        base_model=BASE_MODEL,
        answers=True,
    )


def lines_of(numbers: Sequence[int], slips: Sequence[int] = (0, 0)) -> str:
    """The solution `worked`, each step in a line."""
    return worked(numbers, slips).replace(";", "\n")


def _prompt(numbers: Sequence[int]) -> Prompt:
    text = lines_of(numbers)
    steps = text.splitlines(keepends=True)
    return Prompt(problem_text(numbers), str(sum(numbers)), "sum", gold=text, solution=steps)
