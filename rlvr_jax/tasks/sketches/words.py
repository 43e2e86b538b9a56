"""The vocabulary of the tasks of this folder: numbers, names, tags and the words of each task.

A name is a syllable, such as `Ba`. Words contain their spaces and line breaks. One base model has
read the prompts of all tasks and writes their answer formats, often with errors.
"""

import re
from pathlib import Path

from rlvr_jax.verifiers.texts.r1_searcher import BEGIN, DOCUMENTS, DOCUMENTS_END, END

__all__ = ["BASE_MODEL", "CUES", "LARGEST", "NAMES", "PADDING", "PATTERN", "PHASES", "UNKNOWN"]
__all__ += ["VOCABULARY", "WHEEL", "words_of"]

LARGEST = 99
UNKNOWN = "…"
"""Replaces every other character, such as those of an error message."""
PADDING = "<pad>"
NAMES = tuple(first.upper() + second for first in "bdfgklmnprstvz" for second in "aeiou")
CUES = {
    "smiles": "happy",
    "laughs": "happy",
    "weeps": "sad",
    "sighs": "sad",
    "shouts": "angry",
    "stamps": "angry",
    "trembles": "afraid",
    "hides": "afraid",
    "stares": "surprised",
    "gasps": "surprised",
}
"""Actions of a person, and the emotion that each shows."""
WHEEL = {
    "joyful": "happy",
    "gloomy": "sad",
    "furious": "angry",
    "scared": "afraid",
    "amazed": "surprised",
}
"""Further words of emotions, and the cluster of each."""
PHASES = ("cut", "hold", "tie", "clean", "close", "rinse")
VOCABULARY = (
    *map(str, range(LARGEST + 1)),
    *NAMES,
    *" \n;:,?#@=+-*<>().",
    *("<think>", "</think>", "<answer>", "</answer>", "\n\n"),
    # Searches
    *("born", "river", "founder", "```text\n", "\n```", "(1) ", "(2) "),
    *("<search>", "</search>", "<found>", "</found>", BEGIN, END, DOCUMENTS, DOCUMENTS_END),
    # Queries
    *(
        "SELECT ",
        " FROM people",
        " WHERE ",
        " AND ",
        " ORDER BY ",
        "name",
        "age",
        "town",
        " | ",
        "'",
    ),
    *("submit", "(no rows)"),
    # Dilemmas and number lists
    *("cooperate", "defect", "numbers", "with ", "rising", "even"),
    # Routes
    *("L1", "L2", "L3", "true", "false", "stops", "on ", "--"),
    *("Route Name: ", "Departure Stop: ", "Arrival Stop: "),
    # Feelings and clips
    *dict.fromkeys([*CUES, *CUES.values(), *WHEEL]),
    *PHASES,
    *("caption", "when "),
    # Repairs
    *("<solution>\n```python\n### ", "a.py", "b.py", "\n<<<<<<< SEARCH\n", "\n=======\n"),
    "\n>>>>>>> REPLACE\n```\n</solution>",
    # Equations
    *("<try>", "</try>", "<look>", "</look>", "<shown>", "</shown>"),
    *("x1", "x2", "c1", "c2", "c3", "sin(", "sqrt("),
    UNKNOWN,
    PADDING,
)
PATTERN = "|".join(map(re.escape, sorted(VOCABULARY, key=len, reverse=True)))
"""A regular expression of one word, the longest that fits."""
BASE_MODEL = str(Path(__file__).parents[1] / "base_models" / "sketches")


def words_of(text: str) -> list[str]:
    """The words of a text."""
    return re.findall(PATTERN, text)
