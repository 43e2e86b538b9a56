"""Chunks of a context that a response cites, and its answer.

    <useful_chunks><CHUNK_3>, <CHUNK_7></useful_chunks>
    <answer>…</answer>

Each block must match exactly once, else the format is broken. Ids are the numbers of every
<CHUNK_N> of the block; other text in the block is ignored.

Source: https://github.com/real-absolute-AI/LongRLVR, whose spellings of the tag differ.
"""

import re
from collections.abc import Sequence

from rlvr_jax.verifiers.answers import between

BLOCK = "useful_chunks"
_CHUNK = re.compile(r"<CHUNK_([0-9]{1,9})>")


def parse(text: str) -> tuple[list[int] | None, str | None]:
    """The cited chunks in order, with repetitions, and the answer.

    Either one is None if its block is missing.
    """
    chunks, answer = (between(text, f"<{n}>", f"</{n}>") for n in (BLOCK, "answer"))
    return chunks if chunks is None else [*map(int, _CHUNK.findall(chunks))], answer


def precision_and_recall(ids: Sequence[int], reference: Sequence[int]) -> tuple[float, float]:
    """|U ∩ Z| / |U| and |U ∩ Z| / |Z|; a chunk that is cited twice counts twice in |U| only.

    Args:
      ids: U; if it is empty, both are 0.
      reference: Z, at least one.
    """
    hit = len(set(ids) & set(reference))
    return hit / len(ids) if ids else 0.0, hit / len(set(reference))
