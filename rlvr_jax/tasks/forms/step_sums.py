"""Step sums: sums of four or five numbers, worked out line by line with an environment.

    state     4+17+6+9?
    tactic    4+17=21;21+6=27       lines, each of which adds the next number
    state     27+9?
    tactic    27+9=36               the sum is worked out: outcome 1

A line with an error ends the episode with outcome 0. Without turns the whole response is the
tactic. The task is a small model of a step prover. The shipped base model writes one line in seven
of ten responses. Six of ten responses have an error.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from rlvr_jax.tasks.base import Prompt, Response
from rlvr_jax.tasks.forms.worked_sums import problem_text, worked
from rlvr_jax.tasks.generated import Generated, generated
from rlvr_jax.tasks.grading import one_by_one
from rlvr_jax.tools.environment import Reply
from rlvr_jax.verifiers.grade import Grade

__all__ = ["BASE_MODEL", "LineSteps", "step_sums"]

BASE_MODEL = str(Path(__file__).parents[1] / "base_models" / "step_sums")
TERMS = (4, 5)
# Five of the largest number are in the vocabulary.
NUMBERS = range(2, 20)


@dataclass(frozen=True)
class LineSteps:
    """The environment of the lines of a sum; a state is the numbers that are not added yet."""

    stops: Sequence[str] = ()
    label: str = "LineSteps()"
    judges: bool = True

    def start(self, prompt: Any) -> tuple[tuple[int, ...], tuple[()]]:
        return tuple(map(int, prompt.text.removesuffix("?").split("+"))), ()

    def reply(self, state: tuple[int, ...], text: str) -> Reply:
        for line in text.split(";"):
            if len(state) < 2 or line != f"{state[0]}+{state[1]}={state[0] + state[1]}":
                return Reply(state, done=True, outcome=0.0)
            state = (state[0] + state[1], *state[2:])
        if len(state) == 1:
            return Reply(state, done=True, outcome=1.0)
        return Reply(state, text=problem_text(state))


# The gold of five numbers has four lines of five words, three signs and the stop token.
@generated(response_tokens=24)
def step_sums() -> Generated:
    """Sums of each number of terms, in equal numbers; all orders of a sum are in one split."""
    return Generated(_prompt, TERMS, verify=_verify, base_model=BASE_MODEL, environment=LineSteps())


def _prompt(random: Random, terms: int) -> tuple[str, Prompt]:
    numbers = [random.choice(NUMBERS) for _ in range(terms)]
    first, *lines = worked(numbers, [0] * (terms - 1)).split(";")
    steps = (first, *(f";{line}" for line in lines))
    prompt = Prompt(
        problem_text(numbers), str(sum(numbers)), f"{terms}_terms", "".join(steps), solution=steps
    )
    return problem_text(sorted(numbers)), prompt


@one_by_one
def _verify(prompt: Prompt, response: Response) -> Grade:
    environment = LineSteps()
    reply = environment.reply(environment.start(prompt)[0], response.text)
    return Grade(float(not response.truncated and reply.outcome == 1))
