"""When responses branch: after rounds that the policy was less sure of than of their first one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from rlvr_jax.experience.asks import Ask
from rlvr_jax.experience.draws.trees.pieces import Pieces, first_samples
from rlvr_jax.experience.parts import Setting
from rlvr_jax.types.hyperparameters import Count, NonNegative, Unit
from rlvr_jax.types.parts import check_each


def first_entropy(
    topk_logp: np.ndarray, tokens: np.ndarray, window: int, vocabulary: int
) -> np.ndarray:
    """E = Σ over the first tokens of (-Σ p ln p over the recorded likeliest) / ln V; a sum, so that
    short rounds look sure.

    Args:
      topk_logp: [n, T, K], log-probs of the likeliest tokens.
      tokens: bool [n, T], those of the round.
      window: so many first ones of them count.
      vocabulary: V.
    Returns:
      [n].
    """
    spread = -np.sum(np.exp(topk_logp) * topk_logp, axis=-1)
    counted = tokens & (np.cumsum(tokens, axis=1) <= window)
    return np.where(counted, spread, 0).sum(axis=1) / np.log(vocabulary)


def branch_probability(
    delta: np.ndarray, weight: float, base: float = 0.5, damping: np.ndarray | float = 1.0
) -> np.ndarray:
    """P = clip(1 - (1 - base) / damping + weight ΔE, 0, 1), and 0 where damping is 0.

    Args:
      delta: ΔE, entropy of a round less that of its row's first one.
      weight: of ΔE.
      base: probability at ΔE = 0 without damping.
      damping: in [0, 1], what is left of the wish to branch.
    """
    damping = np.asarray(damping)
    safe = np.where(damping > 0, damping, 1)
    found = np.clip(1 - (1 - base) / safe + weight * np.asarray(delta), 0, 1)
    return np.where(damping > 0, found, 0.0)


@dataclass
class Row:
    """A response that is being written, round by round.

    Fields:
      group: place of its ask.
      sample: its number among the answers to the prompt.
      tip: the piece that it ends with; -1: none yet.
      cut: its tokens.
      first: entropy of its first round.
      rounds: entropies of all rounds that it has written itself.
      active: it goes on.
      forked: it began as a copy of another one.
    """

    group: int
    sample: int
    tip: int = -1
    cut: int = 0
    first: float | None = None
    rounds: list[float] = field(default_factory=list)
    active: bool = True
    forked: bool = False

    def fork(self, sample: int) -> Row:
        """A copy that goes on as another sample."""
        return replace(self, sample=sample, rounds=[], forked=True)


@dataclass(frozen=True)
class Branches:
    """How often responses branch; the fields are arguments of `branch_rounds`."""

    weight: float
    base: float
    penalty: float
    share: float
    sensitivity: float | None
    top: int
    window: int

    def check(self, draw: str) -> None:
        """Refuses numbers that cannot be.

        Args:
          draw: whose arguments they are, for the error.
        Raises:
          ValueError: names the argument.
        """
        check_each(Count, draw, top=self.top, window=self.window)
        check_each(NonNegative, draw, weight=self.weight, penalty=self.penalty)
        check_each(Unit, draw, base=self.base, share=self.share)
        if self.sensitivity is not None:
            check_each(NonNegative, draw, sensitivity=self.sensitivity)

    def check_vocabulary(self, draw: str, setting: Setting) -> None:
        """Refuses a vocabulary that is not known or smaller than `top`.

        Raises:
          ValueError: names both.
        """
        if setting.vocabulary < max(self.top, 2):
            raise ValueError(
                f"{draw}: top must be at most the vocabulary, which Setting tells, got {self.top}"
                f" and {setting.vocabulary}"
            )

    def entropies(self, pieces: Pieces, drawn: np.ndarray, vocabulary: int) -> np.ndarray:
        """Entropies of the rounds that some pieces are, [n]."""
        topk = pieces.batch.rollouts.drawn_topk_logp[drawn]
        return first_entropy(topk, pieces.new_tokens(drawn), self.window, vocabulary)

    def grow(
        self,
        asks: Sequence[Ask],
        pieces: Pieces,
        random: np.random.Generator,
        vocabulary: int,
        make: Callable[[int, int], Any],
        write: Callable[[Sequence[Any]], np.ndarray],
    ) -> list[Any]:
        """Writes as many responses as are asked for; gives their rows, those to an ask side by
        side.

        Args:
          random: what decides about forks.
          make: (group, sample) -> a row that begins at the prompt.
          write: writes a round of some rows, and gives its entropies.
        """
        rows: list[Any] = []
        forks, numbered = np.zeros(len(asks), int), first_samples(asks)

        def taken(group):
            return sum(row.group == group for row in rows)

        def begin(group):
            if taken(group) < asks[group].samples:
                rows.append(make(group, int(numbered[group]) + taken(group)))

        def advance(branches):
            active = [row for row in rows if row.active]
            for row, value in zip(active, write(active), strict=True):
                own_first = row.first is None
                row.first = value if own_first else row.first
                row.rounds.append(value)
                if own_first or not (branches and row.active):
                    continue
                group = row.group
                if taken(group) >= asks[group].samples:
                    continue
                damping = max(0.0, 1 - self.penalty * forks[group])
                chance = branch_probability(value - row.first, self.weight, self.base, damping)
                if random.random() < chance:
                    forks[group] += 1
                    rows.append(row.fork(int(numbered[group]) + taken(group)))

        groups = range(len(asks))
        wanted = [max(1, int(self.share * ask.samples)) for ask in asks]
        if self.sensitivity is not None:
            for group in groups:
                begin(group)
            while any(row.active for row in rows):
                advance(branches=False)
            wanted = self._from_probes(pieces, rows, asks, vocabulary)
        for group in groups:
            while taken(group) < min(wanted[group], asks[group].samples):
                begin(group)
        while True:
            busy = {row.group for row in rows if row.active}
            for group in groups:
                if group not in busy:
                    begin(group)
            if not any(row.active for row in rows):
                break
            advance(branches=True)
        return sorted(rows, key=lambda row: row.group)

    def _from_probes(self, pieces, rows, asks, vocabulary) -> list[int]:
        """How many responses begin at each prompt, by the one that was written first."""
        tips = np.array([row.tip for row in rows])
        source = pieces.source[tips]
        places = np.arange(source.shape[1])[None]
        rollouts = pieces.batch.rollouts
        topk = rollouts.drawn_topk_logp[source, places]
        drawn = rollouts.mask[source, places] & (places < rollouts.length[tips][:, None])
        root = first_entropy(topk, drawn, self.window, vocabulary)
        tool = np.array([np.mean(row.rounds) for row in rows])
        return [
            int(num_from_prompt(one, other, ask.samples, self.sensitivity, tolerance=1e-4))
            for one, other, ask in zip(root, tool, asks, strict=True)
        ]


def num_from_prompt(
    root: Float[Array, "..."],
    tool: Float[Array, "..."],
    total: int,
    sensitivity: float,
    tolerance: float = 0.0,
) -> Int[Array, "..."]:
    """m = min(⌊k σ(β (H_root - H_tool))⌋ + 1, k) of k rollouts; the others are branches.

    The larger the entropy at the start is relative to that after a tool's answer, the more rollouts
    start anew; at equal entropies half of them do, plus one.

    Args:
      root, tool: H_root and H_tool.
      total: k, at least 1.
      sensitivity: β.
      tolerance: added before rounding down, so that rounding errors do not decide.
    Source: Dong et al. 2025, https://arxiv.org/abs/2510.14545; the paper has no + 1.
    """
    number = total * jax.nn.sigmoid(sensitivity * (root - tool))
    return jnp.clip(jnp.floor(number + tolerance).astype(jnp.int32) + 1, 1, total)
