r"""Formulas with a domain: "f(x) = 2x for all real x", "a_n = 2n + 1, n ≥ 1", "kπ, k ∈ ℤ".

One side may lack the domain of an argument or an index, or of an integer that runs through a
family. If both sides have it, they must agree. A running letter may have any name. A condition that
restricts it ("y = 2x, x > 0") is not a domain: it is read as a statement.
"""

import re
from collections.abc import Iterator

from rlvr_jax.verifiers.maths.renaming import names_in, renamed
from rlvr_jax.verifiers.maths.values import Parse, Qualified, Unread, Value
from rlvr_jax.verifiers.nesting import split

_HINT = re.compile(r"\\(?:in|forall|ge|le|ne)(?![A-Za-z])|[<>]|\b(?:for|where|with)\b|\\dots")
_ONE = r"[A-Za-z](?:_\{\w+\})?"


def _names(group: str) -> str:
    return rf"(?P<{group}>{_ONE}(?:\s*(?:,|\band\b)\s*{_ONE})*)"


_SET = r"(?:\\in\s*\\mathbb\{(?P<set>[RZNQC])\}|in\s+(?P<letter>[RZNQC]))\s*"
_MARK = r"(?P<mark>(?:[_^]\s*\{?\s*[-+*0]\s*\}?)?|\\setminus.*)"
_ADJECTIVE = r"(?:(?:positive|negative|non-?\s?negative|natural|whole|real|rational|complex)\s+)*"
_KIND = _ADJECTIVE + r"(?:integers?|numbers?|reals?|rational|complex|naturals?|constants?)"
_CONDITION = re.compile(
    r"(?:\\forall|(?:for|where|with)\b)?\s*(?P<all>(?:all|any|every|each)\b)?\s*(?:"
    + "|".join(
        [
            rf"{_names('members')}\s*{_SET}{_MARK}",
            rf"{_names('bounded')}\s*(?P<sign>\\(?:ge|le|ne)(?![A-Za-z])|[<>])\s*(?P<number>-?\d+)",
            rf"{_names('counted')}\s*=\s*(?P<first>-?\d+)\s*,(?P<more>[-\d,\s\\pm]*)\\dots",
            rf"{_names('described')}\s+(?:is|are)\s+(?:an?\s+|any\s+|arbitrary\s+)*(?P<is>{_KIND})"
            r"(?:\s+of\s+integration)?",
            rf"(?P<kind>{_KIND})\s+(?:values?\s+(?:of\s+)?)?{_names('quantified')}",
            _names("alone"),
        ]
    )
    + ")"
)
_GROUPS = ("members", "bounded", "counted", "described", "quantified", "alone")
_INTRODUCED = re.compile(r"\s*[,;]?\s*(?=\\forall(?![A-Za-z])|(?<!\w)(?:for|where|with)\b)")
_BRACKETED = re.compile(r"(.*\S)\s*\(([^()]*)\)$", re.DOTALL)
_SPACED = re.compile(r"\s(?=[A-Za-z]\s*\\in\s*\\mathbb)")
_WHOLE = frozenset("ijklmn")  # letters of integers
_MOST_PARTS = 8  # of a condition as "n = 1, 2, 3, …"
_TOTAL = frozenset(["R", "Z", "all"])
_ARGUMENT = re.compile(r"[(_]\s*[({]?([^(){}]*)[)}]")


def read_qualified(text: str, parse: Parse) -> Value | None:
    """Reads a formula with a domain after it; None if there is none."""
    if not _HINT.search(text):
        return None
    for formula, condition in _halves(text):
        match = _CONDITION.fullmatch(condition.strip())
        if match is None or (match["alone"] and not match["all"] and "forall" not in condition):
            continue
        names, domains = _domain(match)
        left = formula.partition("=")[0] if "=" in formula else ""
        inside = all(name in "".join(_ARGUMENT.findall(left)) for name in names)
        plain = names_in(formula.partition("=")[2] or formula)
        if not (inside or (set(names) <= plain and not set(names) & names_in(left))):
            continue
        if not (inside or domains & _TOTAL or all(d.startswith("integers") for d in domains)):
            continue
        value = parse(formula.strip())
        return (
            Unread(text) if isinstance(value, Unread) else Qualified(value, names, domains, inside)
        )
    return None


