"""Partial rewards of InterCode: similarity of a query's rows, or of a shell's work, to the gold.

Source: https://github.com/princeton-nlp/intercode (envs/bash, envs/sql).
"""

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence

_BASE, _PART = 0.01, 0.33
_TERM = re.compile(r"\b\w\w+\b")


def sql_reward(answer: Sequence[Hashable], gold: Sequence[Hashable]) -> float:
    """Common rows / all rows, as multisets, times Kendall's τ of the order of common rows: in
    [-1, 1].

    The k-th copy of a row in the answer belongs to its k-th copy in the gold. τ compares positions
    in the gold (the authors compare texts of rows), and is left out for fewer than two common rows.
    Two empty results are equal. The result is rounded to two digits if there is a τ.
    """
    if not answer and not gold:
        return 1.0
    own, wanted = Counter(answer), Counter(gold)
    fraction = sum((own & wanted).values()) / sum((own | wanted).values())
    where: dict[Hashable, list[int]] = {}
    for place in reversed(range(len(gold))):
        where.setdefault(gold[place], []).append(place)
    places = [where[row].pop() for row in answer if where.get(row)]
    number = len(places)
    if number < 2:
        return fraction
    pairs = number * (number - 1) / 2
    discordant = _inversions(places)
    return round(fraction * (pairs - 2 * discordant) / pairs, 2)


def bash_reward(
    missing: int, extra: int, common: int, right: int, output: str, gold_output: str
) -> float:
    """0.01 and three parts of 0.33 each: the file system's changes, their contents, the output.

    Args:
      missing: number of changes in the gold that were not made.
      extra: number of other changes that were made.
      common: number of changes that both made.
      right: number of common changes with equal content. Without any the content is correct.
      output, gold_output: printed texts; compared by words (tf-idf), or by letters if neither has
        words.
    """
    contents = right / common if common else 1.0
    parts = (1 - math.erf(missing + extra), contents, _cosine(output, gold_output))
    return round(sum((round(_PART * part, 2) for part in parts), _BASE), 2)


def _cosine(one: str, other: str) -> float:
    counts = [Counter(_TERM.findall(text.lower())) for text in (one, other)]
    terms = sorted(counts[0] | counts[1])
    if not terms:
        return float(one == other)
    weight = {t: math.log(3 / (1 + sum(t in count for count in counts))) + 1 for t in terms}
    rows = [[count[t] * weight[t] for t in terms] for count in counts]
    norms = [math.sqrt(sum(x * x for x in row)) for row in rows]
    if not all(norms):
        return 0.0
    return sum(a * b for a, b in zip(*rows, strict=True)) / (norms[0] * norms[1])


def _inversions(places: list[int]) -> int:
    """Number of pairs in the opposite order: within both halves, and between them."""
    if len(places) < 2:
        return 0
    middle = len(places) // 2
    left, right = sorted(places[:middle]), places[middle:]
    across = sum(len(left) - bisect_left(left, value) for value in right)
    return _inversions(places[:middle]) + _inversions(right) + across
