r"""The LP text format as sections of statements of tokens; linear in the text.

Line ends count here, unlike in CPLEX's reader, because people write variables on both sides of a
relation. A statement ends with the line once it has a relation and a term after it.
"""

import re

from rlvr_jax.verifiers.programs.expressions import NUMBER, Unreadable, scan

# (kind, text): kind is number, name, relation (one of < > =) or sign.
Token = tuple[str, str]

_TOKEN = re.compile(
    rf"\s*(?:(?P<number>{NUMBER})|(?P<name>[A-Za-z_][A-Za-z_0-9.\[\]]*)"
    r"|(?P<relation><=|>=|=<|=>|[<>=≤≥])|(?P<sign>[-+*:−]))"
)
_SPELLINGS = {"−": "-", "<=": "<", "=<": "<", "≤": "<", ">=": ">", "=>": ">", "≥": ">"}
_SECTIONS = {
    "objective": r"(?:maximi[sz]e|minimi[sz]e|maximum|minimum|max|min)[^\S\n]*:?",
    "constraints": r"subject\s+to|such\s+that|s\.t\.?|st",
    "bounds": r"bounds?",
    "general": r"generals?|gen|integers?|int",
    "binary": r"binary|binaries|bin",
    "end": r"end",
}
_HEADER = re.compile(
    r"^[^\S\n]*(?:" + "|".join(f"(?P<{name}>{words})" for name, words in _SECTIONS.items()) + r")"
    r"(?![A-Za-z_0-9.\[\]])(?![^\S\n]*[:+*<>=≤≥−-])",
    re.IGNORECASE | re.MULTILINE,
)
_ENDS = {"number", "name"}  # kinds of token that a statement can end with


def sections(text: str) -> list[tuple[str, str, str]]:
    r"""(kind, header, body) of each section; comments, from \ to the line's end, are removed.
    Raises `Unreadable` if the text does not begin with its objective, or has two."""
    text = re.sub(r"\\[^\n]*", "", text)
    headers = list(_HEADER.finditer(text))
    kinds = [header.lastgroup for header in headers]
    if kinds[:1] != ["objective"] or text[: headers[0].start()].strip():
        raise Unreadable("read_lp: text must begin with Maximize or Minimize")
    if kinds.count("objective") > 1:
        raise Unreadable("read_lp: text must have one objective")
    bounds = [header.start() for header in headers[1:]] + [len(text)]
    found = [
        (header.lastgroup, header[0].strip().lower(), text[header.end() : end])
        for header, end in zip(headers, bounds, strict=True)
    ]
    if "end" in kinds[:-1] or (kinds[-1] == "end" and found[-1][2].strip()):
        raise Unreadable("read_lp: End must be the last word")
    return found


def statements(body: str) -> list[list[Token]]:
    """The statements of a section: a sum continues over lines until it has both of its sides.
    Raises `Unreadable` for a sign that the format does not have."""
    found: list[list[Token]] = []
    current: list[Token] = []
    for line in body.splitlines():
        tokens = [
            (kind, "free" if found.lower() == "free" else _SPELLINGS.get(found, found))
            for kind, found in scan(line, _TOKEN, "read_lp")
        ]
        if not tokens:
            continue
        if not _is_whole(current) or tokens[0][0] == "relation":
            current += tokens
        else:
            found.append(current)
            current = tokens
    return [*found, current] if current else found


def _is_whole(tokens: list[Token]) -> bool:
    """Whether a statement may end here."""
    has_both = any(kind == "relation" for kind, _ in tokens) or tokens[-1:] == [("name", "free")]
    return has_both and tokens[-1][0] in _ENDS
