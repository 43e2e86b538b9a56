"""SWE-RL: edits of files, compared with the correct change as texts of differences; nothing runs.

    <think>…</think><solution>
    ```python
    ### path/to/file.py
    <<<<<<< SEARCH
    old lines
    =======
    new lines
    >>>>>>> REPLACE
    ```
    </solution>

Every tag appears once, and the thought is not empty. Each search text begins at the start of a line
of its file (it may end inside a line) and differs from its replacement. The edits of a file apply
in order, at all places. The reward is −1 if any of this fails. Otherwise it is, over the files that
the prediction or the correct change alters,

    mean of SequenceMatcher(None, predicted diff, correct diff, autojunk=False).ratio()

where a diff is unified with three lines of context and no header. A file that only one of them
alters counts 0. Paths are keys: no file is opened. An empty search text matches at the start of
every line, and creates a missing file.

Similarity is lenient: a fix with one incorrect character has 0.99. Matching takes quadratic time,
so diffs of more than 20,000 characters are compared by lines. Shorter ones may be slow: grade in a
worker with a time limit.

Source: https://github.com/facebookresearch/swe-rl, `core/reward.py`.
"""

import difflib
import re
from collections.abc import Mapping
from typing import Any

from rlvr_jax.verifiers.grade import Grade

_TAGS = ("<think>", "</think>", "<solution>", "</solution>")
# Without the fence before it, for which a line of ticks would take quadratic time.
_HEAD = re.compile(r"\n### ([^\n]*)\n<<<<<<< SEARCH\n")
_MIDDLE, _END = "\n=======\n", "\n>>>>>>> REPLACE\n```"
_BY_LINES = 20_000  # characters of a diff
_MOST_CHARACTERS = 2**21  # of an edited file: all places are replaced, so edits can multiply


class Malformed(ValueError):
    """A response whose reward is −1."""


def check(response: str, gold: Mapping[str, Any]) -> Grade:
    """The similarity; 0 where the paper's reward is −1 (info "malformed").

    Args:
      response: the whole response, tags included.
      gold: {"files": texts by path before the change, "oracle": the changed ones after it}.
    Metrics: malformed (1 for a change that cannot be applied), exact (1 if all files equal the
      oracle's).
    """
    files, oracle = map(gold.get, ("files", "oracle")) if isinstance(gold, Mapping) else (0, 0)
    for texts in (files, oracle):
        if not (isinstance(texts, Mapping) and all(isinstance(t, str) for t in texts.values())):
            return Grade(None, stage="gold")
    try:
        new = edited(response, files)
    except Malformed as error:
        return Grade(0.0, stage=str(error), info={"malformed": 1.0, "exact": 0.0})
    exact = {**files, **new} == {**files, **oracle}
    info = {"malformed": 0.0, "exact": float(exact)}
    return Grade(similarity(files, new, oracle), answer=", ".join(new), stage="diff", info=info)


def edited(response: str, files: Mapping[str, str]) -> dict[str, str]:
    """The files that a response edits, after its edits; raises `Malformed`."""
    if any(response.count(tag) != 1 for tag in _TAGS):
        raise Malformed("tags")
    thought = response.partition("<think>")[2].partition("</think>")[0]
    if not thought.strip():
        raise Malformed("thought")
    solution = response.partition("<solution>")[2].partition("</solution>")[0].strip()
    edits = _edits(solution)
    if not edits:
        raise Malformed("no edit")
    new: dict[str, str] = {}
    for path, search, replacement in edits:
        # A line break in front of both makes a search text begin where a line does.
        text = new.get(path, "\n" + files.get(path, ""))
        if search == replacement or "\n" + search not in text:
            raise Malformed("search")
        grown = text.count("\n" + search) * (len(replacement) - len(search))
        if len(text) + grown > _MOST_CHARACTERS:
            raise Malformed("size")
        new[path] = text.replace("\n" + search, "\n" + replacement)
    return {path: text[1:] for path, text in new.items()}


def _edits(solution: str) -> list[tuple[str, str, str]]:
    """(path, search, replacement) of each block, in order; linear in the text."""
    edits, position, seen = [], 0, 0
    while match := _HEAD.search(solution, seen):
        line = max(solution.rfind("\n", position, match.start()) + 1, position)
        if "```" not in solution[line : match.start()]:
            seen = match.start() + 1
            continue
        middle = solution.find(_MIDDLE, match.end())
        end = solution.find(_END, middle + len(_MIDDLE)) if middle >= 0 else -1
        if end < 0:
            break
        search, new = solution[match.end() : middle], solution[middle + len(_MIDDLE) : end]
        edits.append((match[1], search, new))
        position = seen = end + len(_END)
    return edits


def similarity(
    files: Mapping[str, str], predicted: Mapping[str, str], oracle: Mapping[str, str]
) -> float:
    """Mean similarity of the changes over the files that either alters; 1 if neither does.

    Args:
      files: texts before the change, by path; a missing file is empty.
      predicted, oracle: texts of the edited files after the change.
    """
    changes = [
        {path: diff for path, text in new.items() if (diff := _diff(files.get(path, ""), text))}
        for new in (predicted, oracle)
    ]
    paths = sorted({*changes[0], *changes[1]})
    predicted, oracle = changes
    both = [path for path in paths if path in predicted and path in oracle]
    total = sum(_ratio(predicted[path], oracle[path]) for path in both)
    return total / len(paths) if paths else 1.0


def _diff(old: str, new: str) -> list[str]:
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=3)
    return list(lines)[2:]  # without the two lines that name the files


def _ratio(predicted: list[str], oracle: list[str]) -> float:
    texts = ["\n".join(predicted), "\n".join(oracle)]
    if texts[0] == texts[1]:
        return 1.0
    compared = texts if max(map(len, texts)) <= _BY_LINES else [predicted, oracle]
    return difflib.SequenceMatcher(None, *compared, autojunk=False).ratio()