def _halves(text: str) -> Iterator[tuple[str, str]]:
    """Ways to split a text into a formula and a condition."""
    if match := _BRACKETED.fullmatch(text):
        yield match[1], match[2]
    for pattern in (_INTRODUCED, _SPACED):
        if match := pattern.search(text):
            yield text[: match.start()], text[match.end() :]
    parts = split(text, ",|;")
    for place in range(max(1, len(parts) - _MOST_PARTS), len(parts)):
        yield ",".join(parts[:place]), ",".join(parts[place:])


def _domain(match: re.Match) -> tuple[tuple[str, ...], frozenset[str]]:
    """The names of a condition, and the possible domains: the integers from 1, the reals, …"""
    part = match.groupdict()
    written = next(part[group] for group in _GROUPS if part[group])
    names = tuple(re.findall(_ONE, re.sub(r"\band\b", ",", written)))
    if letter := part["set"] or part["letter"]:
        return names, _of_set(letter, part["mark"])
    if part["sign"]:
        if part["sign"] in (">", "\\ge") and set(names) <= _WHOLE:
            return names, _from(int(part["number"]) + (part["sign"] == ">"))
        return names, frozenset([part["sign"] + part["number"]])
    if part["counted"]:
        return names, frozenset(["Z"]) if "pm" in part["more"] else _from(int(part["first"]))
    kind = part["is"] or part["kind"]
    return names, _of_kind(kind.split()) if kind else frozenset(["all"])


def _from(number: int) -> frozenset[str]:
    return frozenset([f"integers from {number}"])


def _of_set(letter: str, mark: str) -> frozenset[str]:
    mark = re.sub(r"[_^{}\s]", "", mark)
    if letter == "N":
        return _from(0) | _from(1) if mark in ("", "0") else _from(1)
    if mark == "":
        return frozenset([letter])
    if mark == "+":
        return _from(1) if letter == "Z" else frozenset([">0"])
    return frozenset([letter + mark])


def _of_kind(words: list[str]) -> frozenset[str]:
    """The domain in words such as "positive integers"."""
    found = {word.rstrip("s") for word in words}
    letters = {"natural": "N", "whole": "N", "integer": "Z", "rational": "Q", "complex": "C"}
    of = next((letter for word, letter in letters.items() if word in found), "R")
    if "positive" in found:
        return _of_set(of, "+")
    if "negative" in found:
        return frozenset([f"{of}-"])
    if of == "N" or not re.search("non", " ".join(words)):
        return _of_set(of, "")
    return _from(0) if of == "Z" else frozenset(["\\ge0"])


def plain_pair(gold: Value, answer: Value) -> tuple[Value, Value] | None:
    """Both formulas without their domains, with the same variable names; None if domains differ."""
    if not isinstance(gold, Qualified):
        added = isinstance(answer, Qualified) and (
            answer.domains & _TOTAL or (answer.inside and answer.domains & (_from(0) | _from(1)))
        )
        return (gold, answer.value) if added else None
    if not isinstance(answer, Qualified):
        return gold.value, _named_as(gold, answer)
    agreed = gold.domains & answer.domains or (
        "all" in gold.domains | answer.domains and (gold.domains | answer.domains) & _TOTAL
    )
    if not agreed or len(gold.names) != len(answer.names):
        return None
    names = {old: new for old, new in zip(answer.names, gold.names, strict=True) if old != new}
    return gold.value, renamed(answer.value, names)


def _named_as(gold: Qualified, answer: Value) -> Value:
    """An answer without a domain; its one other letter gets the name of the gold's letter."""
    own = _letters(answer) - _letters(gold.value)
    if gold.inside or len(gold.names) > 1 or len(own) != 1 or not own <= _WHOLE:
        return answer
    return renamed(answer, dict.fromkeys(own, gold.names[0]))


def _letters(value: Value) -> frozenset[str]:
    found = [names_in(tex) for tex in _formulas(value)]
    return frozenset().union(*found)


def _formulas(value: Value) -> Iterator[str]:
    for item in getattr(value, "items", ()):
        yield from _formulas(item)
    if hasattr(value, "right"):
        yield from _formulas(value.right)
    elif isinstance(getattr(value, "tex", None), str):
        yield value.tex
