"""Chunks of a context that a response cites, and its answer.

    <useful_chunks><CHUNK_3>, <CHUNK_7></useful_chunks>
    <answer>…</answer>

Each block is matched exactly once, else the format is broken. Ids are the numbers of every
<CHUNK_N> of the block; other text in it is free.

Source: https://github.com/real-absolute-AI/LongRLVR, whose spellings of the tag differ.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

_CHUNK = re.compile(r"<CHUNK_([0-9]{1,9})>")
_WORD = re.compile(r"\[\[\s*(YES|NO)\s*\]\]", re.IGNORECASE)


class Cited(NamedTuple):
    """What a response says.

    Fields:
      ids: of the cited chunks, in order, twice where one is cited twice; None: no such block.
      answer: None: no such block.
    """

    ids: list[int] | None
    answer: str | None


def parse(text: str) -> Cited:
    """The chunks and the answer of a response."""
    chunks, answer = (_block(text, name) for name in ("useful_chunks", "answer"))
    ids = None if chunks is None else [int(number) for number in _CHUNK.findall(chunks)]
    return Cited(ids, None if answer is None else answer.strip())


def precision_and_recall(ids: Sequence[int], reference: Sequence[int]) -> tuple[float, float]:
    """|U ∩ Z| / |U| and |U ∩ Z| / |Z|; a chunk that is cited twice counts twice in |U| alone.

    Args:
      ids: U; none: both are 0.
      reference: Z, at least one.
    """
    hit = len(set(ids) & set(reference))
    return hit / len(ids) if ids else 0.0, hit / len(set(reference))


def judge(text: str) -> bool | None:
    """What a judge says of an answer: [[YES]] or [[NO]], the last of them; None: nothing."""
    words = _WORD.findall(text)
    return words[-1].upper() == "YES" if words else None


def _block(text: str, name: str) -> str | None:
    """The text of a block that is there once, opened before it is closed."""
    opened, closed = f"<{name}>", f"</{name}>"
    if text.count(opened) != 1 or text.count(closed) != 1:
        return None
    start, end = text.index(opened) + len(opened), text.index(closed)
    return text[start:end] if start <= end else None
