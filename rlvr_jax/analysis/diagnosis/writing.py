"""The stored responses of a run: entropy by position and word, confidence, diversity of words.

The data are the policy's tokens in the first and the last step with stored responses, without
tokens of a tool or a teacher. The responses are few, and the two steps have different prompts. The
sentences therefore describe these texts only; conclusions use the held-out numbers.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rlvr_jax.analysis.diagnosis.topics import FIRST, LAST, Table, Topic, curve
from rlvr_jax.analysis.entropy.entropy_patterns import forks, position_profile, word_entropies
from rlvr_jax.analysis.entropy.token_classes import mean_by_class
from rlvr_jax.analysis.run_directory import Run
from rlvr_jax.analysis.samples import number_or
from rlvr_jax.analysis.texts.calibration import calibration, token_confidence
from rlvr_jax.analysis.texts.diversity_metrics import distinct

_PARTS = 8
_WORDS = 12
_FEWEST = 5  # least number of occurrences of a shown word
_FEWEST_ROWS = 20  # least number of responses for a sentence about calibration
_BINS = 5


class _Rows(NamedTuple):
    """The responses of one step as arrays [B, T]; `logp` may be None."""

    step: int
    tokens: list[list[str]]
    entropy: np.ndarray
    logp: np.ndarray | None
    mask: np.ndarray
    outcome: np.ndarray


def writing(run: Run, against_start: bool = True) -> Topic:
    """Topic of the stored responses.

    Args:
      against_start: the first step has the colour of the initial policy. False: both steps have the
        colour of the run, and differ by their strokes.
    """
    topic = Topic("Stored responses")
    steps = run.sample_steps()
    stored = [_rows(step, run.samples(step)) for step in dict.fromkeys(steps[:1] + steps[-1:])]
    stored = [rows for rows in stored if rows is not None]
    if not stored:
        topic.missing.append("Texts need responses in samples/ with their tokens' entropies.")
        return topic
    profiles, measured = {}, []
    budget = min(int(rows.mask.sum()) for rows in stored)
    policies = (FIRST, LAST)[-len(stored) :] if against_start else ()
    for rows in stored:
        own = _measure(rows, budget)
        profiles[f"step {rows.step}"] = own.pop("profile")
        topic.numbers[f"step_{rows.step}"] = own
        measured.append(own)
    topic.sentences.append(_sentence(stored, measured))
    topic.sentences += _confidence(stored[-1], measured[-1])
    title, x = "Entropy by position in the response", "fraction of the response"
    sizes = " and ".join(str(each["tokens"]) for each in measured)
    note = f"means over n = {sizes} tokens, in eighths of the length"
    topic.charts.append(curve(title, "nats", note, x, profiles, policies, zero=True))
    words = word_entropies(
        stored[-1].tokens,
        [row[kept] for row, kept in zip(stored[-1].entropy, stored[-1].mask, strict=True)],
        _FEWEST,
    )
    if words:
        shown = [[repr(w.word), w.number, f"{w.entropy:.3f}"] for w in words[:_WORDS]]
        heading = f"Words of highest entropy at step {stored[-1].step} ({_FEWEST} times or more)"
        topic.tables.append(Table(heading, ["word", "times", "mean entropy, nats"], shown))
    topic.tables.append(_classes(stored, topic.numbers))
    return topic


def _classes(stored: Sequence[_Rows], numbers: dict[str, Any]) -> Table:
    """Entropy by class of token, at each step."""
    found = []
    for rows in stored:
        words = [word for row in rows.tokens for word in row]
        found.append(mean_by_class(words, rows.entropy[rows.mask]))
        own = {each.name: each._asdict() for each in found[-1] if each.number}
        numbers[f"step_{rows.step}"]["classes"] = own
    lines = []
    for each in zip(*found, strict=True):
        if any(own.number for own in each):
            cells = [[own.number, f"{own.mean:.3f}" if own.number else "–"] for own in each]
            lines.append([each[0].name, *(cell for pair in cells for cell in pair)])
    head = [f"{what}, step {rows.step}" for rows in stored for what in ("tokens", "mean entropy")]
    return Table("Entropy by class of token, nats", ["class", *head], lines)


def _rows(step: int, samples: Sequence[Mapping[str, Any]]) -> _Rows | None:
    """The tokens that the policy sampled, with entropies; None without such tokens."""
    good = [
        (row, own)
        for row in samples
        if row.get("tokens")
        and isinstance(row.get("entropy"), list)
        and len(own := _own_places(row))
    ]
    if not good:
        return None
    width = max(len(own) for _, own in good)
    mask = np.arange(width) < np.array([len(own) for _, own in good])[:, None]

    def column(name):
        found = np.zeros(mask.shape)
        for place, (row, own) in enumerate(good):
            values = [number_or(row[name][i], np.nan) for i in own]
            found[place, : len(values)] = values
        return np.nan_to_num(found)

    return _Rows(
        step,
        [[str(row["tokens"][i]) for i in own] for row, own in good],
        column("entropy"),
        column("logp") if all(isinstance(row.get("logp"), list) for row, _ in good) else None,
        mask,
        np.array([number_or(row.get("outcome"), np.nan) for row, _ in good]),
    )


def _own_places(row: Mapping[str, Any]) -> list[int]:
    """Positions of the tokens that the policy sampled, as far as every list of the row has them."""
    lists = [row[name] for name in ("tokens", "entropy", "logp") if isinstance(row.get(name), list)]
    origin = row.get("origin") or [0] * len(row["tokens"])
    return [i for i, writer in zip(range(min(map(len, lists))), origin, strict=False) if not writer]


def _measure(rows: _Rows, budget: int) -> dict[str, Any]:
    found = forks(rows.entropy, rows.mask)
    total = rows.entropy[rows.mask].sum()
    texts, left = [], budget
    for text in rows.tokens:
        texts.append(text[:left])
        left = max(left - len(text), 0)
    middle = (np.arange(_PARTS) + 0.5) / _PARTS
    profile = np.stack([middle, position_profile(rows.entropy, rows.mask, _PARTS)], axis=1)
    return {
        "responses": len(rows.tokens),
        "tokens": int(rows.mask.sum()),
        "fork_threshold": found.threshold,
        "entropy_in_forks": float(rows.entropy[found.mask].sum() / total) if total > 0 else None,
        "distinct_2": distinct(texts, 2),
        "distinct_2_tokens": budget,
        "profile": profile,
    }


def _sentence(stored: Sequence[_Rows], measured: Sequence[Mapping[str, Any]]) -> str:
    def both(name, form):
        values = [each[name] for each in measured]
        return " → ".join("–" if value is None else form.format(value) for value in values)

    steps = " and ".join(str(rows.step) for rows in stored)
    sizes = " and ".join(str(each["responses"]) for each in measured)
    return (
        f"Stored responses of step {steps} (n = {sizes}): the 20 % of the tokens with the highest"
        f" entropy have {both('entropy_in_forks', '{:.0%}')} of the total entropy (threshold"
        f" {both('fork_threshold', '{:.3f}')} nats). Fraction of different bigrams in the first"
        f" {measured[0]['distinct_2_tokens']} tokens: {both('distinct_2', '{:.3f}')}."
    )


def _confidence(rows: _Rows, numbers: dict[str, Any]) -> list[str]:
    """Whether more probable responses are correct more often, with enough responses of both
    kinds."""
    if rows.logp is None:
        return []
    known = np.isin(rows.outcome, (0, 1))
    if known.sum() < _FEWEST_ROWS or len(np.unique(rows.outcome[known])) < 2:
        return []
    confidence = token_confidence(rows.logp, rows.mask)[known]
    found = calibration(np.clip(confidence, 0, 1), rows.outcome[known], _BINS)
    numbers["calibration"] = {
        name: getattr(found, name) for name in ("ece", "auroc", "brier", "overconfidence")
    }
    return [
        "Confidence is the mean token probability. It is higher for a correct than for an incorrect"
        f" response with probability {found.auroc:.2f} (AUROC; chance: 0.5). Its calibration error"
        f" is {found.ece:.2f} ({int(known.sum())} responses, {_BINS} bins)."
    ]
