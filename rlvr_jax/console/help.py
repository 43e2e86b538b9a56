"""Format of the descriptions of programs in `--help`, which `tyro` prints."""

import inspect
import textwrap

from rich.console import Console


def described(text: str | None, width: int | None = None) -> str:
    """Returns the description of a program in lines that fit. Indented lines are commands.

    Args:
      width: width of the terminal, in characters; None: its current width.
    """
    width = min(width or Console().width, 100)
    lines = []
    for paragraph in _paragraphs(text or ""):
        commands = paragraph.startswith(" ")
        lines += [
            "",
            *(paragraph.splitlines() if commands else textwrap.wrap(paragraph, width - 1)),
        ]
    # tyro joins lines that begin with a letter.
    return "\n".join(f" {line}" if line else "" for line in lines[1:])


def _paragraphs(text: str) -> list[str]:
    """Paragraphs, one line each; commands are not joined."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return [part if part.startswith(" ") else " ".join(part.split()) for part in paragraphs]
