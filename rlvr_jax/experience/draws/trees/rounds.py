"""Responses that branch after rounds that the policy was less sure of than of the first one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from rlvr_jax.experience.asks import Ask
from rlvr_jax.experience.draws.trees.pieces import Pieces, first_samples
from rlvr_jax.experience.parts import Draw
from rlvr_jax.objectives import describe, num_from_prompt
from rlvr_jax.objectives.arguments import check_at_least, check_count, check_within

__all__ = ["branch_probability", "branch_rounds", "first_entropy"]


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
class _Row:
    """A response that is being written; `first` and `rounds` are entropies."""

    group: int
    sample: int
    tip: int = -1
    cut: int = 0
    first: float | None = None
    rounds: list[float] = field(default_factory=list)
    active: bool = True
    forked: bool = False


def branch_rounds(
    tokens: int = 64,
    weight: float = 0.2,
    base: float = 0.5,
    penalty: float = 0.0,
    share: float = 0.5,
    sensitivity: float | None = None,
    top: int = 10,
    window: int = 20,
) -> Draw:
    """Writes responses in rounds, and forks one after a round that was less sure than its first.

    Of the M samples of an ask, `share` · M (at least one) begin at the prompt. After each of its
    rounds but the first a response that goes on is forked, while there is room, with probability
    `branch_probability` of ΔE = E_round - E_first (`first_entropy`); a fork copies what was written
    and goes on with random numbers of its own. A prompt that has room and no active row begins
    anew, so that there are always M whole responses. Tokens that several rows share are trained in
    each.

    With `sensitivity` one response to each prompt is written first; from its first tokens and its
    rounds `num_from_prompt` says how many begin at the prompt, of which it is one.

    Args:
      tokens: of a round.
      weight: of ΔE in the probability (w).
      base: probability at ΔE = 0.
      penalty: each fork that a prompt has made already damps further ones by so much.
      share: of the samples, that begin at the prompt; without sensitivity.
      sensitivity: β of `num_from_prompt`; None: `share` holds.
      top: likeliest tokens that an entropy is of.
      window: first tokens of a round that its entropy is of.
    Metrics: forked_rows, begun_rows (at the prompt), rounds.
    Raises:
      ValueError: a number that is no count, a negative weight or penalty, or a base or share
        outside [0, 1]; when a run begins, a vocabulary that is not known or smaller than `top`.
    Source: ARPO and AEPO draw so (the links stand in the methods' cards).
    """
    check_count(1, "branch_rounds", tokens=tokens, top=top, window=window)
    check_at_least(0, "branch_rounds", weight=weight, penalty=penalty)
    check_within(0, 1, "branch_rounds", base=base, share=share)
    if sensitivity is not None:
        check_at_least(0, "branch_rounds", sensitivity=sensitivity)

    def init(setting):
        if setting.vocabulary < max(top, 2):
            raise ValueError(
                f"branch_rounds: top must be at most the vocabulary, which Setting tells, got {top}"
                f" and {setting.vocabulary}"
            )
        return ()

    def apply(asks, actor, state, turn):
        pieces = Pieces(actor, turn.key, {"record_top": top})
        random, vocabulary = turn.random(), turn.setting.vocabulary
        rows: list[_Row] = []
        forks, numbered = np.zeros(len(asks), int), first_samples(asks)

        def begin(group):
            taken = sum(row.group == group for row in rows)
            if taken < asks[group].samples:
                rows.append(_Row(group, numbered[group] + taken))

        def advance(branches):
            active = [row for row in rows if row.active]
            entropy = _next_round(pieces, asks, active, tokens, window, vocabulary)
            for row, value in zip(active, entropy, strict=True):
                own_first = row.first is None
                row.first = value if own_first else row.first
                row.rounds.append(value)
                taken = sum(other.group == row.group for other in rows)
                if own_first or not (branches and row.active):
                    continue
                if taken >= asks[row.group].samples:
                    continue
                damping = max(0.0, 1 - penalty * forks[row.group])
                chance = branch_probability(value - row.first, weight, base, damping)
                if random.random() < chance:
                    forks[row.group] += 1
                    sample = numbered[row.group] + taken
                    rows.append(_Row(row.group, sample, row.tip, row.cut, row.first, forked=True))

        groups = range(len(asks))
        wanted = [max(1, int(share * ask.samples)) for ask in asks]
        if sensitivity is not None:
            for group in groups:
                begin(group)
            while any(row.active for row in rows):
                advance(branches=False)
            wanted = _from_probes(pieces, rows, asks, window, vocabulary, sensitivity)
        for group in groups:
            while sum(row.group == group for row in rows) < min(wanted[group], asks[group].samples):
                begin(group)
        while True:
            busy = {row.group for row in rows if row.active}
            for group in groups:
                if group not in busy:
                    begin(group)
            if not any(row.active for row in rows):
                break
            advance(branches=True)
        order = sorted(range(len(rows)), key=lambda place: rows[place].group)
        told = {
            "forked_rows": float(sum(row.forked for row in rows)),
            "begun_rows": float(sum(not row.forked for row in rows)),
            "rounds": float(len(pieces)),
        }
        return pieces.responses([rows[place].tip for place in order], asks), state, told

    named = {"tokens": tokens, "weight": weight, "base": base, "penalty": penalty}
    named |= {"share": share, "sensitivity": sensitivity, "top": top, "window": window}
    return Draw(apply, describe("branch_rounds", **named), init)


def _next_round(
    pieces: Pieces,
    asks: Sequence[Ask],
    rows: Sequence[_Row],
    tokens: int,
    window: int,
    vocabulary: int,
) -> np.ndarray:
    """Writes a round of some rows; gives its entropies."""
    drawn = pieces.draw(
        [asks[row.group] for row in rows],
        [row.sample for row in rows],
        [row.tip for row in rows],
        [row.cut for row in rows],
        tokens,
    )
    rollouts = pieces.batch.rollouts
    entropy = first_entropy(
        rollouts.drawn_topk_logp[drawn], pieces.new_tokens(drawn), window, vocabulary
    )
    for row, tip, active in zip(rows, drawn, pieces.goes_on(drawn), strict=True):
        row.tip, row.cut, row.active = int(tip), int(rollouts.length[tip]), bool(active)
    return entropy


def _from_probes(pieces, rows, asks, window, vocabulary, sensitivity) -> list[int]:
    """How many responses begin at each prompt, by the one that was written first."""
    tips = np.array([row.tip for row in rows])
    source = pieces.source[tips]
    places = np.arange(source.shape[1])[None]
    rollouts = pieces.batch.rollouts
    topk = rollouts.drawn_topk_logp[source, places]
    drawn = rollouts.mask[source, places] & (places < rollouts.length[tips][:, None])
    root = first_entropy(topk, drawn, window, vocabulary)
    tool = np.array([np.mean(row.rounds) for row in rows])
    return [
        int(num_from_prompt(one, other, ask.samples, sensitivity, tolerance=1e-4))
        for one, other, ask in zip(root, tool, asks, strict=True)
    ]
