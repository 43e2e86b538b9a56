"""Derivatives, integrals, limits and infinite sums, computed by sympy in a worker."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from rlvr_jax.verifiers.maths.formulas.elementary import MAX_ARGUMENT, TooLarge, Undefined
from rlvr_jax.verifiers.maths.formulas.names import INVERSE, words
from rlvr_jax.verifiers.maths.formulas.trees import Node, call, leaf, number, parts, product

_BITS = 2**18  # of a power


def is_calculus(node: Node) -> bool:
    """Whether a node by itself needs an algebra system."""
    if node.kind == "series":
        return any(part.value == "inf" for item in node.items[:2] for part in parts(item))
    return node.kind in ("derivative", "integral", "limit")


def simplified(node: Node) -> Node:
    """The formula without calculus.

    Raises:
      Undefined: sympy does not know the result.
    """
    if is_calculus(node):
        return _tree(_object(node).doit())
    return Node(node.kind, tuple(map(simplified, node.items)), node.value)


def numerator(node: Node) -> Node:
    """The numerator of the formula as one fraction."""
    import sympy

    return _tree(sympy.fraction(sympy.together(_object(node)))[0])


def _object(node: Node) -> Any:
    """A tree as an object of sympy."""
    import sympy

    kind, value = node.kind, node.value
    if kind == "number":
        return sympy.Rational(value.numerator, value.denominator)
    if kind == "constant":
        return {"pi": sympy.pi, "e": sympy.E, "i": sympy.I, "inf": sympy.oo}[value]
    if kind in ("symbol", "word"):
        return _symbol(value)
    items = [_object(item) for item in node.items]
    if kind == "series":
        series = sympy.Sum if value[0] == "sum" else sympy.Product
        return series(items[2], (_symbol(value[1]), items[0], items[1]))
    if kind == "derivative":
        return sympy.Derivative(items[0], (_symbol(value[0]), value[1]))
    if kind == "integral":
        over = (_symbol(value), *items[1:]) if items[1:] else _symbol(value)
        return sympy.Integral(items[0], over)
    if kind == "limit":
        return sympy.limit(items[0], _symbol(value), items[1])
    makers: Mapping[str, Callable[..., Any]] = {
        "sum": sympy.Add,
        "product": sympy.Mul,
        "quotient": lambda a, b: a / b,
        "power": _power,
        "root": lambda a, n: _power(a, 1 / n),
        "factorial": _factorial,
    }
    if kind in makers:
        return makers[kind](*items)
    if kind == "call" and value in _FUNCTIONS:
        return getattr(sympy, _FUNCTIONS[value])(*items)
    if kind == "call" and value in ("log", "lg"):
        return sympy.log(items[0], items[1] if items[1:] else 10)
    raise Undefined


def _power(base: Any, exponent: Any) -> Any:
    """A power, with a bound on its size because sympy computes numbers at once."""
    if exponent.is_number and abs(exponent) > MAX_ARGUMENT:
        raise TooLarge
    if base.is_Rational and exponent.is_Integer:
        size = max(base.p.bit_length(), base.q.bit_length()) * abs(int(exponent))
        if size > _BITS:
            raise TooLarge
    return base**exponent


def _factorial(value: Any) -> Any:
    import sympy

    if value.is_number and value > MAX_ARGUMENT:
        raise TooLarge
    return sympy.factorial(value)


def _symbol(name: str) -> Any:
    import sympy

    return sympy.Symbol(name, real=True)


_FUNCTIONS = {
    **{name: name for name in words("sin cos tan cot sec csc sinh cosh tanh exp")},
    **{inverse: f"a{name}" for name, inverse in INVERSE.items()},
    "ln": "log",
    "sgn": "sign",
    "abs": "Abs",
    "floor": "floor",
    "ceil": "ceiling",
    "sqrt": "sqrt",
    "binom": "binomial",
}
_NAMES = {name: key for key, name in _FUNCTIONS.items()}


def _tree(found: Any) -> Node:
    """An object of sympy as a tree."""
    import sympy

    if found.is_Rational:
        return number(Fraction(int(found.p), int(found.q)))
    for constant, name in ((sympy.pi, "pi"), (sympy.E, "e"), (sympy.I, "i")):
        if found == constant:
            return leaf("constant", name)
    if found.is_Symbol:
        return leaf("symbol", found.name)
    if isinstance(found, sympy.Piecewise):  # the case of a place in general
        return _tree(found.args[0][0])
    items = tuple(map(_tree, found.args))
    if found.is_Add:
        return Node("sum", items)
    if found.is_Mul:
        return product(*items)
    if found.is_Pow:
        return Node("power", items)
    if isinstance(found, sympy.factorial):
        return Node("factorial", items)
    name = _NAMES.get(type(found).__name__)
    if name is None or len(items) > 2:
        raise Undefined
    return call(name, *items)
