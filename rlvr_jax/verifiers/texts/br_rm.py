"""A comparison in two turns: dimensions and an analysis of both, then the better response.

    turn 1  [dimensions]accuracy⏎style[/dimensions][analysis]…[/analysis]
    turn 2  [preference]1[/preference]

One to three different dimensions, one per line; a bullet or number before it is removed. The
analysis is not empty; each tag occurs once. The tags are ours: the environment is not released.
"""

import re
from collections.abc import Sequence

import numpy as np

from rlvr_jax.verifiers.answers import between

MALFORMED = -100

BRANCH = """\
{prompt}

First response:
{first}

Second response:
{second}

Say what matters most here, one to three dimensions, a line each, between [dimensions] and \
[/dimensions]. Then say what is wrong with both responses on these, between [analysis] and \
[/analysis]."""

RETHINK = (
    "Read both responses again in the light of this, and end with the number of the better one, 1"
    " or 2, between [preference] and [/preference]."
)
"""The request for the second turn, which reads the first one."""

_BULLET = re.compile(r"(?:[-*•]|[0-9]{1,3}[.)])\s*")


def two_turns(text: str) -> tuple[str, str]:
    """The texts of both turns in a conversation with the request `RETHINK` between them.

    The second turn is empty if the conversation lacks the request.
    """
    first, request, _ = text.partition(RETHINK)
    return first, text.rpartition(RETHINK)[2] if request else ""


def branch(text: str) -> list[str] | None:
    """The dimensions of the first turn; None if it breaks the format."""
    listed, analysis = (
        between(text, f"[{name}]", f"[/{name}]") for name in ("dimensions", "analysis")
    )
    if listed is None or not analysis:
        return None
    lines = [_BULLET.sub("", line.strip(), count=1).strip() for line in listed.splitlines()]
    found = [line for line in lines if line]
    different = {line.lower() for line in found}
    return found if 1 <= len(found) <= 3 and len(different) == len(found) else None


def rethink(text: str) -> str | None:
    """The preference of the second turn, "1" or "2"; None if it breaks the format."""
    preference = between(text, "[preference]", "[/preference]")
    return preference if preference in ("1", "2") else None


def reward(first: str, second: str, better: str, malformed: float = MALFORMED) -> float:
    """0 for the correct preference, -1 for the other, `malformed` if a turn breaks the format.

    Args:
      first, second: the texts of the turns.
      better: "1" or "2", as the pair was shown.
      malformed: -100 makes the other rewards nearly equal if a group is divided by its deviation.
    """
    preference = rethink(second)
    if branch(first) is None or preference is None:
        return malformed
    return 0 if preference == better else -1


def present(pair: tuple[str, str], better: str, key: Sequence[int]) -> tuple[str, str, str]:
    """Two responses in a random order, and the place of the better one in this order.

    Args:
      pair: the responses.
      better: "1" or "2": the better one of `pair`.
      key: numbers that determine the order, such as the seed and the number of the prompt.
    """
    if np.random.default_rng(key).uniform() < 0.5:
        return *pair, better
    return pair[1], pair[0], {"1": "2", "2": "1"}[better]
