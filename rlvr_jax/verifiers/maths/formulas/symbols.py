r"""Reads the names of a formula with their primes, indices and arguments."""

from rlvr_jax.verifiers.maths.formulas import names
from rlvr_jax.verifiers.maths.formulas.tokens import CLOSING, Token, Tokens
from rlvr_jax.verifiers.maths.formulas.trees import (
    Node,
    Unreadable,
    call,
    leaf,
    minus,
    number,
    product,
)

_CONNECTIVES = names.words(
    "if or is so at to of by in as be on we an and for the when where then thus hence not but with"
    " because since let"
)
_SEVERAL = names.words("max min gcd lcm")


def letters(reader: Tokens, token: Token) -> Node:
    """Letters side by side: a function, a name, a product of two, or a word."""
    text, after = token.text, reader.peek()
    if text in _CONNECTIVES and (token.spaced or (after is not None and after.spaced)):
        raise Unreadable
    kinds = names.split_letters(text)
    if kinds[0][0] == "function":
        if len(kinds) == 1:
            return function(reader, kinds[0][1])
        return function(reader, kinds[0][1], first=text[-1])  # sinx
    scripted = reader.at("_", "'")
    if len(text) > 1 and (scripted or (reader.at("(") and _applied(reader, text[-1]))):
        # The last letter of mv_0 and xf(x) is the name.
        before = [leaf(*part) for part in names.split_letters(text[:-1])]
        return product(*before, named(reader, text[-1]))
    if len(text) == 1 and (scripted or kinds[0][0] == "symbol" or text in reader.bound):
        return named(reader, text)
    found = tuple(leaf("symbol" if part[1] in reader.bound else part[0], part[1]) for part in kinds)
    return found[0] if len(found) == 1 else Node("product", found, "letters")


def named(reader: Tokens, name: str) -> Node:
    """A name with its primes, index and star, and its argument if it is a function."""
    while True:
        if reader.take("'"):
            name += "'"
        elif reader.at("_"):
            name += f"_{{{_index(reader)}}}"
        elif reader.texts(2) == ["^", "*"] or reader.texts(4) == ["^", "{", "*", "}"]:
            reader.place += 2 if reader.texts(2)[1] == "*" else 4
            name += "*"
        else:
            break
    if reader.texts(6) == ["^", "{", "-", "1", "}", "("] and names.applies(name, ""):
        reader.place += 5
        return Node("apply", _bracketed(reader), f"{name}^{{-1}}")
    if name in ("C", "P") and reader.at("(") and (parts := _selected("".join(reader.inside()))):
        reader.place += 2 + len(reader.inside())
        return call(name, *parts)
    if reader.at("(") and _applied(reader, name):
        return Node("apply", _bracketed(reader), name)
    return leaf("symbol", name)


def _selected(argument: str) -> tuple[Node, ...]:
    """The two numbers of C(6,2) and P(n,k); none if it may be a point or another function."""
    total, _, taken = argument.partition(",")
    found = tuple(
        number(int(part)) if part.isdecimal() else leaf("symbol", part) for part in (total, taken)
    )
    if total.isdecimal() and taken.isdecimal():
        return found if int(total) >= int(taken) else ()
    return found if (total.isdecimal() or total in names.TOTALS) and taken in names.TAKEN else ()


def function(reader: Tokens, name: str, first: str = "") -> Node:
    """A function with its base, its exponent and its argument.

    Without brackets the argument continues up to a sign, a bracket or another function: x y in
    ln x y, x in sin(x)y.

    Args:
      first: the letter that the argument begins with, as in sinx.
    """
    base = exponent = None
    while reader.at("_", "^") and not first:
        if reader.take("_"):
            base = reader.group() if reader.at("{") else reader.atom()
        else:
            exponent = reader.exponent()
    if first:
        arguments = (named(reader, first),)
    elif reader.at("(", "[", "{", "\\{"):
        arguments = _bracketed(reader)
    else:
        arguments = (_beside(reader),)
    if name in names.FUNCTIONALS:
        node = Node("apply", arguments, f"\\{name}")
        return node if exponent is None else Node("power", (node, exponent))
    if (len(arguments) > 1 and name not in _SEVERAL) or (base is not None and name != "log"):
        raise Unreadable
    if (
        exponent is not None
        and exponent == minus(Node("number", value=1))
        and name in names.INVERSE
    ):
        return call(names.INVERSE[name], *arguments)
    node = call(name, *arguments, *([] if base is None else [base]))
    return node if exponent is None else Node("power", (node, exponent))


def _beside(reader: Tokens) -> Node:
    negative = reader.negative()
    found = [reader.factor()]
    while (token := reader.peek()) is not None:
        if token.kind == "letters":
            if names.split_letters(token.text)[0][0] == "function":
                break
        elif token.kind != "command" or token.text[1:] not in {"pi", "frac", "sqrt", *names.GREEK}:
            break
        found.append(reader.factor())
    node = found[0] if len(found) == 1 else product(*found)
    return minus(node) if negative else node


def _bracketed(reader: Tokens) -> tuple[Node, ...]:
    """The contents of brackets, with commas between."""
    opening = reader.next().text
    bars, reader.bars = reader.bars, 0
    found = [reader.content()]
    while reader.take(","):
        found.append(reader.content())
    reader.need(CLOSING[opening])
    reader.bars = bars
    return tuple(found)


def _applied(reader: Tokens, name: str) -> bool:
    return names.applies(name, "".join(reader.inside()))


def _index(reader: Tokens) -> str:
    """The text of a subscript, without spaces."""
    reader.need("_")
    if reader.at("{"):
        inside = reader.inside()
        reader.place += 2 + len(inside)
        return "".join(inside)
    return reader.next().text
