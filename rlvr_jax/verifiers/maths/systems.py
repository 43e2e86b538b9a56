"""Systems of assignments, x = 2, y = 3: their values in the order of the names."""

from collections.abc import Sequence

from rlvr_jax.verifiers.maths.values import Container, Equation, Value


def assigned(system: Container, order: Sequence[str] | None = None) -> tuple[Value, ...]:
    """Returns one value for each name; () if an entry names none, or a name has two.

    Args:
      order: the names, of which all are given and no other; None is alphabetic order.
    """
    found = {
        item.left: item.right for item in system.items if isinstance(item, Equation) and item.solved
    }
    if len(found) < len(system.items) or (order is not None and sorted(found) != sorted(order)):
        return ()
    names = sorted(found, key=lambda name: name.lstrip("\\")) if order is None else order
    return tuple(found[name] for name in names)
