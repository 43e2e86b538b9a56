"""Fills page templates: one HTML file without external files."""

import html
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rlvr_jax.analysis.colours import COLOURS, DARK_COLOURS, style_variables

_HERE = Path(__file__).parent


def fill(template: str, **values: str) -> str:
    """Inserts values into a template of this folder.

    Args:
      template: file name; `{{name}}` is replaced by the value of that name.
      **values: HTML, already escaped. They are not searched for further `{{name}}`.
    """
    text = (_HERE / template).read_text("utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], text)


def whole_page(template: str, scripts: Sequence[str], title: str, data: Any, **values: str) -> str:
    """A whole page with style, scripts and data; a template is its body.

    Args:
      template: as for `fill`; it may also use the title.
      scripts: file names, in the order of execution.
      title: text, not escaped.
      data: JSON values that the scripts draw.
      **values: as for `fill`.
    """
    heading = html.escape(title)
    page = fill(
        "page.html",
        title=heading,
        css=fill(
            "page.css",
            light_colours=style_variables(COLOURS),
            dark_colours=style_variables(DARK_COLOURS),
        ),
        body=fill(template, title=heading, **values),
        data=embedded_json(data),
        script="\n".join((_HERE / name).read_text("utf-8") for name in scripts),
    )
    # an incomplete byte-level token has a surrogate, which UTF-8 cannot encode
    return page.encode("utf-8", "replace").decode("utf-8")


def replace_file(path: Path, content: bytes) -> None:
    """Replaces a file in one step: a reader sees the old file or the new one."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def embedded_json(data: Any) -> str:
    """JSON for a script element: its text cannot end the element."""
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], marked: Sequence[int] = ()) -> str:
    """An HTML table of escaped text; rows with a number in `marked` are coloured."""
    cells = "".join(f"<th>{html.escape(str(name))}</th>" for name in head)
    lines = [f"<tr>{cells}</tr>"]
    for number, row in enumerate(rows):
        cells = "".join(f"<td>{html.escape(str(value))}</td>" for value in row)
        mark = ' class="differs"' if number in marked else ""
        lines.append(f"<tr{mark}>{cells}</tr>")
    return f'<div class="table"><table>{"".join(lines)}</table></div>'


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """Lines of a Markdown table."""
    cells = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(str(c).replace('|', '&#124;') for c in row)} |" for row in cells]


def rounded(value: Any, digits: int = 4) -> Any:
    """Rounds for the page; non-finite values become None (JSON has no NaN)."""
    if isinstance(value, (list, tuple, np.ndarray)):
        return [rounded(v, digits) for v in value]
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.{digits}g}") if np.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value
