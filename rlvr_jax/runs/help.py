"""Descriptions of programs in the help that `tyro` prints."""

import inspect
import textwrap

from rich.console import Console


def described(text: str | None, width: int | None = None) -> str:
    """The description of a program in lines that fit.

    Args:
      width: of the terminal; None: as it is.
    """
    width = min(width or Console().width, 100)
    lines = []
    for paragraph in _paragraphs(text or ""):
        commands = paragraph.startswith(" ")
        lines += [
            "",
            *(paragraph.splitlines() if commands else textwrap.wrap(paragraph, width - 1)),
        ]
    # tyro joins lines but for those that begin with no letter.
    return "\n".join(f" {line}" if line else "" for line in lines[1:])


def _paragraphs(text: str) -> list[str]:
    """Paragraphs in one line each; those that are commands keep their lines."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return [part if part.startswith(" ") else " ".join(part.split()) for part in paragraphs]
