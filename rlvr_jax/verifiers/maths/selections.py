r"""Numbers of selections as people write them: {}^6C_2, _6P_2, C_6^2, 6 choose 2, as formulas.

A selection takes no more than there is, so that C_1^2 remains a square. C(6,2) is a formula that
`formulas.symbols` reads.
"""

import re

from rlvr_jax.verifiers.maths.formulas.names import TOTALS

_PART = r"(?:\{\s*(\w+)\s*\}|(\d+|[A-Za-z]))"
_COUNT = r"(?:\{\s*(\d+)\s*\}|(\d))"
# A script on a base, as in x_6C_2, belongs to the base.
_BEFORE = r"(?:\{\s*\}\s*|(?:^|(?<=[-+*/=(,\[{])|(?<=\\cdot)|(?<=\\times))\s*)"
_NAME = r"(?<![A-Za-z\\_^])"
_BESIDE = re.compile(
    rf"(?:{_BEFORE}[_^]\s*{_PART}|\{{\s*[_^]\s*{_PART}\s*\}})\s*([CP])\s*_\s*{_PART}"
)
_BELOW = re.compile(
    rf"{_NAME}([CPA])\s*(?:_\s*{_COUNT}\s*\^\s*{_COUNT}|\^\s*{_COUNT}\s*_\s*{_COUNT})(?!\w)"
)
_CHOOSE = re.compile(r"(?<!\w)(\w+)\s+choose\s+(\w+)(?!\w)")


def written_out(text: str) -> str:
    r"""Writes combinations as \binom{n}{k} and permutations as a quotient of factorials."""
    if not re.search(r"[CPA]|choose", text):
        return text
    text = _BESIDE.sub(_beside, text)
    text = _BELOW.sub(_below, text)
    return _CHOOSE.sub(lambda match: _selection(match[0], "C", *match.groups()), text)


def _beside(match: re.Match) -> str:
    total, kind, taken = filter(None, match.groups())
    return _selection(match[0], kind, total, taken)


def _below(match: re.Match) -> str:
    """C_6^2, in either order of the scripts: the lower one is the larger one."""
    kind, *counts = filter(None, match.groups())
    below, above = counts if match[0][1:].strip()[0] == "_" else counts[::-1]
    return match[0] if below == above else _selection(match[0], kind, below, above)


def _selection(text: str, kind: str, total: str, taken: str) -> str:
    if total.isdigit() and taken.isdigit():
        known = int(total) >= int(taken)
    else:
        known = total.isdigit() or total in TOTALS
    if not known:
        return text
    if kind == "C":
        return rf"\binom{{{total}}}{{{taken}}}"
    return rf"\frac{{{total}!}}{{({total}-{taken})!}}"
