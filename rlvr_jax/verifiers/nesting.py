"""Brackets of a text: where they close, their depth, and the parts outside of them."""

import re
from collections.abc import Iterator

_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)


def closing(text: str, opening: int) -> int:
    """Returns the position of the brace that closes the one at `opening`; -1 without one."""
    depth = 0
    for match in _BRACE.finditer(text, opening):  # \{ and \} are characters
        depth += {"{": 1, "}": -1}.get(match.group(), 0)
        if not depth:
            return match.start()
    return -1


def depths(text: str) -> Iterator[int]:
    """Yields the number of open brackets after each character; any kind closes any other."""
    depth = 0
    for character in text:
        depth += (character in "({[") - (character in ")}]")
        yield depth


def enclosed(text: str) -> bool:
    """True if the first bracket closes at the very end."""
    found = list(depths(text))
    return found[-1] == 0 and 0 not in found[:-1]


def split(text: str, separator: str) -> list[str]:
    """Splits where no bracket is open; any kind closes any other, for half-open intervals."""
    parts, depth, last, position = [], 0, 0, 0
    pattern = re.compile(separator)
    while position < len(text):
        if text[position] in "([{":
            depth += 1
        elif text[position] in ")]}":
            depth -= 1
        elif depth == 0 and (match := pattern.match(text, position)) and match.end() > position:
            parts.append(text[last:position])
            last = position = match.end()
            continue
        position += 2 if text.startswith("\\\\", position) else 1
    return [*parts, text[last:]]
