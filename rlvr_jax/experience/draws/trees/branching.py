"""Responses that fork after rounds of higher entropy than their first round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from rlvr_jax.experience.draws.trees.segments import Segments, first_samples
from rlvr_jax.experience.parts import Draw, RunInfo
from rlvr_jax.experience.requests import SampleRequest
from rlvr_jax.types.hyperparameters import Count, NonNegative, Unit
from rlvr_jax.types.parts import part


def top_entropy(topk_logp: np.ndarray) -> np.ndarray:
    """H = -Σ p ln p over the recorded most probable tokens, not renormalized; [..., K] -> [...]."""
    return -np.sum(np.exp(topk_logp) * topk_logp, axis=-1)


def first_entropy(
    topk_logp: np.ndarray, tokens: np.ndarray, window: int, vocabulary: int
) -> np.ndarray:
    """E = Σ over the first tokens of a round of their `top_entropy` / ln V, [n].

    A short round has a low E, because E is a sum.

    Args:
      topk_logp: [n, T, K], log-probs of the most probable tokens.
      tokens: bool [n, T], those of the round.
      window: number of first tokens of the round that count.
      vocabulary: number of tokens of the vocabulary (V).
    """
    counted = tokens & (np.cumsum(tokens, axis=1) <= window)
    return np.where(counted, top_entropy(topk_logp), 0).sum(axis=1) / np.log(vocabulary)


def branch_probability(
    delta: np.ndarray, weight: float, base: float = 0.5, damping: np.ndarray | float = 1.0
) -> np.ndarray:
    """P = clip(1 - (1 - base) / damping + weight ΔE, 0, 1), and 0 where damping is 0.

    Args:
      delta: ΔE, entropy of a round minus that of the first round of its row.
      weight: factor of the change of entropy (ΔE), per nat.
      base: probability at ΔE = 0 without damping.
      damping: in [0, 1]; 1: none.
    """
    damping = np.asarray(damping)
    safe = np.where(damping > 0, damping, 1)
    found = np.clip(1 - (1 - base) / safe + weight * np.asarray(delta), 0, 1)
    return np.where(damping > 0, found, 0.0)


@dataclass
class Row:
    """A response that is written round by round.

    Fields:
      group: position of its request.
      sample: number of the response among those to the prompt.
      tip: its last segment; -1: none yet.
      cut: number of its tokens.
      first: entropy of its first round.
      rounds: entropies of all rounds that it wrote itself, not copied.
      active: whether it continues.
      forked: whether it began as a copy of another row.
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
        """A copy that continues as another sample."""
        return replace(self, sample=sample, rounds=[], forked=True)


def advance(
    segments: Segments,
    requests: Sequence[SampleRequest],
    rows: Sequence[Row],
    limit: int | None = None,
    until: Sequence[int] | None = None,
    **given: Any,
) -> np.ndarray:
    """Samples the next segment of each row; returns the numbers of the segments, int [n].

    Args:
      segments: receives the new segments.
      requests: request of each row.
      rows: rows to continue.
      limit, given: as for `Segments.draw`.
      until: for each row the position at which its response is truncated; None: nowhere.
    """
    sampled = segments.draw(
        [requests[row.group] for row in rows],
        [row.sample for row in rows],
        [row.tip for row in rows],
        [row.cut for row in rows],
        limit,
        **given,
    )
    if until is not None:
        segments.cut(sampled, until)
    length = segments.batch.rollouts.length[sampled]
    for row, tip, cut in zip(rows, sampled.tolist(), length.tolist(), strict=True):
        row.tip, row.cut = tip, cut
    return sampled


