"""Every prompt asked under several views, whose answers are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rlvr_jax.experience.asks import View
from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.types.parts import part

__all__ = ["ask_experts", "shares"]


def shares(samples: int, experts: int) -> list[int]:
    """Samples of each expert, as equal as they can be, the first ones more."""
    return [samples // experts + (expert < samples % experts) for expert in range(experts)]


@part
def ask_experts(views: Sequence[View]) -> Curriculum:
    """Splits the samples of every ask over views of its prompt, each the cell of its number.

    The parts are groups of their own as they are drawn; `join_groups` makes one of them.

    Args:
      views: at least one; asks with fewer samples than views go to the first ones.
    Raises:
      ValueError: no view.
    Source: MEML-GRPO (the link stands in the method's card).
    """
    if not views:
        raise ValueError("ask_experts: views must be at least one, got none")

    def propose(asks, state, turn):
        del state, turn
        return [
            replace(ask, view=view, cell=cell, samples=number, first_sample=sum(parts[:cell]))
            for ask in asks
            for parts in [shares(ask.samples, len(views))]
            for cell, (view, number) in enumerate(zip(views, parts, strict=True))
            if number
        ]

    return Curriculum(
        propose, reads=frozenset().union(*(view.reads for view in views)), views=tuple(views)
    )
