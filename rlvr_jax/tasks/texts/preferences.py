"""Preferences: which of two responses to a small sum is better?

    a question, two responses in a random order, and the request of `rlvr_jax.verifiers.texts.br_rm`

One response has the correct sum, the other one is off by 1, 2 or 10. A judge of two turns answers:
the method `br_rm` requests the second turn. The outcome is the correctness of the preference.
`Grade.info` has `format`: 1 if both turns have the requested form, else 0.
"""

from random import Random

from rlvr_jax.tasks.base import Prompt, Response
from rlvr_jax.tasks.generated import Generated, generated
from rlvr_jax.tasks.grading import one_by_one
from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.texts.br_rm import (
    BRANCH,
    MALFORMED,
    RETHINK,
    present,
    reward,
    two_turns,
)

__all__ = ["preferences"]

_OFF = (-10, -2, -1, 1, 2, 10)


@generated(response_tokens=256)
def preferences() -> Generated:
    """Pairs of responses to sums of two-digit numbers. The budget is that of both turns.

    Metrics: format (1 for two turns of the requested form).
    """

    def draw(random: Random, kind: str) -> Prompt:
        a, b = random.randint(10, 99), random.randint(10, 99)
        responses = tuple(f"{a} + {b} = {a + b + off}." for off in (0, random.choice(_OFF)))
        first, second, better = present(responses, "1", [random.randrange(2**32)])
        text = BRANCH.format(prompt=f"What is {a} + {b}?", first=first, second=second)
        worse = {"1": "second", "2": "first"}[better]
        turn = (
            "[dimensions]\ncorrectness\n[/dimensions]\n"
            f"[analysis]\nThe sum in the {worse} response is wrong.\n[/analysis]"
        )
        gold = f"{turn}\n{RETHINK}\n[preference]{better}[/preference]"
        return Prompt(text, better, kind, gold)

    return Generated(draw, ["sum"], worked=False, verify=_verify, rewards=("format",))


@one_by_one
def _verify(prompt: Prompt, response: Response) -> Grade:
    earned = reward(*two_turns(response.text), prompt.answer)
    return Grade(float(earned == 0), info={"format": float(earned != MALFORMED)})
