"""Clips: a recording as one word for each second, with two kinds of questions of unequal metrics.

    prompt    cut,cut,tie,tie,tie,close?when tie         2-4, graded by intersection over union
    prompt    cut,cut,tie,tie,tie,close?caption          cut,tie,close, graded by F1 of its pairs

An interval has the first and the last second, from 0. A caption has the phases in order; its pairs
are those of neighbouring words, with a mark at both ends. The outcome is 1 if the metric is. A text
of another form has the metric 0.

The base model is mostly near with its intervals, and often leaves out a phase of a caption.
"""

import re
from collections import Counter
from itertools import pairwise
from random import Random

from rlvr_jax.tasks.base import Prompt, Response
from rlvr_jax.tasks.generated import Generated, generated
from rlvr_jax.tasks.grading import one_by_one
from rlvr_jax.tasks.sketches.words import BASE_MODEL, PHASES
from rlvr_jax.verifiers.grade import Grade

__all__ = ["clips"]

KINDS = ("interval", "caption")
_INTERVAL = re.compile(r"(\d{1,2})-(\d{1,2})")


@generated(response_tokens=12)
def clips() -> Generated:
    """Intervals and captions, in equal numbers.

    Metrics: metric (of the kind of the question, 0 to 1).
    """
    return Generated(
        _prompt,
        KINDS,
        verify=_verify,
        base_model=BASE_MODEL,
        mixture=dict.fromkeys(KINDS, 1 / len(KINDS)),
        rewards=("metric",),
        answers=True,
    )


def _prompt(random: Random, kind: str) -> Prompt:
    phases = random.sample(PHASES, random.choice((3, 4, 5)))
    lengths = [random.randint(1, 5) for _ in phases]
    text = ",".join(",".join([phase] * n) for phase, n in zip(phases, lengths, strict=True))
    if kind == "caption":
        caption = ",".join(phases)
        return Prompt(f"{text}?caption", caption, kind, caption)
    asked = random.randrange(len(phases))
    first = sum(lengths[:asked])
    span = f"{first}-{first + lengths[asked] - 1}"
    return Prompt(f"{text}?when {phases[asked]}", span, kind, span)


def overlap(one: str, other: str) -> float:
    """Intersection over union of two intervals of whole seconds; 0 for another text."""
    spans = []
    for text in (one, other):
        found = _INTERVAL.fullmatch(text)
        if found is None or int(found[1]) > int(found[2]):
            return 0.0
        spans.append({*range(int(found[1]), int(found[2]) + 1)})
    return len(spans[0] & spans[1]) / len(spans[0] | spans[1])


def similarity(one: str, other: str) -> float:
    """F1 of the pairs of neighbouring words of two captions."""
    pairs = [Counter(pairwise(["", *text.split(","), ""])) for text in (one, other)]
    common = sum((pairs[0] & pairs[1]).values())
    return 2 * common / sum(sum(own.values()) for own in pairs)


@one_by_one
def _verify(prompt: Prompt, response: Response) -> Grade:
    answer = None if response.truncated else response.text.strip()
    compare = overlap if prompt.kind == "interval" else similarity
    metric = 0.0 if answer is None else compare(answer, prompt.answer)
    return Grade(float(metric == 1), info={"metric": metric}, answer=answer)
