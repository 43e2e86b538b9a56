"""Knights and knaves: find out who makes true statements and who makes false ones."""

from random import Random
from typing import Annotated

from rlvr_jax.ranges import Range
from rlvr_jax.tasks.base import Prompt
from rlvr_jax.tasks.checked import verifier_of
from rlvr_jax.tasks.generated import Generated, generated
from rlvr_jax.verifiers.puzzles.knights import NAMES, generate

_MODULE = "rlvr_jax.verifiers.puzzles.knights"
# With two people, a person does not have two others to speak about.
_LEAST = 3
_People = Annotated[
    int, Range(_LEAST, len(NAMES)), "how many people a puzzle has, each count equally often"
]


@generated()
def knights(min_people: _People = 3, max_people: _People = 5) -> Generated:
    """Every puzzle has one solution; `meta["level"]` is the number of people minus 2.

    Puzzles that differ only in names count as equal, so that none is in both splits.
    """

    def draw(random: Random, people: int) -> tuple[str, Prompt]:
        instance = generate(random, people)
        text = (
            "Everybody here is either a knight, who always tells the truth, or a knave, who always"
            f" lies.\n\n{instance.text}\n\nWho is what? Say of each person “NAME is a knight” or"
            " “NAME is a knave”, between <answer> and </answer>."
        )
        answer = ", ".join(f"{name} is a {role}" for name, role in instance.roles.items())
        prompt = Prompt(
            text=text,
            answer=instance.roles,
            kind=f"{people}_people",
            gold=f"<answer>{answer}</answer>",
            meta={"level": people - _LEAST + 1},
        )
        return repr(instance.statements), prompt

    return Generated(
        draw,
        range(min_people, max_people + 1),
        verify=verifier_of(_MODULE, workers=0, tags=("think", "answer")),
        answers=True,
        derived=("meta",),
    )
