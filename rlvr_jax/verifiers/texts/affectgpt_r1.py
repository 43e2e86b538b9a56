"""Open lists of words, such as emotions: precision and recall of clusters, a penalty per word.

Gold: the reference words as a text. `wheel` maps words to clusters, so that synonyms count; each
other word is a separate cluster.

Source: AffectGPT-R1, whose formula for the penalty on long lists is not published. Ours is `rate`
for each word beyond the number of reference words.
"""

import re
from collections.abc import Mapping

from rlvr_jax.verifiers.answers import after_thinking, in_tag
from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.texts.format_rewards import well_formed

_SEPARATORS = re.compile(r"[,;\n\r]")
_ENDS = " .*'\"“”‘’„«»`"


def extract(response: str) -> str | None:
    """The text in the last closed <answer>; without one, the text after the thinking."""
    answer = in_tag(response)
    return after_thinking(response) if answer is None else answer


def formed(response: str, _: object = None) -> float:
    """1 for a thought in <think> followed by an <answer>, each once, else 0."""
    return float(well_formed(response))


def items(text: str) -> list[str]:
    """The different items of a list, in lower case; commas, semicolons and lines separate them."""
    parts = (" ".join(part.split()).strip(_ENDS).lower() for part in _SEPARATORS.split(text))
    return list(dict.fromkeys(part for part in parts if part))


def check(
    answer: str, gold: str, wheel: Mapping[str, str] | None = None, rate: float = 0.1
) -> Grade:
    """F1 of the clusters; info: precision, recall, f1, price and `reward`, f1 less the price.

    Ungraded without reference words.

    Args:
      answer: words of the response.
      gold: reference words.
      wheel: clusters of words, by the word in lower case.
      rate: penalty for each word beyond the number of reference words.

    Metrics: precision, recall, f1 (of the clusters), price (of words beyond the
      reference), reward (f1 less the price).
    """
    words, reference = items(answer), items(gold)
    if not reference:
        return Grade(None, answer=answer, stage="no reference")
    found, wanted = ({(wheel or {}).get(w, w) for w in each} for each in (words, reference))
    hits = len(found & wanted)
    precision, recall = hits / max(len(found), 1), hits / len(wanted)
    f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
    price = rate * max(0, len(words) - len(reference))
    info = {"precision": precision, "recall": recall, "f1": f1, "price": price}
    info["reward"] = f1 - price
    return Grade(f1, answer=", ".join(words), stage="words", info=info)
