r"""Dilemma: two players repeatedly cooperate or defect, for payoffs in the prompt.

With `form="signs"`, a prompt has only the payoffs S,P,R,T, such as `2,5,10,12?`. The reply to a
move has the other player's move and the pay, such as `defect;2\n`. The shipped base model of the
folder `sketches` reads this form, and cooperates in half of the rounds.
"""

from random import Random
from typing import Annotated, Literal

from rlvr_jax.ranges import Count
from rlvr_jax.tasks.base import Prompt, Response
from rlvr_jax.tasks.generated import Generated, generated
from rlvr_jax.tasks.grading import one_by_one
from rlvr_jax.tasks.sketches.words import BASE_MODEL
from rlvr_jax.tools import repeated_game
from rlvr_jax.verifiers.grade import Grade

__all__ = ["dilemma"]

_TEXT = (
    "You and another player choose between cooperate and defect, {rounds} times, both at the same"
    " time. If both cooperate, each earns {reward}; if both defect, {punishment}. Who defects alone"
    " earns {temptation}, and the other one {sucker}. Each time write your choice on a line of its"
    " own; you are told what the other player chose."
)
_SIGNS = "{sucker},{punishment},{reward},{temptation}?"
_LARGEST = 20


@generated()
def dilemma(
    rounds: Annotated[Count, "number of rounds of a game"] = 5,
    form: Annotated[Literal["sentences", "signs"], "form of prompts and replies"] = "sentences",
) -> Generated:
    """Prisoner's dilemmas with payoffs T > R > P > S from 0 to 20 and 2 R > T + S.

    The task has an environment, a game of two: `turns()` lets neighbouring responses to a prompt
    play with each other. An answer that is not played has the reward 0. The outcome is the mean
    payoff of a round, scaled so that S is 0 and T is 1. Those that always cooperate get
    the scaled R. The budget of a response includes the replies that a player reads.
    """

    def draw(random: Random, kind: str) -> Prompt:
        while True:
            payoffs = sorted(random.sample(range(_LARGEST + 1), 4))
            sucker, punishment, reward, temptation = payoffs
            if 2 * reward > temptation + sucker:
                break
        text = (_SIGNS if form == "signs" else _TEXT).format(
            rounds=rounds,
            reward=reward,
            punishment=punishment,
            temptation=temptation,
            sucker=sucker,
        )
        return Prompt(text, tuple(payoffs), kind)

    if form == "sentences":
        game, base = repeated_game(payoffs_of, rounds), None
    else:
        game, base = repeated_game(payoffs_of, rounds, "{other};{paid:g}\n"), BASE_MODEL
    return Generated(draw, ["dilemma"], verify=_unplayed, environment=game, base_model=base)


def payoffs_of(prompt: Prompt) -> dict[tuple[str, str], float]:
    """The table of a prompt, whose answer is S, P, R, T."""
    sucker, punishment, reward, temptation = map(float, prompt.answer)
    return {
        ("cooperate", "cooperate"): reward,
        ("cooperate", "defect"): sucker,
        ("defect", "cooperate"): temptation,
        ("defect", "defect"): punishment,
    }


@one_by_one
def _unplayed(prompt: Prompt, response: Response) -> Grade:
    return Grade(0.0)
