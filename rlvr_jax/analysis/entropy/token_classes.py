"""The class of a token: formal, logical, metacognitive, or semantic.

The four classes of Deng et al. 2025, "From Trial-and-Error to Improvement",
https://arxiv.org/abs/2508.07534, are formal, logical, metacognitive and semantic. Numbers and
operators are formal, words of conclusions are logical, words about the reasoning itself are
metacognitive, and the rest is semantic. The English word lists are ours, since we found no
published ones. Each token is classified by itself, so the parts of a split word are semantic.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

TOKEN_CLASSES = ("formal", "logical", "metacognitive", "semantic")

# Digits and operators, with the points, commas and brackets of an expression between them; a
# backslash begins a command of LaTeX.
_OPERATORS = r"+\-−*/×÷·=≠<>≤≥≈±^%√∑∏∫∞→"
_FORMAL = re.compile(
    rf"(?=.*[0-9{_OPERATORS}()\[\]{{}}])[0-9{_OPERATORS}()\[\]{{}}.,\s]+|\\[A-Za-z]*"
)
_LOGICAL = {
    *("therefore", "thus", "hence", "so", "because", "since", "if", "then", "implies", "imply"),
    *("follows", "whereas", "although", "but", "however", "unless", "either"),
}
_METACOGNITIVE = {
    *("wait", "check", "verify", "hmm", "actually", "alternatively", "maybe", "perhaps"),
    *("recheck", "double-check", "mistake", "reconsider", "rethink"),
}
# How some vocabularies write a space and a line break.
_MARKS = str.maketrans({"Ġ": " ", "▁": " ", "Ċ": " "})


def token_class(text: str) -> str:
    """The class of a token by its text, without case, and without spaces and punctuation around it.

    Brackets are formal. Other punctuation and an empty text are semantic.
    """
    text = text.translate(_MARKS).strip()
    if _FORMAL.fullmatch(text):
        return "formal"
    word = text.strip(".,;:!?\"'`*()[]{}…-").lower()
    if word in _LOGICAL:
        return "logical"
    return "metacognitive" if word in _METACOGNITIVE else "semantic"


class ClassMean(NamedTuple):
    """One class: number of tokens, mean value, and fraction of the sum (0 without tokens or
    sum)."""

    name: str
    number: int
    mean: float
    fraction: float


def mean_by_class(words: Sequence[str], values: ArrayLike) -> list[ClassMean]:
    """Means and fractions of token values by class, in the order of `TOKEN_CLASSES`.

    Args:
      words: texts of the tokens, [N].
      values: [N], ≥ 0, for example entropies or absolute changes of probability.
    """
    values = np.asarray(values, float)
    if values.shape != (len(words),):
        raise ValueError(
            f"mean_by_class: values must have shape {(len(words),)}, got {values.shape}"
        )
    different, place = np.unique(np.asarray(words, str), return_inverse=True)
    kinds = np.array([TOKEN_CLASSES.index(token_class(word)) for word in different], int)[place]
    count = np.bincount(kinds, minlength=len(TOKEN_CLASSES))
    total = np.bincount(kinds, values, minlength=len(TOKEN_CLASSES))
    mean, fractions = total / np.maximum(count, 1), total / (total.sum() or 1.0)
    return [
        ClassMean(name, int(n), float(m), float(s))
        for name, n, m, s in zip(TOKEN_CLASSES, count, mean, fractions, strict=True)
    ]
