"""VPO: preference optimization with optimism, by the value that the implicit reward promises.

"Value-Incentivized Preference Optimization: A Unified Approach to Online and Offline RLHF"

    Δ_i  = Σ_t (logp - reference_logp)
    J*   = -β mean of Δ over calibration rows
    loss = -mean over pairs of log σ(β (Δ_w - Δ_l)) - α J*

J* is the value of the best policy under the reward β log(π / π_ref), whose mean over the
calibration rows is 0. The online, optimistic form has α > 0 (`value_coefficient`) and moves
probability away from these rows. The offline, pessimistic form has α < 0 and imitates them. A pair
is the k-th correct and the k-th incorrect rollout of a group. A reconstruction from the abstract,
reviews and our own derivation: β, α and the calibration rows are ours. The default rows are the
initial policy's responses to `rated` prompts; `chosen_rows` is the other natural choice.

Left out: refitting on all pairs of earlier rounds.
Reports: TL;DR and dialogue: preferred to variants of DPO (no numbers).
Traps: With α > 0 the loss has no lower bound; use a small α or anneal it. Sums over tokens grow
with length. Without pairs, only the linear term acts. With `chosen_rows` and α < 0, the method is
DPO plus imitation.
"""

from collections.abc import Callable

from jaxtyping import Array, Bool

from rlvr_jax.experience import Curriculum, experience, rehearse, shuffled_epochs
from rlvr_jax.experience.curricula.batches import requests_for
from rlvr_jax.objectives import (
    Transform,
    correct_incorrect_pairs,
    implicit_reward_loss,
    log_ratio_sum,
)
from rlvr_jax.objectives.compositions import objective_of_terms
from rlvr_jax.objectives.statistics.groups import has_tokens
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import Method, Recipe, Rollouts, Shown, is_correct, part, replace
from rlvr_jax.types.hyperparameters import Bound, Count, Finite, Positive

Calibration = Callable[[Rollouts], Array]


def off_policy_rows(rollouts: Rollouts) -> Bool[Array, "B"]:
    """The rows of another policy that have tokens."""
    return rollouts.records["off_policy"] & has_tokens(rollouts.mask)


def chosen_rows(rollouts: Rollouts) -> Bool[Array, "B"]:
    """The correct rollouts that are paired with an incorrect one, both with tokens."""
    correct, written = is_correct(rollouts.outcome), has_tokens(rollouts.mask)
    return correct & (
        correct_incorrect_pairs(correct, rollouts.group, rollouts.rollout_id, written) >= 0
    )


@part(writes={"term"})
def value_incentive(
    coefficient: Finite, scale: Positive, rows: Calibration = off_policy_rows
) -> Transform:
    """Subtracts α J* from the loss; J* = 0 without calibration rows.

    Args:
      coefficient: weight of J* in the loss (α).
      scale: scale of the implicit reward (β).
      rows: the calibration rows.
    Metrics: induced_value (J*, value of the best policy under the implicit reward).
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        log_ratio = log_ratio_sum(context.stats.logp, rollouts.reference_logp, signals.mask)
        value = -scale * masked_mean(log_ratio, rows(rollouts))
        signals = replace(signals, term=signals.term - coefficient * value)
        return signals, state, {"induced_value": value}

    reads = {"logp", "reference_logp"} | ({"off_policy"} if rows is off_policy_rows else set())
    return Transform(apply, reads=reads)


@part
def rate_first(rated: Count, samples: Count) -> Curriculum:
    """Samples and grades responses to some prompts in step 0, before any update; never trained.

    Args:
      rated: number of prompts, sampled without replacement; at most all train prompts.
      samples: number of responses to each.
    """

    def propose(requests, state, turn):
        if turn.step or turn.round:
            return requests
        chosen = turn.random().permutation(len(turn.setting.task.train))[:rated]
        ratings = [
            replace(request, samples=samples, rating=True) for request in requests_for(turn, chosen)
        ]
        return [*ratings, *requests]

    return Curriculum(propose)


def vpo(
    scale: Positive = 0.1,
    value_coefficient: Finite = 0.1,
    calibration: Calibration = off_policy_rows,
    rated: Count = 1024,
    fraction: Bound = 0.25,
) -> Recipe:
    """Applies DPO to correct and incorrect rollouts of a group, minus the induced value.

    Args:
      scale: factor of the implicit reward (β).
      value_coefficient: weight of the value (α), positive online and negative offline.
      calibration: the calibration rows, `off_policy_rows` or `chosen_rows`; any function
        (rollouts) -> bool [B].
      rated: number of prompts to which the initial policy's responses are stored as calibration
        rows.
      fraction: calibration rows of a batch, as a fraction of its other rows.
    """
    terms = [implicit_reward_loss(scale), value_incentive(value_coefficient, scale, calibration)]
    return Recipe(
        objective=objective_of_terms(terms),
        experience=experience(
            [shuffled_epochs(), rate_first(rated, 1)],
            stages=[rehearse(fraction, capacity=rated, solved=False)],
        ),
    )


METHOD = Method(
    vpo,
    changes="surrogate, regularizer",
    evidence="reconstruction",
    shown=Shown("brackets", "experience/rehearsed"),
)
