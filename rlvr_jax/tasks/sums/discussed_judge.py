r"""A judge of discussed sums, which makes no mistakes.

    python -m rlvr_jax train --task discussed_sums --method rlmt \
        --judge rlvr_jax.tasks.sums.discussed_judge:preference --judge-options visible=strict
"""

import re
from collections.abc import Mapping, Sequence

# Points of only the sum, and of a longer text that ends with it.
ALONE, LONGER = 10, 6


def preference(messages: Sequence[Mapping[str, str]]) -> str:
    """The preference of a reader for a short correct answer, from 0 to 10.

    Args:
      messages: a chat whose last message is that of a judge without a rubric or a prompt.
    Raises:
      ValueError: the question is not a sum.
    """
    text = messages[-1]["content"]
    shown = re.match(r"Question:\n(\d+(?:\+\d+)+)\?\n\nAnswer:\n(.*)\n\nHow good", text, re.DOTALL)
    if shown is None:
        raise ValueError(f"preference: the question must be a sum, got {text[:80]!r}")
    total = str(sum(map(int, shown[1].split("+"))))
    numbers = re.findall(r"\d+", shown[2])
    if not numbers or numbers[-1] != total:
        return "0"
    return str(ALONE if shown[2].strip() == total else LONGER)
