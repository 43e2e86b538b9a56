"""Expressions of formal texts as postfix instructions: nothing is executed, no tree is built.

    expr = term {± term}        term = factor {× or ÷ factor}
    factor = − factor | atom [^ factor]
    atom = number | name | name(expr, …) | (expr)

`postfix` returns the program of a stack machine as instructions, such as [2, "x1", "*"]. The caller
defines names and calls. Reading is linear in the text, and its depth is bounded.
"""

import functools
import math
import operator
import re
from collections.abc import Callable
from typing import Any, NamedTuple

_MAX_DEPTH = 50  # nested brackets and signs; people write a handful
NUMBER = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "^": operator.pow,
}
_TOKEN = re.compile(
    rf"\s*(?:(?P<number>{NUMBER})"
    r"|(?P<name>[A-Za-z_][A-Za-z_0-9]*)|(?P<sign>[-+*/^(),]))"
)
_SPELLINGS = str.maketrans({"−": "-", "×": "*", "÷": "/"})


class Unreadable(ValueError):
    """A text that is not an expression."""


class Instruction(NamedTuple):
    """One step of the stack machine.

    Fields:
      kind: "number", "name", "call", "negative" or one of + - * / ^.
      value: of a number; the name of a name or call.
      count: arguments of a call.
    """

    kind: str
    value: float | str = ""
    count: int = 0


def postfix(text: str) -> list[Instruction]:
    """Reads a whole text as one expression; `**` is `^`.

    Raises:
      Unreadable: the text is not an expression, too deep, or has a number beyond float64.
    """
    tokens = scan(text.translate(_SPELLINGS).replace("**", "^"), _TOKEN, "expression")
    tokens = [(found if kind == "sign" else kind, found) for kind, found in tokens]
    reader = _Reader([*tokens, ("end", "")])
    reader.sum(0)
    if reader.kind != "end":
        raise Unreadable(f"expression: end required, got {reader.text!r}")
    return reader.program


def scan(text: str, pattern: re.Pattern[str], reader: str) -> list[tuple[str, str]]:
    """(kind, text) of the tokens of a text, kinds as the groups of a pattern; linear in the text.
    Raises `Unreadable` for a sign that the pattern does not have."""
    text = text.rstrip()
    tokens, position = [], 0
    while position < len(text):
        match = pattern.match(text, position)
        if not match:
            raise Unreadable(f"{reader}: sign required, got {text[position : position + 10]!r}")
        tokens.append((match.lastgroup or "", match[match.lastgroup]))
        position = match.end()
    return tokens


class _Reader:
    """Recursive descent over tokens; `depth` counts open brackets and signs."""

    def __init__(self, tokens: list[tuple[str, str]]):
        self.tokens = tokens
        self.place = 0
        self.program: list[Instruction] = []

    @property
    def kind(self) -> str:
        return self.tokens[self.place][0]

    @property
    def text(self) -> str:
        return self.tokens[self.place][1]

    def take(self, kind: str) -> str:
        if self.kind != kind:
            raise Unreadable(f"expression: {kind} required, got {self.text!r}")
        self.place += 1
        return self.tokens[self.place - 1][1]

    def sum(self, depth: int) -> None:
        product = functools.partial(self.chain, ("*", "/"), self.factor)
        self.chain(("+", "-"), product, depth)

    def chain(self, signs: tuple[str, str], operand: Callable[[int], None], depth: int) -> None:
        operand(depth)
        while self.kind in signs:
            sign = self.take(self.kind)
            operand(depth)
            self.program.append(Instruction(sign))

    def factor(self, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise Unreadable(f"expression: depth must be at most {_MAX_DEPTH}")
        if self.kind == "-":
            self.take("-")
            self.factor(depth + 1)
            self.program.append(Instruction("negative"))
            return
        self.atom(depth)
        if self.kind == "^":
            self.take("^")
            self.factor(depth + 1)
            self.program.append(Instruction("^"))

    def atom(self, depth: int) -> None:
        if self.kind == "number":
            value = float(self.take("number"))
            if not math.isfinite(value):
                raise Unreadable("expression: numbers must be finite")
            self.program.append(Instruction("number", value))
        elif self.kind == "(":
            self.take("(")
            self.sum(depth + 1)
            self.take(")")
        else:
            name = self.take("name")
            if self.kind != "(":
                self.program.append(Instruction("name", name))
                return
            count = 0
            while count == 0 or self.kind == ",":
                self.place += 1
                self.sum(depth + 1)
                count += 1
            self.take(")")
            self.program.append(Instruction("call", name, count))
