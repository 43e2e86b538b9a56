"""Dialogues that a generator imagines: personas, and the turns of both sides."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Dialogue", "imagine", "split_by_persona"]


@dataclass(frozen=True)
class Dialogue:
    """One imagined dialogue.

    Fields:
      persona: number of the persona.
      turns: ("agent" or "human", text) in order.
      outcome: in [0, 1], by a verifier that inspects the end. It uses the persona's recorded facts
        and not the writer's description.
    """

    persona: int
    turns: Sequence[tuple[str, str]]
    outcome: float


Generator = Callable[[str, int, int], Sequence[tuple[Sequence[tuple[str, str]], float]]]
"""(description, persona, dialogues) -> (turns, outcome) of each."""


def imagine(
    generator: Generator, description: str, personas: int, dialogues: int
) -> list[Dialogue]:
    """Dialogues of `personas` personas, `dialogues` of each.

    Args:
      generator: a model or a script, any callable.
      description: the task: who talks, the agent's aim.
      personas: number of personas.
      dialogues: of each persona.
    Raises:
      ValueError: a turn of a third speaker, or an outcome outside [0, 1].
    """
    found = []
    for persona in range(personas):
        for turns, outcome in generator(description, persona, dialogues):
            others = {who for who, _ in turns} - {"agent", "human"}
            if others:
                raise ValueError(
                    f"imagine: turns must be of 'agent' or 'human', got {sorted(others)}"
                )
            if not 0 <= outcome <= 1:
                raise ValueError(f"imagine: outcome must be in [0, 1], got {outcome}")
            found.append(Dialogue(persona, tuple(turns), float(outcome)))
    return found


def split_by_persona(
    dialogues: Sequence[Dialogue], fraction: float, seed: int = 0
) -> tuple[list[Dialogue], list[Dialogue]]:
    """Dialogues of some personas, and those of the others: no persona is in both.

    Args:
      fraction: fraction of the personas in the first part; rounded.
    """
    personas = sorted({dialogue.persona for dialogue in dialogues})
    order = np.random.default_rng(seed).permutation(personas)
    first = set(order[: round(fraction * len(personas))].tolist())
    parts = [], []
    for dialogue in dialogues:
        parts[dialogue.persona not in first].append(dialogue)
    return parts
