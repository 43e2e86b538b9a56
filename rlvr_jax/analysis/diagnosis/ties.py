"""Ties of the reward: how far a small change of the reward moves the optimal policy.

The candidates of a problem are its different responses, and the value of a candidate is its mean
outcome. If several candidates have the highest value, the optimal policy is not unique. Without
regularisation, any bonus δ for one of them moves all of the mass. With an entropy term of weight τ
the optimum is softmax(Q / τ), and moves by at most δ / τ. `analysis.updates.policy_cliff` has the
source.
"""

import numpy as np

from rlvr_jax.analysis.diagnosis.answers import Answers
from rlvr_jax.analysis.diagnosis.topics import Table, Topic, interval_numbers
from rlvr_jax.analysis.prompt_bootstrap import bootstrap_mean
from rlvr_jax.analysis.updates.policy_cliff import cliff_curve

_DELTAS = (0.001, 0.01, 0.1)  # ours, as the weights
_WEIGHTS = (0.0, 0.01, 0.1, 1.0)


def ties(answers: Answers, name: str) -> Topic:
    """How often the optimum is not unique, and how far a small bonus moves it.

    Args:
      name: name of the policy that sampled, in sentences.
    """
    topic = Topic("Ties of the reward")
    solved = answers.correct[answers.rows].any(axis=1)
    if not (answers.weights * solved).any():
        topic.missing.append(f"Ties of the reward need a problem that {name} solves.")
        return topic
    values = [own for own, some in zip(_values(answers), solved, strict=True) if some]
    what = f"the {len(values)} problems that {name} solves"
    tied = [np.flatnonzero(own == own.max()) for own in values]
    several = np.array([len(places) > 1 for places in tied])
    fraction = bootstrap_mean([several.astype(float)], answers.weights[solved])
    topic.numbers |= {"tied": interval_numbers(fraction)}
    if not several.any():
        topic.sentences.append(
            f"Every one of {what} has one best response, so a small change of the reward moves"
            " nothing."
        )
        return topic
    number = float(np.mean([len(places) for places in tied if len(places) > 1]))
    # The bonus goes to the last of the tied responses: the first one holds the mass at τ = 0.
    moved = np.mean(
        [
            cliff_curve(own, np.arange(len(own)) == places[-1], _DELTAS, _WEIGHTS)
            for own, places in zip(values, tied, strict=True)
            if len(places) > 1
        ],
        axis=0,
    )
    topic.numbers |= {
        "best_responses": number,
        "distance": {
            f"{weight:g}": dict(zip(map(str, _DELTAS), row.tolist(), strict=True))
            for weight, row in zip(_WEIGHTS, moved, strict=True)
        },
    }
    topic.sentences.append(
        f"The best response is not unique in {fraction} of {what}; there, {number:.1f} responses"
        f" share the highest reward. A bonus of {_DELTAS[0]:g} for one of them moves the"
        f" unregularised optimum by {moved[0, 0]:.2f} of at most 2 (‖π' − π‖₁)."
        f" An entropy term of weight {_WEIGHTS[2]:g} leaves {moved[2, 0]:.2g}."
    )
    rows = [
        [f"{weight:g}", *(f"{value:.3g}" for value in row)]
        for weight, row in zip(_WEIGHTS, moved, strict=True)
    ]
    head = ["entropy weight τ", *(f"bonus {delta:g}" for delta in _DELTAS)]
    note = "Mean of ‖π' − π‖₁ over problems with ties, from 0 to 2; it is at most bonus / τ."
    topic.tables.append(Table("Distance of the optimal policies", head, rows, note))
    return topic


def _values(answers: Answers) -> list[np.ndarray]:
    """Mean outcomes of the different responses to each problem, [C]; ungraded ones count as 0."""
    outcome = np.nan_to_num(answers.outcome)
    found = []
    for rows in answers.rows:
        own: dict[tuple[int, ...], list[float]] = {}
        for row in rows:
            own.setdefault(answers.texts(row), []).append(outcome[row])
        found.append(np.array([np.mean(each) for each in own.values()]))
    return found
