r"""Linear programs in the LP text format, read by a small parser: model text reaches no C++ reader.

    Maximize
      profit: 3 x + 2 y          \ a comment
    Subject To
      wood: x + y <= 4
      2 x + y >= 1 - y
    Bounds
      0 <= x <= 3
      y free
    General
      x
    Binary
      z
    End

The reader takes CPLEX's format as people write it: `max`, `min:`, `st`, `such that`, `=<`, `2*x`,
variables and numbers on both sides, `l <= sum <= u`. Variables are at least 0 unless Bounds differ.
Products of variables, and more than a thousand variables or constraints, are refused.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from rlvr_jax.verifiers.programs.expressions import Unreadable
from rlvr_jax.verifiers.programs.lp_text import Token, sections, statements

_MOST = 1000  # variables, and constraints
_MAX_CHARACTERS = 100_000
_LARGEST = 1e15  # of a number; solvers take larger ones for infinite
_END = ("end", "")
_Sum = tuple[dict[str, float], float]


@dataclass
class LinearProgram:
    """max or min Σ cost · x + offset, each x and each row's sum between two numbers.

    Fields:
      maximize: the sense.
      cost: of each variable, by name; offset: the constant.
      rows: (coefficients by name, least, most).
      low, high: bounds by name; 0 and infinite where none is set.
      whole: the variables that are integers.
    """

    maximize: bool
    cost: dict[str, float]
    offset: float = 0.0
    rows: list[tuple[dict[str, float], float, float]] = field(default_factory=list)
    low: dict[str, float] = field(default_factory=dict)
    high: dict[str, float] = field(default_factory=dict)
    whole: set[str] = field(default_factory=set)

    @property
    def variables(self) -> list[str]:
        """Their names, in the order in which they are met."""
        used = [self.cost, *(row for row, _, _ in self.rows), self.low, self.high]
        return list(dict.fromkeys([name for names in used for name in names] + sorted(self.whole)))


def read_lp(text: str) -> LinearProgram:
    """Reads a linear program; raises `Unreadable` for another text, or one that is too large."""
    if len(text) > _MAX_CHARACTERS:
        raise Unreadable(f"read_lp: text must have at most {_MAX_CHARACTERS} characters")
    (_, header, body), *others = sections(text)
    program = LinearProgram(header.startswith("max"), *_objective(body))
    for kind, _, body in others:
        if kind in _STATEMENTS:
            for tokens in statements(body):
                _STATEMENTS[kind](program, _Reader(tokens))
        elif kind != "end":
            _integers(program, body, binary=kind == "binary")
    if not program.variables:  # the optimum of "Maximize 865" would be its own number
        raise Unreadable("read_lp: text must have variables, got none")
    if max(len(program.variables), len(program.rows)) > _MOST:
        raise Unreadable(f"read_lp: at most {_MOST} variables and constraints are read")
    return program


def _objective(body: str) -> _Sum:
    reader = _Reader([token for tokens in statements(body) for token in tokens])
    result = _sum(reader) if reader.peek() != _END else ({}, 0.0)
    if reader.peek() != _END:
        raise Unreadable(f"read_lp: the objective must be one sum, got {reader.peek()[1]!r}")
    return result


class _Reader:
    """The tokens of a statement, less its label, one after the other."""

    def __init__(self, tokens: list[Token]):
        labelled = len(tokens) > 1 and tokens[0][0] == "name" and tokens[1][1] == ":"
        self.tokens = tokens[2:] if labelled else tokens
        self.place = 0

    def peek(self) -> Token:
        return self.tokens[self.place] if self.place < len(self.tokens) else _END

    def next(self) -> Token:
        self.place += 1
        return self.tokens[self.place - 1]

    def sign(self) -> float | None:
        """The product of the signs at this place; None without one."""
        value = None
        while self.peek()[1] in ("+", "-"):
            value = (value or 1.0) * (-1.0 if self.next()[1] == "-" else 1.0)
        return value


def _sum(reader: _Reader) -> _Sum:
    """Σ coefficient · variable and the constants, up to a token that continues no sum."""
    terms: dict[str, float] = {}
    constant = 0.0
    first = True
    while True:
        sign = reader.sign()
        kind, found = reader.peek()
        if kind not in ("number", "name") or (sign is None and not first):
            if sign is not None or first:
                raise Unreadable(f"read_lp: a term is required, got {found!r}")
            return terms, constant
        first = False
        value = 1.0 if sign is None else sign
        if kind == "number":
            value *= _number(reader.next()[1])
            if reader.peek()[1] == "*":
                reader.next()
                if reader.peek()[0] != "name":
                    raise Unreadable("read_lp: a variable must follow *")
        if reader.peek()[0] == "name":
            name = reader.next()[1]
            terms[name] = terms.get(name, 0.0) + value
        else:
            constant += value


def _constraint(program: LinearProgram, reader: _Reader) -> None:
    """left relation right, or number relation sum relation number, as one row."""
    sides, relations = [_sum(reader)], []
    while reader.peek()[0] == "relation":
        relations.append(reader.next()[1])
        sides.append(_sum(reader))
    if reader.peek() != _END:
        raise Unreadable(f"read_lp: a constraint must end here, got {reader.peek()[1]!r}")
    if len(relations) == 1:
        (left, a), (right, b) = sides
        row = dict(left)
        for name, value in right.items():
            row[name] = row.get(name, 0.0) - value
        least = b - a if relations[0] in (">", "=") else -math.inf
        most = b - a if relations[0] in ("<", "=") else math.inf
    elif relations in (["<", "<"], [">", ">"]) and not (sides[0][0] or sides[2][0]):
        row, constant = sides[1]
        least, most = sides[0][1] - constant, sides[2][1] - constant
        if relations[0] == ">":
            least, most = most, least
    else:
        raise Unreadable("read_lp: a constraint must have one relation, or two between numbers")
    program.rows.append((row, least, most))


def _bound(program: LinearProgram, reader: _Reader) -> None:
    values: list[str | float] = [_end_of_bound(reader)]
    relations = []
    while reader.peek()[0] == "relation":
        relations.append(reader.next()[1])
        values.append(_end_of_bound(reader))
    name = next((value for value in values if isinstance(value, str)), "")
    if not relations and name and reader.peek() == ("name", "free"):
        reader.next()
        program.low[name], program.high[name] = -math.inf, math.inf
    elif not name or not relations or len(relations) > 2 or values.count(name) != 1:
        raise Unreadable("read_lp: a bound must be a variable and one or two numbers")
    for left, relation, right in zip(values, relations, values[1:], strict=False):
        if isinstance(right, str):
            left, right = right, left
            relation = {"<": ">", ">": "<"}.get(relation, relation)
        if not isinstance(left, str) or isinstance(right, str):
            raise Unreadable("read_lp: a bound must be a variable and a number")
        if relation in (">", "="):
            program.low[left] = right
        if relation in ("<", "="):
            program.high[left] = right
            if right < 0 and left not in program.low:
                program.low[left] = -math.inf  # CPLEX's reading
    if reader.peek() != _END:
        raise Unreadable(f"read_lp: a bound must end here, got {reader.peek()[1]!r}")


def _end_of_bound(reader: _Reader) -> str | float:
    sign = reader.sign()
    kind, found = reader.next() if reader.peek() != _END else _END
    value = math.inf if found.lower() in ("inf", "infinity") else found
    if kind == "number":
        value = _number(found)
    if kind not in ("number", "name") or (isinstance(value, str) and sign is not None):
        raise Unreadable(f"read_lp: a bound is required, got {found!r}")
    return value if isinstance(value, str) else (sign or 1.0) * value


_STATEMENTS: dict[str, Callable[[LinearProgram, _Reader], None]] = {
    "constraints": _constraint,
    "bounds": _bound,
}


def _integers(program: LinearProgram, body: str, binary: bool) -> None:
    for kind, name in [t for tokens in statements(body.replace(",", " ")) for t in tokens]:
        if kind != "name":
            raise Unreadable(f"read_lp: a variable is required, got {name!r}")
        program.whole.add(name)
        if binary:
            program.low[name], program.high[name] = 0.0, 1.0


def _number(text: str) -> float:
    value = float(text)
    if not value <= _LARGEST:
        raise Unreadable(f"read_lp: numbers must be at most {_LARGEST:g}, got {text}")
    return value
