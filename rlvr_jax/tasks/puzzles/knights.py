"""Knights and knaves: find out who makes true statements and who makes false ones.

    load("knights")
    load("knights:max_people=8,reward=share")

The outcome is 1 if all roles are correct, else 0. The reward is the outcome ("binary"), another
form of the correct roles (`blanks_reward`), or Logic-RL's total of format and answer ("logic_rl").
For this total, the prompt also requests the thinking in tags.
"""

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Annotated

from rlvr_jax.ranges import Range
from rlvr_jax.tasks.base import Prompt
from rlvr_jax.tasks.checked import verifier
from rlvr_jax.tasks.generated import Generated, generated
from rlvr_jax.tasks.rewards import blanks_reward
from rlvr_jax.verifiers.checks import Check
from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.puzzles.knights import (
    NAMES,
    check,
    extract,
    generate,
    logic_rl,
    read_roles,
)

# With two people, a person does not have two others to speak about.
_LEAST = 3
_People = Annotated[
    int, Range(_LEAST, len(NAMES)), "how many people a puzzle has, each count equally often"
]


_FORMS = ("binary", "share", "signed_binary", "signed_share", "logic_rl")


def rewarded(response: str, gold: Mapping[str, str], form: str) -> Grade:
    """The grade of a response, with a reward of one of the forms.

    Args:
      response: the whole text, as a total counts its tags.
      gold: role of each person.
      form: "logic_rl", or a form of `blanks_reward`.
    """
    answer = extract(response)
    found = Grade(0.0, stage="no answer") if answer is None else check(answer, gold)
    if form == "logic_rl":
        return replace(found, reward=logic_rl(response, gold))
    roles = read_roles(answer or "", list(gold)) or {}
    correct = sum(roles.get(name) == role for name, role in gold.items())
    return replace(found, reward=blanks_reward(correct, len(gold), form))


@generated()
def knights(
    min_people: _People = 3,
    max_people: _People = 5,
    reward: Annotated[str, _FORMS, "form of the reward"] = "binary",
) -> Generated:
    """Every puzzle has one solution; `meta["level"]` is the number of people minus 2.

    Puzzles that differ only in names count as equal, so that none is in both splits.
    """

    thinking = thought = ""
    if reward == "logic_rl":
        thinking = " Before that, think between <think> and </think>."
        thought = "<think></think>"

    def draw(random: Random, people: int) -> tuple[str, Prompt]:
        instance = generate(random, people)
        text = (
            "Everybody here is either a knight, who always tells the truth, or a knave, who always"
            f" lies.\n\n{instance.text}\n\nWho is what? Say of each person “NAME is a knight” or"
            f" “NAME is a knave”, between <answer> and </answer>.{thinking}"
        )
        answer = ", ".join(f"{name} is a {role}" for name, role in instance.roles.items())
        prompt = Prompt(
            text=text,
            answer=instance.roles,
            kind=f"{people}_people",
            gold=f"{thought}<answer>{answer}</answer>",
            meta={"level": people - _LEAST + 1},
        )
        return repr(instance.statements), prompt

    return Generated(
        draw,
        range(min_people, max_people + 1),
        verify=verifier(
            Check(f"{__name__}:rewarded", options={"form": reward}),
            workers=0,
            tags=("think", "answer"),
        ),
        answers=True,
        derived=("meta",),
    )
