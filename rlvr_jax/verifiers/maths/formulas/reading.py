r"""Reads the TeX of a formula as a tree; the whole text must be a formula.

    sum      = ± term (± term)*
    term     = factor (· factor | / factor | factor)*     a product may do without a sign
    factor   = atom (^ exponent | ! | ° | %)*

The reader makes one pass over the tokens, with a bound on the depth. A number must not follow a
number or a letter (2 3, x2), and an index follows only a name. Unknown commands, dots and relations
make the text unreadable. `symbols` reads names; `commands` reads names that begin with a
backslash.
"""

import functools

from rlvr_jax.verifiers.maths.formulas.commands import COMMANDS, derivative
from rlvr_jax.verifiers.maths.formulas.symbols import letters
from rlvr_jax.verifiers.maths.formulas.tokens import CLOSING, Tokens
from rlvr_jax.verifiers.maths.formulas.trees import (
    PI,
    Node,
    Unreadable,
    call,
    leaf,
    minus,
    number,
    product,
    quotient,
)

_TIMES = ("*", "\\cdot", "\\times")
_OVER = ("/", "\\div")
_MAX_IN_A_ROW = 16  # of slashes and of signs after a factor, each of which adds a level
_ENDS = frozenset(
    [
        *CLOSING.values(),
        "+",
        "-",
        ",",
        "&",
        "\\\\",
        "\\end",
        "\\over",
        "\\choose",
        "\\rangle",
        "_",
        "'",
    ]
)


@functools.lru_cache(maxsize=65536)
def read_formula(text: str) -> Node | None:
    """Reads a formula in the notation of `notation.normalise`; None for any other text."""
    try:
        reader = _Reader(text)
        node = reader.content()
    except (Unreadable, ValueError, RecursionError):
        return None
    return node if reader.peek() is None else None


class _Reader(Tokens):
    def content(self) -> Node:
        r"""A sum, or two of them with \over or \choose between."""
        node = self.sum()
        if self.take("\\over"):
            return quotient(node, self.sum())
        if self.take("\\choose"):
            return call("binom", node, self.sum())
        return node

    def sum(self) -> Node:
        self.deeper()
        terms = [self.signed(self.term)]
        while self.at("+", "-"):
            terms.append(self.signed(self.term))
        self.depth -= 1
        return terms[0] if len(terms) == 1 else Node("sum", tuple(terms))

    def signed(self, read) -> Node:
        negative = self.negative()
        node = read()
        return minus(node) if negative else node

    def term(self) -> Node:
        node, divided = self.factor(), 0
        while (token := self.peek()) is not None:
            if self.take(*_TIMES):
                node = product(node, self.signed(self.factor))
            elif divided <= _MAX_IN_A_ROW and self.take(*_OVER):
                divided += 1
                node = quotient(node, self.denominator(node))
            elif token.text in _ENDS or (token.text == "|" and self.bars):
                break
            else:
                node = self.beside(node)
        return node

    def beside(self, node: Node) -> Node:
        """A product without a sign; an integer and a fraction of integers are a mixed number."""
        token, before = self.peek(), self.peek(-1)
        if token.kind == "number" and before.text not in (")", "]"):
            raise Unreadable
        right = self.factor()
        mixed = before.kind == "number" and token.text == "\\frac"
        mixed &= right.kind == "quotient" and all(map(_is_integer, right.items))
        if mixed and _is_integer(node):
            return Node("sum", (node, right))
        if mixed and node.kind == "product" and _is_integer(node.items[-1]):
            return product(*node.items[:-1], Node("sum", (node.items[-1], right)))
        return product(node, right)

    def denominator(self, top: Node) -> Node:
        """The divisor after a slash: 2x as a whole, unless a number is before it, as in 1/2x."""
        node = self.signed(self.factor)
        while top.kind != "number" and (token := self.peek()) is not None:
            if token.spaced or token.kind != "letters":
                break
            node = product(node, self.factor())
        return node

    def factor(self) -> Node:
        node = self.atom()
        for _ in range(_MAX_IN_A_ROW):
            if self.at("^"):
                node = self.raised(node)
            elif self.take("!"):
                node = Node("factorial", (node,))
            elif self.take("°"):
                node = product(node, quotient(PI, number(180)))
            elif self.take("%"):
                node = quotient(node, number(100))
            else:
                return node
        raise Unreadable

    def raised(self, node: Node) -> Node:
        exponent = self.exponent()
        # The last letter of abc^2 and ab^2 is squared; AB is one length.
        if node.kind == "word" and not node.value.isupper():
            less = Node("sum", (exponent, number(-1)))
            return product(node, Node("power", (leaf("symbol", node.value[-1]), less)))
        if node.kind == "product" and node.value == "letters":
            return product(*node.items[:-1], Node("power", (node.items[-1], exponent)))
        return Node("power", (node, exponent))

    def exponent(self) -> Node:
        self.need("^")
        self.deeper()
        negative = self.negative()
        token = self.peek()
        if token is not None and token.kind == "letters" and len(token.text) > 1:
            raise Unreadable
        node = self.atom()
        if self.at("^"):
            node = Node("power", (node, self.exponent()))
        self.depth -= 1
        return minus(node) if negative else node

    def atom(self) -> Node:
        self.deeper()
        token = self.next()
        if token.kind == "number":
            node = number(token.text.replace(",", ""))
        elif token.kind == "letters":
            node = letters(self, token)
        elif token.kind == "derivative":
            node = derivative(self, token.text)
        elif token.text == "|":
            self.bars += 1
            node = call("abs", self.content())
            self.need("|")
            self.bars -= 1
        elif token.text in CLOSING and token.text != "\\{":
            self.place -= 1
            node = self.group()
        elif token.kind == "command" and token.text[1:] in COMMANDS:
            node = COMMANDS[token.text[1:]](self, token.text[1:])
        else:
            raise Unreadable
        self.depth -= 1
        return node

    def group(self) -> Node:
        """The content of brackets."""
        opening = self.next().text
        if opening not in CLOSING or opening == "\\{":
            raise Unreadable
        bars, self.bars = self.bars, 0
        node = self.content()
        self.need(CLOSING[opening])
        self.bars = bars
        kind = {"\\lfloor": "floor", "\\lceil": "ceil"}.get(opening)
        # Brackets hold letters together: (ab)^2 is not ab^2.
        plain = Node("product", node.items) if node.kind == "product" else node
        return call(kind, node) if kind else plain


def _is_integer(node: Node) -> bool:
    return node.kind == "number" and node.value.denominator == 1
