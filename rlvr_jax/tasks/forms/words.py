"""The vocabulary of the tasks of this folder: numbers, names, signs, tags and words.

A text is a sequence of these words without spaces, such as `b=12;add(3,4)=7`. A name and the sign
`=` after it are one word. One base model has read the prompts of all tasks and writes their forms,
often with an incorrect answer.
"""

import re
from pathlib import Path

__all__ = ["BASE_MODEL", "CHUNKS", "LARGEST", "NAMES", "PADDING", "PATTERN", "VOCABULARY"]
__all__ += ["words_of"]

LARGEST = 99
NAMES = tuple("abcdef")
CHUNKS = tuple(f"<CHUNK_{number}>" for number in range(len(NAMES)))
PADDING = "<pad>"
VOCABULARY = (
    *map(str, range(LARGEST + 1)),
    *NAMES,
    *(f"{name}=" for name in NAMES),
    *CHUNKS,
    *"+*=;?(),.\n",
    *("unknown", "sure"),
    *("verdict", "RIGHT", "WRONG", "critique", "\\conclusion{", "True", "False", "}"),
    *("<useful_chunks>", "</useful_chunks>", "<answer>", "</answer>"),
    *("<tool_call>", "</tool_call>", "add", "mul"),
    PADDING,
)
PATTERN = "|".join(map(re.escape, sorted(VOCABULARY, key=len, reverse=True)))
"""A regular expression of one word, the longest that fits."""
BASE_MODEL = str(Path(__file__).parents[1] / "base_models" / "forms")


def words_of(text: str) -> list[str]:
    """The words of a text."""
    return re.findall(PATTERN, text)
