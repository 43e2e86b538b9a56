r"""The tokens of a formula, and a reader that walks along them."""

import re
from dataclasses import dataclass

from rlvr_jax.verifiers.maths.formulas.trees import Unreadable

_MAX_DEPTH = 48

# An opening bracket and its closing one.
CLOSING = {
    "(": ")",
    "[": "]",
    "{": "}",
    "\\{": "\\}",
    "\\lfloor": "\\rfloor",
    "\\lceil": "\\rceil",
}
_TOKEN = re.compile(
    r"(?P<space>\s*)(?:"
    r"(?P<derivative>\\frac\s*\{\s*(?:d|\\partial)\s*(?:\^\s*\{?\s*\d\s*\}?)?\s*[A-Za-z]?\s*\}"
    r"\s*\{\s*(?:d|\\partial)\s*[A-Za-z]\s*(?:\^\s*\{?\s*\d\s*\}?)?\s*\})"
    r"|(?P<number>[1-9]\d{0,2}(?:,\d{3})+(?![\d,])(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
    r"|(?P<command>\\[A-Za-z]+|\\[{}\\])"
    r"|(?P<letters>[A-Za-z]+)"
    r"|(?P<sign>[-+*/^_(){}\[\]|!,%°'&=])"
    r")",
    re.ASCII,
)


@dataclass(frozen=True)
class Token:
    """A token of a text.

    Fields:
      kind: "number", "command", "letters", "sign", or "derivative" for all of \\frac{d}{dx}.
      text: as written.
      spaced: a space is before it.
    """

    kind: str
    text: str
    spaced: bool


class Tokens:
    """The tokens of a text, with a current position.

    Raises:
      Unreadable: a character that no formula has. From `next` and `need`: a missing token. From
        `deeper`: brackets of more than 48 levels.
    """

    def __init__(self, text: str):
        self.tokens: list[Token] = []
        position, text = 0, text.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise Unreadable
            kind = match.lastgroup
            self.tokens.append(Token(kind, match[kind], bool(match["space"])))
            position = match.end()
        self.place: int = 0
        self.depth: int = 0
        self.bars = 0  # open ones: the next bar closes one
        self.bound: frozenset[str] = frozenset()  # names that a sum runs over, be it i

    def peek(self, ahead: int = 0) -> Token | None:
        """The token `ahead` positions on (-1: the previous one), not taken; None outside."""
        place = self.place + ahead
        return self.tokens[place] if 0 <= place < len(self.tokens) else None

    def texts(self, count: int) -> list[str]:
        """The texts of the tokens that follow, at most this many."""
        return [token.text for token in self.tokens[self.place : self.place + count]]

    def next(self) -> Token:
        """Takes the next token."""
        token = self.peek()
        if token is None:
            raise Unreadable
        self.place += 1
        return token

    def at(self, *texts: str) -> bool:
        """Whether the next token has one of these texts."""
        token = self.peek()
        return token is not None and token.text in texts

    def take(self, *texts: str) -> bool:
        """Takes the next token if it has one of these texts; whether it does."""
        found = self.at(*texts)
        self.place += found
        return found

    def need(self, text: str) -> None:
        """Takes a token of this text."""
        if not self.take(text):
            raise Unreadable

    def deeper(self) -> None:
        """Enters one more level of brackets, at most `_MAX_DEPTH`."""
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise Unreadable

    def negative(self) -> bool:
        """Takes signs; True if their product is minus."""
        minus = False
        while self.at("+", "-"):
            minus ^= self.next().text == "-"
        return minus

    def inside(self) -> list[str]:
        """The texts of the tokens in the bracket that is next."""
        found, depth = [], 0
        for token in self.tokens[self.place :]:
            depth += (token.text in "([{") - (token.text in ")]}")
            found.append(token.text)
            if depth == 0:
                return found[1:-1]
        raise Unreadable
