"""The line of a judge's answer that counts."""

import re

_DECIMAL = re.compile(r"(?:score\s*:\s*)?([0-9]*\.?[0-9]+|[0-9]+\.)", re.IGNORECASE)


def last_line(text: str) -> str:
    """The last line that is not empty, without blanks at its ends; "" of an empty text."""
    lines = [line.strip() for line in text.splitlines()]
    return next((line for line in reversed(lines) if line), "")


def decimal_of(text: str, largest: float) -> float | None:
    """The decimal of the last line, "Score:" before it allowed; None if there is none in
    [0, largest]."""
    found = _DECIMAL.fullmatch(last_line(text))
    if found is None:
        return None
    value = float(found[1])
    return value if value <= largest else None
