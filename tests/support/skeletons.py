"""Methods whose losses are composed of the same parts: one of each is enough for a law."""

import functools

from rlvr_jax.methods import method, names
from rlvr_jax.types.parts import Part

CHAIN = ("advantage", "transforms", "surrogate", "regularizers", "aggregation")


@functools.cache
def objective_of(name):
    """The objective of a method with its defaults."""
    return method(name).recipe().objective


def makers(part):
    """The makers that a part is made of, itself first, whatever their arguments are."""
    found = {part.made.maker} if part.made else set()
    for _, value in part.made.arguments if part.made else ():
        for inner in value if isinstance(value, tuple) else (value,):
            if isinstance(inner, Part):
                found |= makers(inner)
    return found


def skeleton(name):
    """The parts of a loss in order, each as all makers that it is made of."""
    arguments = dict(objective_of(name).made.arguments)
    card = method(name)
    laws = (card.baseline, card.gradient, card.ratio, card.denominator, card.rewards, card.random)
    chain = []
    for place in CHAIN:
        parts = arguments[place] if isinstance(arguments[place], tuple) else (arguments[place],)
        chain.append(tuple(frozenset(makers(part)) for part in parts))
    return tuple(chain), laws


@functools.cache
def distinct():
    """One method for each skeleton, the first by name."""
    found = {}
    for name in names():
        found.setdefault(skeleton(name), name)
    return sorted(found.values())


@functools.cache
def cover():
    """A few methods that use, together, all parts of losses that several methods share."""
    shared = {}
    for name in distinct():
        for maker in makers(objective_of(name)):
            if maker.__module__.startswith("rlvr_jax.objectives"):
                shared.setdefault(maker, set()).add(name)
    left, chosen = set(shared), []
    while left:
        best = max(distinct(), key=lambda name: sum(name in shared[maker] for maker in left))
        chosen.append(best)
        left = {maker for maker in left if best not in shared[maker]}
    return sorted(chosen)
