"""Other forms of one question with the same answer: choices, a gap to fill, the question itself.

`Prompt.meta["variants"]` holds them by name. A variant with "options" is a choice. Its first option
is the correct one. Options are shown in a random order, and the answer is the letter. Any other
variant has a "text", and an "answer" if that is not the prompt's.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rlvr_jax.tasks.base import Prompt

__all__ = ["LETTERS", "box_at_the_end", "last_letter", "reformulated", "shuffled_choice"]

LETTERS = "ABCDEFGHIJ"
MOST_BEHIND = 10
"""Characters that may follow the box."""


def shuffled_choice(
    text: str, options: Sequence[str], random: np.random.Generator
) -> tuple[str, str]:
    """The question with its options in a random order, and the letter of the correct option.

    Args:
      options: the correct one first, 2 to 10.
    Raises:
      ValueError: there are fewer or more options, or two are equal.
    """
    if not 2 <= len(options) <= len(LETTERS) or len({*options}) < len(options):
        raise ValueError(
            f"shuffled_choice: options must be 2 to {len(LETTERS)} different texts, got"
            f" {list(options)}"
        )
    order = random.permutation(len(options)).tolist()
    lines = [f"{LETTERS[place]} {options[number]}" for place, number in enumerate(order)]
    return "\n".join([text, *lines]), LETTERS[order.index(0)]


def reformulated(prompt: Prompt, name: str, random: np.random.Generator) -> Prompt:
    """The prompt in the form of that name, without worked solution and hints.

    Args:
      random: generator for the order of options.
    Raises:
      ValueError: the prompt does not have that variant.
    """
    variants = prompt.meta.get("variants", {})
    if name not in variants:
        raise ValueError(
            f"reformulated: name must be one of the variants {sorted(variants)} of prompt"
            f" {prompt.text[:80]!r}, got {name!r}"
        )
    variant = variants[name]
    text, answer = variant.get("text", prompt.text), variant.get("answer", prompt.answer)
    if "options" in variant:
        text, answer = shuffled_choice(text, variant["options"], random)
    meta = {key: value for key, value in prompt.meta.items() if key != "variants"}
    return replace(prompt, text=text, answer=answer, gold=None, solution=(), hints=(), meta=meta)


def last_letter(text: str) -> str | None:
    """The last letter of an option that is a word of the text, None if there is none."""
    found = re.findall(rf"(?<!\w)[{LETTERS}](?!\w)", text)
    return found[-1] if found else None


def box_at_the_end(text: str) -> bool:
    """Whether there is exactly one boxed answer, and hardly anything after it."""
    if text.count("\\boxed{") != 1:
        return False
    behind = text.partition("\\boxed{")[2].partition("}")
    return behind[1] == "}" and len(behind[2]) <= MOST_BEHIND
