"""Programs and formal texts in a response: the fences of a language, after the thinking.

The functions are linear in the text and never raise. A response whose thinking does not end has no
answer.
"""

import re

_MARKS = ("```", "~~~")


def behind_thinking(response: str) -> str | None:
    """The text after the last </think>, or all of it; None if the thinking does not end."""
    answer = response.rpartition("</think>")[2]
    return None if "<think>" in answer else answer


def fences(text: str, *languages: str) -> list[str]:
    """The contents of the closed fences ```language … ``` and ~~~language … ~~~, in order.

    Line ends at the fences are removed.

    Args:
      languages: words that may follow the opening marks, in any case, with white space after them.
    """
    named, marks = "|".join(map(re.escape, languages)), "|".join(_MARKS)
    opening = re.compile(rf"({marks})(?:{named})(?=\s)", re.IGNORECASE)
    found, position = [], 0
    lasts = {mark: text.rfind(mark) for mark in _MARKS}
    while match := opening.search(text, position):
        position = match.end()
        if lasts[match[1]] >= position:
            end = text.find(match[1], position)
            found.append(text[position:end].strip("\r\n"))
            position = end + len(match[1])
    return found


def last_fence(text: str, *languages: str) -> str | None:
    """The content of the last closed fence of a language; None without one."""
    found = fences(text, *languages)
    return found[-1] if found else None
