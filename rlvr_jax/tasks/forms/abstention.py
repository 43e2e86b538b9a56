"""Abstention: the value of a name, which half of the prompts do not have, and a confidence.

    prompt    a=37;c=5;b=46;c?           prompt    a=37;c=5;b=46;d?
    response  5;sure=7                   response  unknown;sure=9

A response has a number or `unknown`, and its confidence in tenths (0 to 10). It is correct if the
number is the value, or if it is `unknown` and no value is given. A response with a number is an
answer, whatever else it has. Without a confidence, the rewards do not apply (NaN).

The base model often answers where no value is given, and abstains from some values that are given.
Its confidence does not depend on its answer.
"""

import math
import re
from random import Random

from rlvr_jax.tasks.base import Prompt, Response
from rlvr_jax.tasks.forms.words import BASE_MODEL, LARGEST, NAMES
from rlvr_jax.tasks.generated import Generated, generated
from rlvr_jax.tasks.grading import one_by_one
from rlvr_jax.verifiers.grade import Grade

__all__ = ["abstention"]

KINDS = ("answerable", "unanswerable")
GIVEN = 3
"""Number of values in a prompt."""
UNKNOWN = "unknown"
_CONFIDENCE = re.compile(r"sure=(\d{1,3})")
_NUMBER = re.compile(r"\d{1,9}")


@generated(response_tokens=8)
def abstention() -> Generated:
    """Answerable and unanswerable questions, in equal numbers.

    Metrics: answerable (1 for a question with an answer), abstained (1 for `unknown` without a
      number), confidence (0 to 1; NaN if none is stated).
    """
    return Generated(
        _prompt,
        KINDS,
        verify=_verify,
        base_model=BASE_MODEL,
        mixture=dict.fromkeys(KINDS, 1 / len(KINDS)),
        rewards=("answerable", "abstained", "confidence"),
        answers=True,
    )


def _prompt(random: Random, kind: str) -> Prompt:
    *names, other = random.sample(NAMES, GIVEN + 1)
    values = {name: str(random.randint(1, LARGEST)) for name in names}
    asked = random.choice(names) if kind == "answerable" else other
    given = ";".join(f"{name}={value}" for name, value in values.items())
    answer = values.get(asked, UNKNOWN)
    return Prompt(f"{given};{asked}?", answer, kind, gold=f"{answer};sure=10")


def stated_confidence(text: str) -> float:
    """The last `sure=k` of a text, as k / 10; NaN if there is none, or if k is above 10."""
    found = _CONFIDENCE.findall(text)
    return int(found[-1]) / 10 if found and int(found[-1]) <= 10 else math.nan


@one_by_one
def _verify(prompt: Prompt, response: Response) -> Grade:
    numbers = _NUMBER.findall(_CONFIDENCE.sub("", response.text))
    abstained = not numbers and UNKNOWN in response.text
    answer = UNKNOWN if abstained else numbers[-1] if numbers else None
    answer = None if response.truncated else answer
    info = {
        "answerable": float(prompt.kind == "answerable"),
        "abstained": float(abstained),
        "confidence": stated_confidence(response.text),
    }
    return Grade(float(answer == prompt.answer), info=info, answer=answer)
