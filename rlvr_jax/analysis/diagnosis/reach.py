"""Held-out problems: did training widen the set of solvable problems, or sharpen the policy?

The input is two evaluations of the same problems with n samples each. Differences of pass@k have a
bootstrap over problems. Found and lost problems are counted at k = n / 2, where the n samples also
have the noise floor of two samplings of the first policy. At a larger k it needs 2k samples: with a
second sampling of the first policy, problems are counted at k = n.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rlvr_jax.analysis.boundary.base_vs_rl import base_vs_rl, crossing_interval
from rlvr_jax.analysis.boundary.math_beyond import upper_bound
from rlvr_jax.analysis.boundary.paired_problems import (
    changed_problems,
    holm,
    paired_gap,
    paired_table,
)
from rlvr_jax.analysis.boundary.pass_at_k import pass_at_k
from rlvr_jax.analysis.boundary.support_shrinkage import (
    Support,
    expected_support,
    noise_floor,
    unseen_mass,
)
from rlvr_jax.analysis.diagnosis.topics import (
    FEWEST_PROBLEMS,
    FIRST,
    LAST,
    Topic,
    curve,
    direction,
    interval_numbers,
    signed,
    signed_number,
)
from rlvr_jax.analysis.prompt_bootstrap import PromptInterval, bootstrap_mean

Counts = Mapping[str, Any]
"""A line of `held_out.jsonl`: step, n, prompts, correct, weights."""

_BINS = 8
_RESOLUTION = 0.01  # of pass@k, for the number of prompts that would tell it
_LEVEL = 0.05
_KINDS = {
    (1, 1): "The boundary moved out: more is solved at the first try and with many tries",
    (1, 0): "Sharpened: better at the first try, no change with many tries can be told",
    (1, -1): "Sharpened at a price: better at the first try, worse with many",
    (0, 1): "Wider: better with many tries, no change at the first can be told",
    (0, 0): "No change of what is solved can be told",
    (0, -1): "Narrower: worse with many tries, no change at the first can be told",
    (-1, 1): "Wider and duller: better with many tries, worse at the first",
    (-1, 0): "Worse at the first try, no change with many tries can be told",
    (-1, -1): "Worse, at the first try and with many",
}
_FIRST_TRY = {
    1: "Better at the first try",
    0: "No change at the first try can be told",
    -1: "Worse at the first try",
}


class _Solved(NamedTuple):
    """Correct samples of n per problem, of the first policy and the last, and their names."""

    before: np.ndarray
    after: np.ndarray
    n: int
    names: tuple[str, str]


def reach(
    first: Counts, last: Counts, names: tuple[str, str], again: Counts | None = None
) -> Topic:
    """Compares two evaluations of the same problems.

    Args:
      first, last: lines of `held_out.jsonl`.
      again: a second draw of the first policy, of the same size; None: there is none.
    """
    n = int(last["n"])
    if first["prompts"] != last["prompts"] or first["n"] != n:
        raise ValueError(
            f"reach: both evaluations must have sampled the same prompts {n} times, got"
            f" {len(first['prompts'])} prompts {first['n']} times and {len(last['prompts'])}"
            f" prompts {n} times"
        )
    before, after = np.asarray(first["correct"]), np.asarray(last["correct"])
    weights = np.asarray(first.get("weights") or np.ones(len(before)))
    topic = Topic("Reach")
    topic.numbers = {"samples": n, "problems": len(before)}
    half = n // 2
    gaps = {k: paired_gap(before, after, n, k, weights) for k in dict.fromkeys((1, half, n)) if k}
    topic.numbers["gaps"] = {f"pass@{k}": interval_numbers(gap) for k, gap in gaps.items()}
    topic.sentences.append(_verdict(gaps, names, n, len(before)))
    if half < 2:
        topic.missing.append(f"What many tries reach needs 4 samples per problem; there are {n}.")
    solved = _Solved(before, after, n, names)
    _crossing(topic, solved)
    second = None if again is None else np.asarray(again["correct"])
    if second is not None:
        _support(topic, solved, n, before + second, 2 * n)
    elif half:
        _support(topic, solved, half, before, n)
    _changed(topic, solved)
    _unsolved(topic, solved, second)
    _plots(topic, solved)
    return topic


def _verdict(gaps: dict[int, PromptInterval], names: tuple[str, str], n: int, problems: int) -> str:
    wide = max(k for k in gaps if k <= max(1, n // 2))
    one, many = gaps[1], gaps[wide]
    changes = f"pass@1 {signed(one)}"
    size = f"{names[1]} less {names[0]}, 95 % over {problems} problems, {n} samples each"
    if wide > 1:
        changes += f", pass@{wide} {signed(many)}"
        verdict = _KINDS[direction(one), direction(many)]
    else:
        verdict = _FIRST_TRY[direction(one)]
    verdict += f": {changes} ({size})."
    half_width = (many.high - many.low) / 2
    if problems < FEWEST_PROBLEMS:
        verdict += f" For a verdict {FEWEST_PROBLEMS} problems at least are wanted."
    elif direction(many) == 0 and half_width > _RESOLUTION:
        wanted = int(np.ceil(problems * (half_width / _RESOLUTION) ** 2))
        verdict += (
            f" To tell a difference of {_RESOLUTION:g} in pass@{wide}, about {wanted:,} problems"
            " are wanted."
        )
    return verdict


def _crossing(topic: Topic, solved: _Solved) -> None:
    before, after, n, names = solved
    found = crossing_interval(before, after, n)
    topic.numbers["crossing"] = {
        "k": found.k,
        "low": found.low if np.isfinite(found.low) else None,
        "high": found.high if np.isfinite(found.high) else None,
        "fraction_of_samples": found.fraction,
    }
    fraction = f"{100 * found.fraction:.0f} % of the draws of problems"
    if found.k:
        sentence = (
            f"The curve of {names[0]} reaches that of {names[1]} at k = {found.k}; it does in"
            f" {fraction}, there between {found.low:.0f} and {found.high:.0f}"
            " (unweighted problems)."
        )
    elif after.mean() > before.mean():
        sentence = (
            f"The curve of {names[0]} stays below that of {names[1]} up to k = {n}; it reaches it"
            f" in {fraction}."
        )
    else:
        sentence = f"The curves do not cross: {names[1]} does not lead at k = 1 (unweighted)."
    topic.sentences.append(sentence)


def _support(topic: Topic, solved: _Solved, k: int, sampled: np.ndarray, size: int) -> None:
    """Counts at k samples; `sampled` are correct samples of the first policy, of `size`, at least
    2k."""
    before, after, n, names = solved
    counts, floor = expected_support(before, after, n, k), noise_floor(sampled, size, k)
    once, other = pass_at_k(n, before, k), pass_at_k(n, after, k)
    noise = pass_at_k(size, sampled, 2 * k) - pass_at_k(size, sampled, k)
    problems = len(once)
    even = np.ones(problems)
    excess = {
        "found": bootstrap_mean([problems * ((1 - once) * other - noise)], even),
        "lost": bootstrap_mean([problems * (once * (1 - other) - noise)], even),
    }
    topic.numbers["support"] = {
        "k": k,
        **_measures(counts),
        "floor": _measures(floor),
        **{f"{name}_above_floor": interval_numbers(each) for name, each in excess.items()},
    }
    words = {1: "more than", -1: "fewer than", 0: "not to be told from"}
    parts = [
        f"{value:.1f} {name}, {words[direction(excess[name])]} the {floor.expanded:.1f} of chance"
        f" ({signed(excess[name])})"
        for name, value in (("found", counts.expanded), ("lost", counts.shrunk))
    ]
    unseen = unseen_mass(k)
    below = f" Solve rates below {unseen:.2g} are not seen." if unseen < 1 else ""
    topic.sentences.append(
        f"With {k} samples, of {problems} problems {counts.preserved:.1f} are solved by both,"
        f" {parts[0]}, and {parts[1]}. Chance is what a second draw of {names[0]} would find and"
        f" lose. Retention {counts.retention:.3f} (a second draw: {floor.retention:.3f}),"
        f" discovery {counts.discovery:.3f} ({floor.discovery:.3f}), net change"
        f" {signed_number(counts.net_change)}.{below}"
    )
    topic.missing.append(
        f"A floor at k = {size} needs {2 * size} samples per problem; there are {size}."
    )
    rows = []
    for name, each in ((f"{names[0]} → {names[1]}", counts), (f"{names[0]} again", floor)):
        ratios = (each.retention, each.discovery, each.score, each.net_change)
        rows.append([name, *(f"{x:.1f}" for x in each), *(f"{x:.3f}" for x in ratios)])
    head = ["", "kept", "found", "lost", "neither", "SRR", "NDR", "SDS", "NSCR"]
    topic.tables.append((f"Support with {k} samples", head, rows))


def _measures(counts: Support) -> dict[str, float]:
    names = ("retention", "discovery", "score", "net_change")
    return counts._asdict() | {name: getattr(counts, name) for name in names}


def _changed(topic: Topic, solved: _Solved) -> None:
    before, after, n, _ = solved
    certain = holm(changed_problems(before, after, n, n)) < _LEVEL
    better, worse = int(np.sum(certain & (after > before))), int(np.sum(certain & (after < before)))
    topic.numbers["changed_problems"] = {"better": better, "worse": worse, "level": _LEVEL}
    topic.sentences.append(
        f"One by one, {better} problems got better and {worse} worse for certain (Fisher's exact"
        f" test, Holm-corrected over {len(before)} problems at {_LEVEL:g})."
    )


def _unsolved(topic: Topic, solved: _Solved, again: np.ndarray | None) -> None:
    """Problems that are solved in none of n samples; `again`: correct ones of a second draw."""
    before, after, n, names = solved
    table = paired_table(before > 0, after > 0)
    number, reached = int(np.sum(before == 0)), table.second_only
    never, always = (int(np.sum(after == count)) for count in (0, n))
    topic.numbers["unsolved"] = {"first": number, "reached": reached, "last": never}
    topic.numbers["always_solved"] = {"first": int(np.sum(before == n)), "last": always}
    topic.numbers["solved_at_all"] = table._asdict()
    if number:
        sentence = (
            f"Of {number} problems that {names[0]} solved in none of {n} samples (each solve rate"
            f" below {upper_bound(n):.3f} at 95 %), {names[1]} solves {reached} at least once"
        )
        if again is None:
            topic.missing.append(
                f"How many of the {number} unsolved problems {names[0]} solves when it is drawn"
                f" again needs {n} more samples of it."
            )
        else:
            floor = int(np.sum((before == 0) & (again > 0)))
            topic.numbers["unsolved"]["floor"] = floor
            sentence += f", a second draw of {names[0]} {floor}"
        topic.sentences.append(
            f"{sentence}. Read their solutions: a verifier's errors look the same."
        )
    topic.sentences.append(
        f"Problems that are never solved: {number} → {never}; always:"
        f" {int(np.sum(before == n))} → {always}. Solved at all by {names[1]} alone {reached}, by"
        f" {names[0]} alone {table.first_only} (exact sign test p = {table.p_value:.2g})."
    )


def _plots(topic: Topic, solved: _Solved) -> None:
    before, after, n, names = solved
    found = base_vs_rl(before, after, n, bins=min(_BINS, n))
    note = f"n = {n} samples, {len(before)} problems, unweighted"
    ks = np.unique([*(2 ** np.arange(n.bit_length())), n])
    curves = (found.curve_base, found.curve_rl)
    lines = {
        name: np.stack([ks, values[ks - 1]], axis=1)
        for name, values in zip(names, curves, strict=True)
    }
    reached = curve("pass@k against k", "share of problems", note, "", lines, (FIRST, LAST))
    axes = {"x": {"label": "k, samples allowed", "log2": True}, "y": [0, 1]}
    topic.charts.append(reached | axes)
    bins = len(found.histogram_rl)
    middle = (np.arange(bins) + 0.5) / bins
    lines = {
        name: np.stack([middle, values], axis=1)
        for name, values in zip(names, (found.histogram_base, found.histogram_rl), strict=True)
    }
    note = f"{bins} bins of equal width, n = {n} samples"
    topic.charts.append(
        curve("Problems by solve rate", "problems", note, "rate", lines, (FIRST, LAST), zero=True)
    )
