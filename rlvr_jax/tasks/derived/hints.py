"""Hints as texts: whether one reveals the answer, and prompts with a hint."""

import re

from rlvr_jax.tasks.base import Prompt

__all__ = ["answer_texts", "augment", "gives_away", "hint_ok", "leaks"]

LEAST_HINT = 10
"""Smallest number of characters of a hint, which is the beginning of a solution."""

THOUGHT = "</think>"


def hint_ok(hint: str, answer: str) -> bool:
    """Whether a hint does not have the answer as a whole word, ignoring case and white space.

    A whole word has no letter or digit directly before or after it.
    """
    hint, answer = (" ".join(text.lower().split()) for text in (hint, answer))
    return not re.search(rf"(?<![^\W_]){re.escape(answer)}(?![^\W_])", hint)


def answer_texts(prompt: Prompt) -> list[str]:
    """The texts that state the answer of a prompt, the shortest form first: the answer or answers
    if they are texts or numbers, and the gold response."""
    answer = prompt.answer
    several = list(answer) if isinstance(answer, list | tuple) else [answer]
    if isinstance(answer, list | tuple) and not all(isinstance(one, str) for one in several):
        several = []
    plain = [
        str(one)
        for one in several
        if isinstance(one, str | int | float) and not isinstance(one, bool)
    ]
    texts = [*plain, *([] if prompt.gold is None else [prompt.gold])]
    return [text for text in texts if text.strip()]


def gives_away(text: str, prompt: Prompt) -> bool:
    """Whether a text states the answer of a prompt in one of its forms (`hint_ok`)."""
    return not all(hint_ok(text, answer) for answer in answer_texts(prompt))


def leaks(guidance: str, solution: str, words: int = 8) -> bool:
    """Whether a text has `words` consecutive words of a solution, ignoring case and white space.

    A solution of fewer words leaks as a whole.
    """
    guidance_words, own = (text.lower().split() for text in (guidance, solution))
    length = min(words, len(own))
    pieces = {tuple(own[start : start + length]) for start in range(len(own) - length + 1)} - {()}
    return any(
        tuple(guidance_words[start : start + length]) in pieces
        for start in range(len(guidance_words))
    )


def augment(problem: str, generation: str, answer: str, fraction: float) -> str | None:
    """The problem with the first part of a solution as its hint; None if it is unsuitable.

    The solution is the text after the last `</think>`, or the whole generation without one. It is
    suitable if the answer occurs in it, but not in the hint (`hint_ok`). The hint is the first
    int(fraction · length) characters; there is no hint if these are fewer than 10.

    Args:
      problem: text of the problem.
      generation: a generated solution.
      answer: the final answer.
      fraction: fraction of the characters of the solution, in [0, 1].
    Source: QuestA, https://github.com/foreverlasting1202/QuestA.
    """
    solution = generation.rpartition(THOUGHT)[2]
    if answer not in solution:
        return None
    shown = solution[: int(fraction * len(solution))]
    if not hint_ok(shown, answer):
        return None
    return f"{problem}\n\n## Hint.{shown}" if len(shown) >= LEAST_HINT else f"{problem}\n\n"
