"""Interference between problems: whether likely correct responses gained and unlikely ones lost.

log π of a problem is the mean log-prob per token of its correct responses by the first policy. Its
change is fitted by a line on its first value. A positive slope means that the winners take all. The
influence of problems on each other needs gradients, and therefore a policy and its batch.
`analysis.updates.interference` has the source.
"""

import numpy as np

from rlvr_jax.analysis.diagnosis.answers import Answers
from rlvr_jax.analysis.diagnosis.topics import Topic, interval_numbers, signed, signed_number
from rlvr_jax.analysis.prompt_bootstrap import bootstrap_mean
from rlvr_jax.analysis.updates.interference import (
    Interference,
    keep_hard,
    right_answer_logp,
    winner_slope,
)

INFLUENCE = "Influence of problems on each other"
_FEWEST = 3  # least number of problems for a slope
_THIRD = 3


def winners(before: Answers, after: Answers, names: tuple[str, str]) -> Topic:
    """The change of log π of the correct responses, by its value before."""
    topic = Topic("Interference between problems")
    if before.vocabulary != after.vocabulary:
        topic.missing.append("Interference needs one vocabulary.")
        return topic
    if before.logp is None or before.other_logp is None:
        topic.missing.append(
            f"Interference needs logp and other_logp of the responses of {names[0]}."
        )
        return topic
    group = np.unique(before.problem, return_inverse=True)[1]
    old, new = (
        right_answer_logp(values, before.mask, before.correct, group)
        for values in (before.logp, before.other_logp)
    )
    rate = before.correct[before.rows].mean(axis=1)
    watched = (rate > 0) & (before.weights > 0)
    if watched.sum() < _FEWEST:
        topic.missing.append(
            f"Interference needs {_FEWEST} problems that {names[0]} solves, got {watched.sum()}."
        )
        return topic
    change = new - old
    slope = winner_slope(old, change, watched)
    order = np.flatnonzero(watched)[np.argsort(old[watched], kind="stable")]
    size = max(1, len(order) // _THIRD)
    unlikely, likely = (
        bootstrap_mean([change[places]], before.weights[places])
        for places in (order[:size], order[-size:])
    )
    hard = keep_hard(rate)
    topic.numbers |= {
        "winner_slope": slope,
        "watched_problems": int(watched.sum()),
        "change_of_unlikely_third": interval_numbers(unlikely),
        "change_of_likely_third": interval_numbers(likely),
        "lowered_problems": float(np.mean(change[watched] < 0)),
        "hard_problems": np.unique(before.problem)[hard].tolist(),
    }
    verdict = "the likely gained more" if slope > 0 else "the unlikely gained more"
    topic.sentences += [
        f"Slope of the change of log π(correct) on its first value: {signed_number(slope)} over"
        f" {watched.sum()} problems, so {verdict}. The least likely third changed by"
        f" {signed(unlikely)} nats per token, the likeliest third by {signed(likely)}.",
        f"{100 * topic.numbers['lowered_problems']:.0f} % of these problems have less likely"
        f" correct responses than before. {hard.sum()} of {len(hard)} problems have a pass rate"
        f" below 0.5 under {names[0]}: SELF would train on these only.",
    ]
    return topic


def influence_of_problems(found: Interference, name: str) -> Topic:
    """Topic of influence: the effect of a step on one problem on the correct responses of others.

    Args:
      name: name of the policy that takes the step.
    """
    topic = Topic(INFLUENCE)
    topic.numbers |= {
        "problems": len(found.self_influence),
        "negative_fraction": found.negative_fraction,
        "mean_off_diagonal": found.mean_off_diagonal,
        "self_influence": found.self_influence.tolist(),
    }
    topic.sentences.append(
        f"A GRPO step of {name} on one problem would lower the correct responses of another one in"
        f" {100 * found.negative_fraction:.0f} % of the pairs (to first order, by the last layer;"
        f" {len(found.self_influence)} problems). Mean influence per unit of learning rate:"
        f" {signed_number(found.mean_off_diagonal)} on another problem,"
        f" {signed_number(float(found.self_influence.mean()))} on its own."
    )
    return topic
