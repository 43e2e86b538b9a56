"""What occurs in responses: words that begin a second thought, formulas."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from rlvr_jax.experience.parts import Stage
from rlvr_jax.types.hyperparameters import Count
from rlvr_jax.types.parts import part

__all__ = ["equations", "find_formulas", "mark_triggers"]

_SIGNS = frozenset("0123456789=+*/^<>≤≥")
_ENDS = ".,;:!?"
_MATHS = re.compile(r"\$([^$\n]{1,200})\$|\\\(([^\n]{1,200}?)\\\)|\\\[(.{1,400}?)\\\]", re.DOTALL)


@part(writes=frozenset({"trigger"}), by_row=True)
def mark_triggers(words: Sequence[str]) -> Stage:
    """Marks where the likeliest token was one of a list of words, whatever was drawn.

    A word counts in small letters and with a capital, with a blank before it and without, as far
    as it is one token.

    Args:
      words: such as "wait" and "however".
    Writes: trigger. Scores: each response once. Metrics: triggers (per row).
    Raises:
      ValueError: no words; when a run draws, words of which none is one token of the policy's
        tokenizer.
    Source: ARES, https://github.com/shawn0728/ARES.
    """
    words = tuple(words)
    if not words:
        raise ValueError("mark_triggers: words must be at least one, got none")

    def apply(batch, actor, state, turn):
        del turn
        spelled = [
            form for word in words for form in (word, f" {word}", word.title(), f" {word.title()}")
        ]
        tokens = [list(actor.encode(form)) for form in spelled]
        ids = sorted({own[0] for own in tokens if len(own) == 1})
        if not ids:
            raise ValueError(
                f"mark_triggers: words must be tokens of the policy's tokenizer, got {list(words)},"
                " of which none is one"
            )
        likeliest = actor.score(batch, ["max_id"])["max_id"]
        trigger = np.isin(likeliest, ids) & batch.rollouts.mask
        return (
            batch.with_rollouts(trigger=trigger),
            state,
            {"triggers": float(trigger.sum()) / len(batch)},
        )

    return apply


def equations(text: str) -> list[str]:
    """The formulas of a text, without blanks: what stands in $…$, \\(…\\) or \\[…\\], and runs of
    words with an equals sign, each of one letter or with a digit or a sign."""
    found = [next(filter(None, match)) for match in _MATHS.findall(text)]
    run: list[str] = []
    for word in [*_MATHS.sub(" ; ", text).split(), ";"]:
        bare = word.strip(_ENDS)
        if bare and (len(bare) == 1 or not _SIGNS.isdisjoint(bare)):
            run.append(bare)
            if bare == word:
                continue
        # Something must be said to be equal to something.
        if "=" in (formula := "".join(run))[1:-1]:
            found.append(formula)
        run = []
    return ["".join(formula.split()) for formula in found]


@part(writes=frozenset({"formulas"}), by_row=True)
def find_formulas(find: Callable[[str], Sequence[str]] = equations, most: Count = 16) -> Stage:
    """Gives the formulas of each response as ids: equal ones have the same id in the step.

    Rows that bring formulas keep them.

    Args:
      find: (text) -> formulas.
      most: of a response; further ones are left out.
    Writes: formulas. Metrics: formulas (per row).
    Raises:
      ValueError: no whole number of formulas, or less than 1.
    """

    def apply(batch, actor, state, turn):
        del actor, turn
        if batch.rollouts.formulas is not None:
            return batch, state, {}
        known: dict[str, int] = {}
        ids = np.full((len(batch), most), -1, np.int32)
        for row, response in enumerate(batch.responses):
            own = [known.setdefault(one, len(known)) for one in find(response.text)[:most]]
            ids[row, : len(own)] = own
        return (
            batch.with_rollouts(formulas=ids),
            state,
            {"formulas": float((ids >= 0).sum(axis=1).mean())},
        )

    return apply
