"""Decides whether a gold can be graded: whether it can be read and has a value."""

from rlvr_jax.verifiers.maths.formulas import calculus, identity
from rlvr_jax.verifiers.maths.formulas.reading import read_formula
from rlvr_jax.verifiers.maths.formulas.trees import free_symbols, number, parts
from rlvr_jax.verifiers.maths.values import (
    Chain,
    Container,
    Equation,
    Expression,
    Number,
    Qualified,
    Query,
    Ratio,
    Region,
    Relation,
    Unread,
    Value,
    all_of,
)


def is_gradable(gold: Value, query: Query) -> bool | None:
    """Whether all of a gold can be read; None while a result of `query` is missing."""
    if isinstance(gold, Unread):
        return False
    if isinstance(gold, Qualified):
        return is_gradable(gold.value, query)
    if isinstance(gold, Expression):
        node = read_formula(gold.tex)
        if node is None:
            return False
        if any(map(calculus.is_calculus, parts(node))):
            return query((gold.tex,))
        if any(part.kind == "quotient" and part.items[1] == number(0) for part in parts(node)):
            return False
        constant = not free_symbols(node) and all(part.kind != "word" for part in parts(node))
        return not constant or identity.worked_out(node) is not None or query((gold.tex,))
    if isinstance(gold, Equation):
        sides = [read_formula(side) for side in gold.tex]
        if "" not in gold.tex and None not in sides:
            return True
        return is_gradable(gold.right, query) if gold.whole else False
    if isinstance(gold, Relation):
        return None not in [read_formula(side) for side in (gold.left, gold.right)]
    numbers = isinstance(gold, Ratio) and all(isinstance(item, Number) for item in gold.items)
    if numbers and not any(item.value for item in gold.items):
        return False
    if isinstance(gold, Container | Chain | Ratio):
        return all_of([is_gradable(item, query) for item in gold.items])
    if isinstance(gold, Region):
        return all_of([is_gradable(end, query) for end in gold.ends])
    return True