@dataclass(frozen=True)
class Branches:
    """How often responses fork; the fields are arguments of `branch_rounds`."""

    weight: float
    base: float
    penalty: float
    fraction: float
    sensitivity: float | None
    top: int
    window: int

    def check_vocabulary(self, draw: str, setting: RunInfo) -> None:
        """Refuses a vocabulary that is unknown or smaller than `top`.

        Raises:
          ValueError: names both.
        """
        if setting.vocabulary < max(self.top, 2):
            raise ValueError(
                f"{draw}: top must be at most the vocabulary (RunInfo.vocabulary), got {self.top}"
                f" and {setting.vocabulary}"
            )

    def entropies(self, segments: Segments, sampled: np.ndarray, vocabulary: int) -> np.ndarray:
        """Entropies of the rounds in some segments, [n]."""
        topk = segments.batch.rollouts.records["sampled_topk_logp"][sampled]
        return first_entropy(topk, segments.new_tokens(sampled), self.window, vocabulary)

    def grow(
        self,
        requests: Sequence[SampleRequest],
        segments: Segments,
        random: np.random.Generator,
        vocabulary: int,
        make: Callable[[int, int], Any],
        write: Callable[[Sequence[Any]], np.ndarray],
    ) -> tuple[list[Any], Counter[str]]:
        """Writes all requested responses; returns their rows, group by group, and counts.

        Args:
          random: decides on forks.
          make: (group, sample) -> a row that begins at the prompt.
          write: writes a round of some rows, and returns its entropies.
        """
        rows: list[Any] = []
        forks, numbered = np.zeros(len(requests), int), first_samples(requests)

        def taken(group):
            return sum(row.group == group for row in rows)

        def begin(group):
            if taken(group) < requests[group].samples:
                rows.append(make(group, int(numbered[group]) + taken(group)))

        def step(branches):
            active = [row for row in rows if row.active]
            for row, value in zip(active, write(active), strict=True):
                own_first = row.first is None
                row.first = value if own_first else row.first
                row.rounds.append(value)
                group = row.group
                if own_first or not (branches and row.active):
                    continue
                if taken(group) >= requests[group].samples:
                    continue
                damping = max(0.0, 1 - self.penalty * forks[group])
                chance = branch_probability(value - row.first, self.weight, self.base, damping)
                if random.random() < chance:
                    forks[group] += 1
                    rows.append(row.fork(int(numbered[group]) + taken(group)))

        groups = range(len(requests))
        wanted = [max(1, int(self.fraction * request.samples)) for request in requests]
        if self.sensitivity is not None:
            for group in groups:
                begin(group)
            while any(row.active for row in rows):
                step(branches=False)
            wanted = self._from_probes(segments, rows, requests, vocabulary)
        for group in groups:
            while taken(group) < min(wanted[group], requests[group].samples):
                begin(group)
        while True:
            busy = {row.group for row in rows if row.active}
            for group in groups:
                if group not in busy:
                    begin(group)
            if not any(row.active for row in rows):
                break
            step(branches=True)
        forked = sum(row.forked for row in rows)
        counts = Counter(forked_rows=forked, begun_rows=len(rows) - forked)
        return sorted(rows, key=lambda row: row.group), counts

    def _from_probes(self, segments, rows, requests, vocabulary) -> list[int]:
        """Number of responses that begin at each prompt, from the one that was written first."""
        tips = np.array([row.tip for row in rows])
        source = segments.source[tips]
        places = np.arange(source.shape[1])[None]
        rollouts = segments.batch.rollouts
        topk = rollouts.records["sampled_topk_logp"][source, places]
        sampled = rollouts.mask[source, places] & (places < rollouts.length[tips][:, None])
        root = first_entropy(topk, sampled, self.window, vocabulary)
        tool = np.array([np.mean(row.rounds) for row in rows])
        return [
            int(num_from_prompt(one, other, request.samples, self.sensitivity, tolerance=1e-4))
            for one, other, request in zip(root, tool, requests, strict=True)
        ]


@part
def branch_rounds(
    tokens: Count = 64,
    weight: NonNegative = 0.2,
    base: Unit = 0.5,
    penalty: NonNegative = 0.0,
    fraction: Unit = 0.5,
    sensitivity: NonNegative | None = None,
    top: Count = 10,
    window: Count = 20,
) -> Draw:
    """Writes responses in rounds; one may fork after a round of higher entropy than its first.

    At first `fraction` · M (at least one) of the M samples of a request begin at the prompt. While
    the group is incomplete, a response that continues is forked after each further round, with
    probability `branch_probability` of ΔE = E_round - E_first (`first_entropy`). A fork copies the
    tokens so far and has different random numbers. If a prompt has fewer than M responses and no
    active row, a row begins at the prompt, so there are always M complete responses. Tokens that
    are common to several rows are trained in each.

    With `sensitivity`, one response to each prompt is written first. `num_from_prompt` computes
    from its first tokens and its rounds how many responses begin at the prompt, including this one.

    Args:
      tokens: number of tokens in a round.
      weight: factor of ΔE in the probability (w).
      base: probability at ΔE = 0.
      penalty: damping of later forks by each fork of the prompt.
      fraction: fraction of the samples that begin at the prompt, without sensitivity.
      sensitivity: β of `num_from_prompt`; None: `fraction` is used.
      top: number of most probable tokens in the sum of an entropy.
      window: number of first tokens of a round in the sum of its entropy.
    Metrics: forked_rows (rows that fork from another one), begun_rows (rows that begin at the
      prompt), rounds (sampled rounds).
    Source: ARPO and AEPO (the links are in the methods' cards).
    """
    branches = Branches(weight, base, penalty, fraction, sensitivity, top, window)

    def init(setting):
        branches.check_vocabulary("branch_rounds", setting)
        return ()

    def apply(requests, actor, state, turn):
        segments = Segments(actor, turn.key, {"record_top": top})
        vocabulary = turn.setting.vocabulary

        def write(rows):
            sampled = advance(segments, requests, rows, tokens)
            for row, active in zip(rows, segments.goes_on(sampled), strict=True):
                row.active = bool(active)
            return branches.entropies(segments, sampled, vocabulary)

        rows, counts = branches.grow(requests, segments, turn.random(), vocabulary, Row, write)
        counts["rounds"] = len(segments)
        batch = segments.responses([row.tip for row in rows], requests)
        return batch, state, {name: float(value) for name, value in counts.items()}

    return Draw(apply, init)


def num_from_prompt(
    root: Float[Array, "..."],
    tool: Float[Array, "..."],
    total: int,
    sensitivity: float,
    tolerance: float = 0.0,
) -> Int[Array, "..."]:
    """m = min(⌊k σ(β (H_root - H_tool))⌋ + 1, k) of k rollouts; the others are branches.

    Fewer rollouts begin at the prompt if the entropy after a tool's reply exceeds that at the
    start. At equal entropies half of them begin there, plus one.

    Args:
      root: H_root, entropy at the start of the response.
      tool: H_tool, entropy after the replies of tools.
      total: k, at least 1.
      sensitivity: factor of the difference of the entropies (β).
      tolerance: added before rounding down, so that rounding errors have no effect.
    Source: Dong et al. 2025, https://arxiv.org/abs/2510.14545; the paper has no + 1.
    """
    number = total * jax.nn.sigmoid(sensitivity * (root - tool))
    return jnp.clip(jnp.floor(number + tolerance).astype(jnp.int32) + 1, 1, total)
