"""Differential information of two policies, on their different sampled responses.

The candidates of a problem are its different responses; equal responses count once. Both policies
score each candidate, so q(y) ∝ π_after(y) / π_before(y) is known on them. `analysis.updates.did`
has the equations and an estimate of H(q) over all responses. That estimate has few effective
samples, so both entropies are shown.
"""

from typing import NamedTuple

import numpy as np
from scipy import special

from rlvr_jax.analysis.arrays import row_sum
from rlvr_jax.analysis.diagnosis.answers import Answers
from rlvr_jax.analysis.diagnosis.topics import Topic, interval_numbers, signed
from rlvr_jax.analysis.prompt_bootstrap import PromptInterval, bootstrap_mean
from rlvr_jax.analysis.updates.did import (
    differential_information,
    effective_samples,
    prefers,
    rejected_distribution,
    sampled_entropy,
    set_entropy,
)

_SCALE = 0.1  # β, ours
_NEEDS = ("logp", "other_logp")


class _Candidates(NamedTuple):
    """The different responses to a problem: nats under both policies, [C], and bool [C]."""

    before: np.ndarray
    after: np.ndarray
    correct: np.ndarray


def information(before: Answers, after: Answers, names: tuple[str, str]) -> Topic:
    """Whether the update moved mass to few or many responses, and which pairs it prefers."""
    topic = Topic("Differential information")
    if before.vocabulary != after.vocabulary:
        topic.missing.append("Differential information needs one vocabulary.")
        return topic
    if any(getattr(each, name) is None for each in (before, after) for name in _NEEDS):
        topic.missing.append(
            "Differential information needs logp and other_logp of the responses of both."
        )
        return topic
    problems = _candidates(before, after)
    weights = before.weights
    log_q = [differential_information(own.after, own.before) for own in problems]
    fraction = [
        float(np.exp(set_entropy(q))) / len(own.correct)
        for q, own in zip(log_q, problems, strict=True)
    ]
    entropy = _mean([float(set_entropy(q)) for q in log_q], weights)
    reinforced = _mean(fraction, weights)
    topic.numbers |= {
        "candidates": float(np.mean([len(own.correct) for own in problems])),
        "set_entropy": interval_numbers(entropy),
        "reinforced_fraction": interval_numbers(reinforced),
    }
    topic.sentences.append(
        f"Entropy of the differential information q ∝ {names[1]} / {names[0]} on the"
        f" {topic.numbers['candidates']:.1f} different responses to a problem: {entropy} nats. The"
        f" update reinforces an effective fraction {reinforced} of them."
    )
    _sampled(topic, after, names)
    _pairs(topic, problems, weights, names)
    return topic


def _candidates(before: Answers, after: Answers) -> list[_Candidates]:
    """The different responses to each problem, of both policies together."""
    found: list[dict[tuple[int, ...], tuple[float, float, bool]]] = [{} for _ in before.weights]
    for own, swapped in ((before, False), (after, True)):
        sums = [row_sum(values, own.mask) for values in (own.logp, own.other_logp)]
        first, last = sums[::-1] if swapped else sums
        for place, rows in zip(found, own.rows, strict=True):
            for row in rows:
                numbers = float(first[row]), float(last[row]), bool(own.correct[row])
                place.setdefault(own.texts(row), numbers)
    return [
        _Candidates(*(np.array(column) for column in zip(*each.values(), strict=True)))
        for each in found
    ]


def _mean(values: list[float], weights: np.ndarray) -> PromptInterval:
    return bootstrap_mean([values], weights)


def _sampled(topic: Topic, after: Answers, names: tuple[str, str]) -> None:
    """H(q) over all responses, estimated from the samples of the second policy."""
    logp, reference = (
        row_sum(values, after.mask)[after.rows] for values in (after.logp, after.other_logp)
    )
    entropy = _mean(sampled_entropy(logp, reference).tolist(), after.weights)
    size = float(np.median(effective_samples(reference)))
    topic.numbers |= {
        "sampled_entropy": interval_numbers(entropy),
        "effective_samples": size,
    }
    topic.sentences.append(
        f"Estimated over all responses, from {after.samples} samples of {names[1]}: {entropy} nats."
        f" The median problem has {size:.1f} effective samples; near 1 the estimate is unreliable."
    )


def _pairs(
    topic: Topic, problems: list[_Candidates], weights: np.ndarray, names: tuple[str, str]
) -> None:
    """Preferences between correct and incorrect candidates, and the rejected distribution."""
    both = [
        (own, weight)
        for own, weight in zip(problems, weights, strict=True)
        if own.correct.any() and not own.correct.all() and weight > 0
    ]
    if not both:
        topic.missing.append(
            "Preferences need a problem with correct and incorrect responses; there is none."
        )
        return
    own_weights = np.array([weight for _, weight in both])
    won, preferred, chosen, rates = [], [], [], []
    for own, _ in both:
        ratio = own.after - own.before
        margin = (ratio[own.correct][:, None] - ratio[~own.correct]).ravel()
        won.append(float(np.mean(margin > 0)))
        preferred.append(float(np.mean(prefers(margin, _SCALE))))
        chosen.append(float(ratio[own.correct].mean()))
        masses = (
            special.softmax(own.after),
            np.exp(rejected_distribution(own.after, own.before, _SCALE)),
        )
        rates.append([float(mass[own.correct].sum()) for mass in masses])
    found = {
        "pairs_won": _mean(won, own_weights),
        "preferred": _mean(preferred, own_weights),
        "log_ratio_of_correct": _mean(chosen, own_weights),
    }
    of_policy, of_rejected = (
        _mean(list(column), own_weights) for column in zip(*rates, strict=True)
    )
    topic.numbers |= {name: interval_numbers(each) for name, each in found.items()}
    topic.numbers["correct_mass"] = {
        "last": interval_numbers(of_policy),
        "rejected": interval_numbers(of_rejected),
    }
    topic.sentences += [
        f"Of the pairs of a correct and an incorrect response, {found['pairs_won']} have a positive"
        f" log-margin: the update raised the correct one more (n = {len(both)} problems; 0.5: no"
        f" preference). With β = {_SCALE} it is preferred with probability {found['preferred']}.",
        f"The log-ratio of a correct response is {signed(found['log_ratio_of_correct'])} nats;"
        " below 0, correct responses lost probability, too.",
        f"Rejected responses that would encode this update for DPO (β = {_SCALE}) have"
        f" {of_rejected} of their mass on correct responses; {names[1]} has {of_policy}.",
    ]
