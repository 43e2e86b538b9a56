r"""The structure of a LaTeX table: rows of cells with their width and height, without content.

The first tabular of a text is read. Comments, rules, the columns' alignment and the distances
after a line end are removed. Rows end at \\ or \tabularnewline and cells at &, if these are not
escaped and outside braces and environments. An empty row at the end does not count, nor an empty
cell under a \multirow. One pass, linear in the text.
"""

import re

_MAX_CHARACTERS = 100_000
_TABULARS = ("tabular", "tabular*", "tabularx")
_BEGIN = re.compile(r"\\begin\s*\{(tabular\*?|tabularx)\}")
_TOKEN = re.compile(
    r"(?P<comment>%[^\n]*\n?)|\\(?P<edge>begin|end)\s*\{(?P<name>[A-Za-z]+\*?)\}"
    r"|(?P<row>\\\\\*?|\\tabularnewline(?![A-Za-z]))|(?P<other>\\(?:[A-Za-z@]+|.)|[^\\%{}&]+)"
    r"|(?P<sign>[{}&])|(?P<last>\\)",
    re.DOTALL,
)
_GAP = re.compile(r"\s*\[[^\]]{0,40}\]")
_RULE = re.compile(
    r"\\(?:hline|toprule|midrule|bottomrule|hdashline|morecmidrules|firsthline|lasthline)(?![A-Za-z])"
    r"(?:\[[^\]]{0,40}\])?"
    r"|\\(?:cline|cdashline|cmidrule|addlinespace|specialrule|Xhline|Xcline|noalign|rowcolor)"
    r"(?![A-Za-z])(?:\s*(?:\[[^\]]{0,40}\]|\([^)]{0,40}\)|\{[^{}]{0,80}\})){0,4}"
)
_WIDTH = re.compile(r"\\multicolumn\s*\{\s*([0-9]{1,3})\s*\}")
_HEIGHT = re.compile(r"\\multirow\s*(?:\[[^\]]{0,40}\]\s*)?\{\s*(-?[0-9]{1,3})\s*\}")
_NOTHING = re.compile(r"\{\s*\}$")
_ARGUMENT = re.compile(r"\s*(?:\[[^\]]*\])?\s*")


def spans(text: str) -> list[list[tuple[int, int]]] | None:
    """Rows of cells as (width, height); None without a closed table that is not empty."""
    begin = _BEGIN.search(text)
    if not begin or len(text) > _MAX_CHARACTERS:
        return None
    start = _behind_arguments(text, begin.end(), 1 if begin[1] == "tabular" else 2)
    rows = _cells(text, start) if start >= 0 else None
    if rows and rows[-1] == [""]:
        rows.pop()
    return _without_covered(rows) if rows else None


def _behind_arguments(text: str, position: int, count: int) -> int:
    """The beginning of the body, after `count` arguments in braces; -1 if one is missing."""
    for _ in range(count):
        position = _ARGUMENT.match(text, position).end()
        if text[position : position + 1] != "{":
            return -1
        depth = 0
        for match in _TOKEN.finditer(text, position):  # each character is of a token
            depth += {"{": 1, "}": -1}.get(match["sign"], 0)
            if not depth:
                break
        else:
            return -1
        position = match.end()
    return position


def _cells(text: str, position: int) -> list[list[str]] | None:
    """The texts of the cells up to the end of the tabular, without comments and rules."""
    rows: list[list[str]] = [[]]
    parts: list[str] = []
    braces = environments = 0

    def close_cell() -> None:
        rows[-1].append(_RULE.sub("", "".join(parts)).strip())
        parts.clear()

    while match := _TOKEN.match(text, position):
        position = match.end()
        if match["comment"]:
            continue
        braces += {"{": 1, "}": -1}.get(match["sign"], 0)
        if braces < 0:
            return None
        if match["edge"] == "end" and not environments:
            close_cell()
            return rows if not braces and match["name"] in _TABULARS else None
        environments += {"begin": 1, "end": -1}.get(match["edge"], 0)
        if braces or environments or not (match["row"] or match["sign"] == "&"):
            parts.append(match[0])
        else:
            close_cell()
            if match["row"]:
                gap = _GAP.match(text, position)
                position = gap.end() if gap else position
                rows.append([])
    return None


def _without_covered(rows: list[list[str]]) -> list[list[tuple[int, int]]]:
    """Widths and heights, without the empty cells that a cell of several rows covers."""
    placed: list[list[tuple[int, int, int, bool]]] = []
    covered: set[tuple[int, int]] = set()
    for number, row in enumerate(rows):
        column = 0
        placed.append([])
        for cell in row:
            width, height = _WIDTH.search(cell), _HEIGHT.search(cell)
            columns = max(int(width[1]), 1) if width else 1
            lines = int(height[1]) if height else 1
            # A negative number reaches upwards: the text is in the last one of its rows.
            first, end = (number + 1, number + lines) if lines > 0 else (number + lines + 1, number)
            reached = range(max(first, 0), min(end, len(rows)))
            covered |= {(r, c) for r in reached for c in range(column, column + columns)}
            # The last argument of a \multicolumn without content is empty.
            empty = not cell or bool(width and not height and _NOTHING.search(cell))
            placed[-1].append((column, columns, max(abs(lines), 1), empty))
            column += columns
    return [
        [
            (columns, lines)
            for column, columns, lines, empty in row
            if not (empty and all((number, c) in covered for c in range(column, column + columns)))
        ]
        for number, row in enumerate(placed)
    ]
