"""Tokens that changed between two policies: their number, places and classes.

Both policies score the first policy's responses. On a plateau of training, the probability of more
than 99 % of the tokens hardly changes (Deng et al. 2025, https://arxiv.org/abs/2508.07534). Our
threshold for "hardly" is 0.01.
"""

from collections.abc import Sequence

import numpy as np

from rlvr_jax.analysis.arrays import fraction_of, masked_mean
from rlvr_jax.analysis.diagnosis.answers import Answers
from rlvr_jax.analysis.diagnosis.topics import (
    Table,
    Topic,
    interval_numbers,
    signed,
    signed_number,
)
from rlvr_jax.analysis.entropy.entropy_patterns import forks
from rlvr_jax.analysis.entropy.stages import change_by_outcome, outcome_entropy
from rlvr_jax.analysis.entropy.token_classes import mean_by_class
from rlvr_jax.analysis.prompt_bootstrap import bootstrap_mean

_HARDLY = 0.01  # change of probability


def token_changes(topic: Topic, before: Answers, after: Answers, names: tuple[str, str]) -> None:
    """Adds the changes of tokens to a topic; it requires log-probs and entropies of both policies.

    Args:
      topic: receives sentences and numbers.
      before, after: answers with at least one token.
      names: names of both policies.
    """
    _moved(topic, before, names)
    _by_outcome(topic, before, after, names)
    _branching(topic, before, names)
    _classes(topic, before, names)


def _moved(topic: Topic, before: Answers, names: tuple[str, str]) -> None:
    """How many probabilities changed, and the part of the forking tokens in the change."""
    moved = _moves(before)
    still = bootstrap_mean([before.token_mean(moved < _HARDLY)], before.weights)
    uncertain = forks(before.entropy, before.mask).mask
    on_forks = fraction_of(moved[uncertain].sum(), moved[before.mask].sum())
    size = fraction_of(uncertain.sum(), before.mask.sum())
    topic.numbers |= {
        "hardly_changed": interval_numbers(still) | {"below": _HARDLY},
        "change_on_forks": on_forks,
        "forks": size,
    }
    topic.sentences.append(
        f"Fraction of the tokens of {names[0]} whose probability changed by less than {_HARDLY:g}:"
        f" {still} (n = {before.mask.sum()})."
    )
    topic.sentences.append(
        f"The {100 * size:.0f} % of the tokens with the highest entropy have"
        f" {100 * on_forks:.0f} % of the total change of probability."
    )


def _by_outcome(topic: Topic, before: Answers, after: Answers, names: tuple[str, str]) -> None:
    """Change of entropy of correct and incorrect responses, each policy on its own responses."""
    ends = [outcome_entropy(a.entropy, a.mask, a.correct) for a in (before, after)]
    parts = change_by_outcome(*ends)
    correct, incorrect = [end.correct for end in ends], [end.incorrect for end in ends]
    topic.numbers |= {
        "entropy_right": correct,
        "entropy_wrong": incorrect,
        "entropy_change_by_outcome": parts._asdict() | {"change": parts.change},
    }
    topic.sentences.append(
        f"Each on its own responses: {_arrow(correct)} nats per token in correct and"
        f" {_arrow(incorrect)} in incorrect responses (n = {before.mask.sum()} and"
        f" {after.mask.sum()} tokens)."
    )
    topic.sentences.append(
        f"The total changed by {signed_number(parts.change)}: {signed_number(parts.incorrect)}"
        f" within incorrect responses, {signed_number(parts.correct)} within correct responses,"
        f" {signed_number(parts.fractions)} by their fractions (tokens in incorrect ones:"
        f" {100 * ends[0].incorrect_fraction:.0f} % → {100 * ends[1].incorrect_fraction:.0f} %)."
    )


def _branching(topic: Topic, before: Answers, names: tuple[str, str]) -> None:
    """Number of tokens among which the policies choose."""
    if before.branching is None or before.other_branching is None:
        topic.missing.append(
            "The number of likely tokens needs branching and other_branching of the responses of"
            f" {names[0]}."
        )
        return
    change = bootstrap_mean(
        [before.token_mean(before.other_branching - before.branching)], before.weights
    )
    old, new = (
        masked_mean(sizes, before.mask) for sizes in (before.branching, before.other_branching)
    )
    both = np.stack([before.branching, before.other_branching])[:, before.mask]
    most = both.max()
    at_most = int((both == most).any(axis=0).sum())
    topic.numbers["branching"] = interval_numbers(change) | {
        "first": old,
        "last": new,
        "largest": int(most),
        "at_largest": at_most,
    }
    topic.sentences.append(
        f"Number of tokens with 95 % of the probability: {old:.2f} → {new:.2f}, mean over the"
        f" n = {before.mask.sum()} tokens of {names[0]} (change {signed(change)}, mean over"
        f" problems). At most {most:.0f}, on {at_most} tokens."
    )


def _classes(topic: Topic, before: Answers, names: tuple[str, str]) -> None:
    """Entropy and change of probability by class of token."""
    if before.words is None:
        topic.missing.append("Classes of tokens need words, the text of each token id.")
        return
    words = [before.words.get(i, "") for i in before.tokens[before.mask].tolist()]
    columns = [
        mean_by_class(words, values[before.mask])
        for values in (before.entropy, before.other_entropy, _moves(before))
    ]
    rows, numbers = [], {}
    for old, new, moved in zip(*columns, strict=True):
        if not old.number:
            continue
        part = old.number / len(words)
        numbers[old.name] = {
            "tokens": old.number,
            "entropy": [old.mean, new.mean],
            "change": moved.mean,
            "fraction_of_change": moved.fraction,
        }
        cells = [f"{x:.3f}" for x in (old.mean, new.mean, moved.mean)]
        fractions = [f"{100 * x:.0f} %" for x in (part, moved.fraction)]
        rows.append([old.name, old.number, *cells, *fractions])
    topic.numbers["classes"] = numbers
    head = ["class", "tokens", *(f"entropy, {name}" for name in names)]
    head += ["mean change of probability", "fraction of the tokens", "fraction of the change"]
    topic.tables.append(Table(f"Classes of the tokens of {names[0]}", head, rows))


def _moves(before: Answers) -> np.ndarray:
    """Absolute change of the probability of each token, [B, T]; 0 off the mask."""
    gap = np.abs(np.exp(before.other_logp) - np.exp(before.logp))
    return np.where(before.mask, gap, 0.0)


def _arrow(pair: Sequence[float | None]) -> str:
    return " → ".join("none" if value is None else f"{value:.3f}" for value in pair)
