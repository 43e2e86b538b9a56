"""Two policies on the same tokens: their KL divergences, and the change of entropy.

For one response, with rows o that the policy itself sampled:

    KL(after ‖ before) = E Σ log π_after(o_t) - log π_before(o_t)     over rows of after
    KL(before ‖ after) likewise over rows of before

Both are unbiased over whole responses. The first one detects new responses, the second one detects
forgotten responses. A correct response is out of reach of a policy if one of its tokens has a
probability below 1 % under it. The bound is ours.
"""

import numpy as np

from rlvr_jax.analysis.arrays import row_sum
from rlvr_jax.analysis.diagnosis.answers import Answers
from rlvr_jax.analysis.diagnosis.token_changes import token_changes
from rlvr_jax.analysis.diagnosis.topics import Topic, curve, interval_numbers, signed, signed_number
from rlvr_jax.analysis.entropy.entropy_patterns import change_by_percentile, fork_overlap, forks
from rlvr_jax.analysis.prompt_bootstrap import PromptInterval, bootstrap_mean

_RARE = 0.01  # a token with a lower probability is out of reach
_PARTS = 10


def likelihood(before: Answers, after: Answers, names: tuple[str, str]) -> Topic:
    """Compares two policies by their log-probs of each other's responses."""
    topic = Topic("Same tokens")
    if before.vocabulary != after.vocabulary:
        topic.missing.append(
            "Probabilities of the same tokens need one vocabulary, got those of"
            f" {before.vocabulary} and {after.vocabulary}."
        )
        return topic
    wanted = ("logp", "entropy", "other_logp", "other_entropy")
    if any(getattr(each, name) is None for each in (before, after) for name in wanted):
        topic.missing.append(
            "Probabilities of the same tokens need logp, entropy, other_logp and other_entropy of"
            " the responses of both."
        )
        return topic
    forward, backward = _distance(after), _distance(before)
    topic.numbers["kl"] = {
        name: interval_numbers(response) | {"nats_a_token": token}
        for name, (response, token) in (("last_to_first", forward), ("first_to_last", backward))
    }
    topic.sentences.append(
        f"KL divergence, nats per response (per token): KL({names[1]} ‖ {names[0]}) ="
        f" {forward[0]} ({forward[1]:.3f}), KL({names[0]} ‖ {names[1]}) = {backward[0]}"
        f" ({backward[1]:.3f})."
    )
    _reachable(topic, before, after, names)
    if not before.mask.any() or not after.mask.any():
        topic.missing.append("Entropy on the same tokens needs a token of both policies.")
        return topic
    _entropy(topic, before, after, names)
    token_changes(topic, before, after, names)
    return topic


def _distance(own: Answers) -> tuple[PromptInterval, float]:
    """Mean log-ratio to the other policy, on this policy's responses: per response and per
    token."""
    ratio = row_sum(own.logp - own.other_logp, own.mask)
    interval = bootstrap_mean([ratio[own.rows].mean(axis=1)], own.weights)
    length = own.mask.sum(axis=1)[own.rows].mean(axis=1) @ own.weights / own.weights.sum()
    return interval, interval.mean / max(length, 1e-12)


def _reachable(topic: Topic, before: Answers, after: Answers, names: tuple[str, str]) -> None:
    """Fraction of the correct responses that are out of reach of the other policy."""
    parts = []
    for own, name, other in ((before, *names), (after, *reversed(names))):
        rare = (own.mask & (own.other_logp < np.log(_RARE))).any(axis=1)
        correct = own.correct[own.rows].sum(axis=1)
        if not (own.weights * correct).any():
            topic.missing.append(f"Correct responses that {other} lost need one of {name}.")
            continue
        some = correct > 0
        fraction = (rare & own.correct)[own.rows].sum(axis=1)[some] / correct[some]
        found = bootstrap_mean([fraction], own.weights[some])
        topic.numbers[f"right_out_of_reach_of_{'last' if own is before else 'first'}"] = (
            interval_numbers(found)
        )
        parts.append(
            f"Fraction of the correct responses of {name} with a token whose probability under"
            f" {other} is less than {100 * _RARE:g} %: {found}."
        )
    topic.sentences += parts


def _entropy(topic: Topic, before: Answers, after: Answers, names: tuple[str, str]) -> None:
    """Change of entropy on the first policy's tokens, by their entropy before."""
    change = bootstrap_mean(
        [before.token_mean(before.other_entropy - before.entropy)], before.weights
    )
    by_part = change_by_percentile(before.entropy, before.other_entropy, before.mask, _PARTS)
    old, new = (
        forks(entropy, before.mask).mask for entropy in (before.entropy, before.other_entropy)
    )
    overlap, _ = fork_overlap(old, new)
    # If most entropies are equal, for example 0, more than a fifth are at the threshold.
    chance = float(new.sum() / before.mask.sum())
    topic.numbers |= {
        "entropy_change": interval_numbers(change),
        "entropy_change_by_tenth": by_part.tolist(),
        "fork_overlap": overlap,
        "fork_overlap_by_chance": chance,
    }
    topic.sentences.append(
        f"On the tokens of {names[0]} entropy changed by {signed(change)} nats per token, and by"
        f" {signed_number(by_part[-1])} on the tenth with the highest entropy."
    )
    topic.sentences.append(
        f"Of the fifth of the tokens with the highest entropy, {100 * overlap:.0f} % are still in"
        f" that fifth (chance: {100 * chance:.0f} %)."
    )
    middle = (np.arange(_PARTS) + 0.5) / _PARTS
    lines = {f"{names[1]} minus {names[0]}": np.stack([middle, by_part], axis=1)}
    note = f"on n = {before.mask.sum()} tokens of {names[0]}, in tenths by its entropy"
    title, x = "Change of entropy by entropy of the token", "fraction of the tokens"
    topic.charts.append(curve(title, "nats", note, x, lines, zero=True))
