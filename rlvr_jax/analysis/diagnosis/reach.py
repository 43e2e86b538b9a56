"""Held-out problems: did training widen the set of solvable problems, or sharpen the policy?

The input is two evaluations of the same problems with n samples each. Differences of pass@k have a
bootstrap interval over problems. The noise floor of found and lost problems needs 2k samples of the
first policy. Problems are therefore counted at k = n / 2, or at k = n with a second sampling.
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
    Card,
    Table,
    Topic,
    curve,
    direction,
    interval_numbers,
    p_value,
    signed,
)
from rlvr_jax.analysis.prompt_bootstrap import PromptInterval, bootstrap_mean

Counts = Mapping[str, Any]
"""A line of `held_out.jsonl`: step, n, prompts, correct, weights."""

_BINS = 8
_RESOLUTION = 0.01  # difference of pass@k for which the required number of prompts is computed
_LEVEL = 0.05
_KINDS = {
    (1, 1): "Solves more",
    (1, 0): "Sharpened",
    (1, -1): "Sharpened at a price",
    (0, 1): "Wider",
    (0, 0): "No change detected",
    (0, -1): "Narrower",
    (-1, 1): "Wider, but less accurate",
    (-1, 0): "Less accurate",
    (-1, -1): "Solves less",
}
"""Names of the directions of pass@1 and of pass@k."""
_DIRECTIONS = {1: "is higher", 0: "has no detected change", -1: "is lower"}


class _Solved(NamedTuple):
    """Correct samples of n per problem, of the first and the last policy, with their names."""

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
      names: names of both policies.
      again: a second sampling of the first policy, of equal size; None: it is missing.
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
    topic = Topic("Solved problems")
    topic.numbers = {"samples": n, "problems": len(before)}
    half = n // 2
    gaps = {k: paired_gap(before, after, n, k, weights) for k in dict.fromkeys((1, half, n)) if k}
    topic.numbers["gaps"] = {f"pass@{k}": interval_numbers(gap) for k, gap in gaps.items()}
    kind = _verdict(topic, gaps, names)
    for place, k in (("first try", 1), ("many tries", half))[: 1 + (half > 1)]:
        rates = [np.average(pass_at_k(n, each, k), weights=weights) for each in (before, after)]
        value = " → ".join(f"{rate:.3f}" for rate in rates)
        topic.cards[place] = Card(f"pass@{k}", value, f"change {signed(gaps[k])}")
    if half < 2:
        topic.missing.append(f"pass@k with k > 1 needs 4 samples per problem; there are {n}.")
    solved = _Solved(before, after, n, names)
    _crossing(topic, solved)
    second = None if again is None else np.asarray(again["correct"])
    if second is not None:
        _support(topic, solved, n, before + second, 2 * n)
    elif half:
        _support(topic, solved, half, before, n)
    better, worse = _changed(topic, solved)
    note = f"single problems: {better} better, {worse} worse"
    topic.cards["change"] = Card("What changed", kind, note)
    _unsolved(topic, solved, second)
    _plots(topic, solved)
    return topic


def _verdict(topic: Topic, gaps: dict[int, PromptInterval], names: tuple[str, str]) -> str:
    """Adds the directions of pass@1 and pass@k, and returns the name of their combination."""
    n, problems = topic.numbers["samples"], topic.numbers["problems"]
    wide = max(k for k in gaps if k <= max(1, n // 2))
    shown = dict.fromkeys((1, wide))
    parts = [f"pass@{k} {_DIRECTIONS[direction(gaps[k])]} ({signed(gaps[k])})" for k in shown]
    kind = _KINDS[direction(gaps[1]), direction(gaps[wide])]
    topic.sentences.append(f"{kind}: {', '.join(parts)}.")
    topic.sentences.append(
        f"Differences are {names[1]} minus {names[0]}, over {problems} problems with {n} samples"
        " each."
    )
    many = gaps[wide]
    half_width = (many.high - many.low) / 2
    if problems < FEWEST_PROBLEMS:
        topic.missing.append(f"The direction of pass@k needs at least {FEWEST_PROBLEMS} problems.")
    elif direction(many) == 0 and half_width > _RESOLUTION:
        needed = int(np.ceil(problems * (half_width / _RESOLUTION) ** 2))
        topic.missing.append(
            f"A difference of {_RESOLUTION:g} in pass@{wide} needs about {needed:,} problems."
        )
    return kind


def _crossing(topic: Topic, solved: _Solved) -> None:
    before, after, n, names = solved
    found = crossing_interval(before, after, n)
    topic.numbers["crossing"] = {
        "k": found.k,
        "low": found.low if np.isfinite(found.low) else None,
        "high": found.high if np.isfinite(found.high) else None,
        "fraction_of_samples": found.fraction,
    }
    fraction = f"{100 * found.fraction:.0f} % of the bootstrap samples"
    if found.k:
        sentence = (
            f"The pass@k curves cross at k = {found.k}: from there {names[0]} solves as much or"
            f" more. They cross in {fraction}, between k = {found.low:.0f} and {found.high:.0f}."
        )
    elif after.mean() > before.mean():
        sentence = (
            f"The pass@k curves do not cross up to k = {n}: {names[1]} stays above. They cross in"
            f" {fraction}."
        )
    else:
        sentence = f"The pass@k curves do not cross, because {names[1]} does not lead at k = 1."
    topic.sentences.append(sentence)


def _support(topic: Topic, solved: _Solved, k: int, sampled: np.ndarray, size: int) -> None:
    """Counts at k samples. `sampled`: correct samples of the first policy among `size` ≥ 2k."""
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
    words = {1: "more than", -1: "fewer than", 0: "not distinguishable from"}
    new, old = (
        f"{value:.3g}, {words[direction(excess[name])]} {floor.expanded:.3g} by chance (difference"
        f" {signed(excess[name])})"
        for name, value in (("found", counts.expanded), ("lost", counts.shrunk))
    )
    topic.sentences += [
        f"With {k} samples both policies solve {counts.preserved:.3g} of {problems} problems"
        " (expected numbers).",
        f"Solved only by {names[1]}: {new}.",
        f"Solved only by {names[0]}: {old}. Chance is a second sampling of {names[0]}.",
    ]
    if (unseen := unseen_mass(k)) < 1:
        topic.sentences.append(f"With {k} samples, solve rates below {unseen:.2g} are not seen.")
    topic.missing.append(
        f"Chance at k = {size} needs {2 * size} samples per problem; there are {size}."
    )
    rows = []
    for name, each in ((f"{names[0]} → {names[1]}", counts), (f"{names[0]} again", floor)):
        ratios = (each.retention, each.discovery, each.score, each.net_change)
        rows.append([name, *(f"{x:.3g}" for x in each), *(f"{x:.3f}" for x in ratios)])
    head = ["", "by both", "new", "lost", "by none", "retention", "discovery", "score"]
    note = (
        "Expected numbers of problems. Retention (SRR): fraction of the first policy's problems"
        " that the second one also solves. Discovery (NDR): fraction of the second policy's"
        " problems that the first one does not solve. Score (SDS): their harmonic mean. Net change"
        " (NSCR): new minus lost, as a fraction of all solved problems."
    )
    topic.tables.append(
        Table(f"Problems solved with {k} samples", [*head, "net change"], rows, note)
    )


def _measures(counts: Support) -> dict[str, float]:
    names = ("retention", "discovery", "score", "net_change")
    return counts._asdict() | {name: getattr(counts, name) for name in names}


def _changed(topic: Topic, solved: _Solved) -> tuple[int, int]:
    """Numbers of single problems with a significantly higher and lower pass rate."""
    before, after, n, _ = solved
    certain = holm(changed_problems(before, after, n, n)) < _LEVEL
    better, worse = int(np.sum(certain & (after > before))), int(np.sum(certain & (after < before)))
    topic.numbers["changed_problems"] = {"better": better, "worse": worse, "level": _LEVEL}
    topic.sentences.append(
        f"Single problems: {better} better and {worse} worse for certain, of {len(before)}"
        f" (Fisher's exact test with Holm's correction, level {_LEVEL:g})."
    )
    return better, worse


def _unsolved(topic: Topic, solved: _Solved, again: np.ndarray | None) -> None:
    """Problems that no sample solves. `again`: correct samples of a second sampling."""
    before, after, n, names = solved
    table = paired_table(before > 0, after > 0)
    number, reached = int(np.sum(before == 0)), table.second_only
    never, always = (int(np.sum(after == count)) for count in (0, n))
    topic.numbers["unsolved"] = {"first": number, "reached": reached, "last": never}
    topic.numbers["always_solved"] = {"first": int(np.sum(before == n)), "last": always}
    topic.numbers["solved_at_all"] = table._asdict()
    if number:
        sentence = f"Of these {names[1]} solves {reached} at least once"
        if again is None:
            topic.missing.append(
                f"How many of the {number} unsolved problems a second sampling of {names[0]} solves"
                f" needs {n} more samples of each."
            )
        else:
            floor = int(np.sum((before == 0) & (again > 0)))
            topic.numbers["unsolved"]["floor"] = floor
            sentence += f", a second sampling of {names[0]} {floor}"
        topic.sentences += [
            f"Solved by {names[0]} in none of {n} samples: {number} problems (solve rate below"
            f" {upper_bound(n):.3f} at 95 %).",
            f"{sentence}. Read these solutions: an error of the verifier looks the same.",
        ]
    topic.sentences += [
        f"Never solved: {number} → {never} problems. Always solved: {int(np.sum(before == n))} →"
        f" {always}.",
        f"Solved at least once only by {names[1]}: {reached}, only by {names[0]}:"
        f" {table.first_only} (exact sign test, {p_value(table.p_value)}).",
    ]


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
    reached = curve("pass@k against k", "fraction of problems", note, "", lines, (FIRST, LAST))
    axes = {"x": {"label": "k, number of samples", "log2": True}, "y": [0, 1]}
    topic.charts.append(reached | axes)
    bins = len(found.histogram_rl)
    middle = (np.arange(bins) + 0.5) / bins
    lines = {
        name: np.stack([middle, values], axis=1)
        for name, values in zip(names, (found.histogram_base, found.histogram_rl), strict=True)
    }
    note = f"{bins} bins of equal width, n = {n} samples"
    topic.charts.append(
        curve(
            "Problems by solve rate",
            "problems",
            note,
            "solve rate",
            lines,
            (FIRST, LAST),
            zero=True,
        )
    )
