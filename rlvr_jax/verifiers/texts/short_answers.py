"""Answers of a few words, as for questions about facts: equal, or similar, in normal form."""

import string
from collections import Counter

_SPACED = str.maketrans(dict.fromkeys(string.punctuation, " "))
_VERDICTS = {"yes", "no", "noanswer"}


def normal(text: str) -> str:
    """Lower case, punctuation as spaces, no articles; exactly True and False become yes and no."""
    known = {"True": "yes", "False": "no"}.get(text, text)
    words = known.lower().translate(_SPACED).split()
    return " ".join(word for word in words if word not in ("a", "an", "the"))


def f1(answer: str, gold: str) -> float:
    """F1 of the words of two answers, as multisets, in normal form. 0 if one is yes, no or noanswer
    and the other one is different."""
    own, wanted = normal(answer), normal(gold)
    if own != wanted and {own, wanted} & _VERDICTS:
        return 0.0
    words, golden = own.split(), wanted.split()
    common = sum((Counter(words) & Counter(golden)).values())
    if not common:
        return 0.0
    precision, recall = common / len(words), common / len(golden)
    return 2 * precision * recall / (precision + recall)


def check(answer: str, gold: str) -> float:
    """1 if both are equal in normal form and not empty, else 0."""
    return float(normal(answer) == normal(gold) != "")
