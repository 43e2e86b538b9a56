"""`--help` of a run: every setting with its default, by subject."""

import ast
import inspect
import itertools
import textwrap
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from rlvr_jax.runs.config import GROUPS, TrainConfig


def print_help(start: TrainConfig, description: str, console: Console) -> None:
    """Prints all settings with the values that a command line starts from."""
    for paragraph in _paragraphs(description):
        console.print(escape(paragraph) + "\n", highlight=False)
    values = start.flat()
    for title, texts in setting_texts().items():
        table = Table(
            title=f"[bold]{title}[/]",
            title_justify="left",
            show_header=False,
            box=None,
            padding=(0, 1),
        )
        table.add_column(no_wrap=True, style="cyan", width=24)
        table.add_column(overflow="fold", width=22, style="green")
        table.add_column(overflow="fold")
        for name, text in texts.items():
            value = values[name]
            table.add_row(_option(name, value), escape(_text(value)), escape(text))
        console.print(table)
        console.print()
    console.print(
        "--config FILE starts from the settings of a run's config.json, or of a JSON or TOML file.",
        highlight=False,
    )
    console.print("Methods: `python -m rlvr_jax.methods`. Tasks: `python -m rlvr_jax.tasks`.")


def described(text: str | None, width: int | None = None) -> str:
    """Description of a program, for the help that `tyro` prints, in lines that fit.

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


def _option(name: str, value: Any) -> str:
    option = name.replace("_", "-")
    # A switch has the name of its effect.
    return f"--no-{option}" if value is True or name == "preset" else f"--{option}"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return " ".join(value)
    return "" if value is None or value == "" else str(value)


def setting_texts() -> dict[str, dict[str, str]]:
    """Description of each setting by group, from the docstrings of the fields."""
    found = {}
    for group, holder in {"run": TrainConfig, **GROUPS}.items():
        (body,) = (node.body for node in ast.parse(inspect.getsource(holder)).body)
        found[group] = {
            field.target.id: " ".join(ast.literal_eval(under.value).split())
            for field, under in itertools.pairwise(body)
            if isinstance(field, ast.AnnAssign) and isinstance(under, ast.Expr)
        }
    return found
