"""Names in the TeX of a value, and the value with other names."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from rlvr_jax.verifiers.maths.formulas.names import split_letters
from rlvr_jax.verifiers.maths.values import Chain, Container, Equation, Expression, Value

_TOKEN = re.compile(r"\\[A-Za-z]+|([A-Za-z]+)(?:_(?:\{(\w+)\}|(\d)))?")


def names_in(tex: str) -> frozenset[str]:
    r"""The letters of a formula, with their indices: x and C_{1} of \sin xC_{1}."""
    return frozenset(name for match in _TOKEN.finditer(tex) for name in _names(match))


def renamed(value: Value, names: Mapping[str, str]) -> Value:
    """The value with some names replaced, in formulas and in containers of them."""
    if isinstance(value, Expression):
        return replace(value, tex=_renamed(value.tex, names))
    if isinstance(value, Equation):
        return replace(
            value,
            tex=(_renamed(value.tex[0], names), _renamed(value.tex[1], names)),
            left=_renamed(value.left, names),
            right=renamed(value.right, names),
        )
    if isinstance(value, Container | Chain):
        return replace(value, items=tuple(renamed(item, names) for item in value.items))
    return value


def _renamed(tex: str, names: Mapping[str, str]) -> str:
    def changed(match: re.Match) -> str:
        found = list(_names(match))
        if not any(name in names for name in found):
            return match[0]
        return "".join(names.get(name, name) for name in found)

    return _TOKEN.sub(changed, tex)


def _names(match: re.Match) -> Iterator[str]:
    """The names side by side; none in the name of a function or a command."""
    letters, index = match[1], match[2] or match[3]
    if letters is None or split_letters(letters)[0][0] == "function":
        return
    yield from letters[:-1]
    yield f"{letters[-1]}_{{{index}}}" if index else letters[-1]
