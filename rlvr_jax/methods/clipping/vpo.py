"""VPO: preference optimization with optimism, by the value that the implicit reward promises.

"Value-Incentivized Preference Optimization: A Unified Approach to Online and Offline RLHF"

    Δ_i  = Σ_t (logp - reference_logp)
    J*   = -β mean of Δ over calibration rows
    loss = -mean over pairs of log σ(β (Δ_w - Δ_l)) - α J*

α > 0 is the online form: optimistic, it moves probability away from the calibration rows and has
no lower bound, so keep it small; α < 0 is the offline form: pessimistic, it imitates them. A pair
is the k-th right and the k-th wrong rollout of a group. Made from the abstract, reviews and our own
derivation: β, α and the calibration rows (rows of another policy; `chosen_rows` is the other
natural choice) are ours.
"""

from __future__ import annotations

from collections.abc import Callable

from jaxtyping import Array, Bool, Float

from rlvr_jax.experience import experience, rehearse, shuffled_epochs
from rlvr_jax.experience.curricula.batches import asks_for
from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.compositions import objective_of_terms
from rlvr_jax.objectives.regularizers.preferences import (
    implicit_reward_loss,
    log_ratio_sum,
    outcome_is_right,
    right_wrong_pairs,
)
from rlvr_jax.objectives.statistics.groups import has_tokens
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import Count, Finite, Positive
from rlvr_jax.types.parts import part
from rlvr_jax.types.rollouts import Rollouts


@part
def rate_first(rated: Count, samples: Count) -> Curriculum:
    """Has some prompts answered before any update: drawn and graded in step 0, never trained.

    It comes behind a part that picks prompts.

    Args:
      rated: prompts, drawn without replacement; all there are, if they are fewer.
      samples: answers to each.
    """

    def propose(asks, state, turn):
        del state
        if turn.step or turn.round:
            return asks
        chosen = turn.random().permutation(len(turn.setting.task.train))[:rated]
        ratings = [replace(ask, samples=samples, rating=True) for ask in asks_for(turn, chosen)]
        return [*ratings, *asks]

    return Curriculum(propose)


Calibration = Callable[[Rollouts], Array]


def off_policy_rows(rollouts: Rollouts) -> Bool[Array, "B"]:
    """The rows of another policy that have tokens."""
    return rollouts.off_policy & has_tokens(rollouts.mask)


def chosen_rows(rollouts: Rollouts) -> Bool[Array, "B"]:
    """The right rollouts that are paired with a wrong one, both with tokens."""
    right, written = outcome_is_right(rollouts.outcome), has_tokens(rollouts.mask)
    return right & (right_wrong_pairs(right, rollouts.group, rollouts.rollout_id, written) >= 0)


def induced_value(
    log_ratio: Float[Array, "B"], rows: Bool[Array, "B"], scale: float
) -> Float[Array, ""]:
    """J* = -β mean over the calibration rows of Σ_t log(π / π_ref); 0 without any.

    With the reward r = β log(π / π_ref) + β log Z calibrated to mean 0 on those rows, this is the
    value of the best policy under r.

    Args:
      log_ratio: of each rollout, nats.
      rows: which rows calibrate.
      scale: β.
    Source: VPO ("Value-Incentivized Preference Optimization"), re-derived.
    """
    return -scale * masked_mean(log_ratio, rows)


@part(writes={"term"})
def value_incentive(
    coefficient: Finite, scale: Positive, rows: Calibration = off_policy_rows
) -> Transform:
    """Subtracts α times the value that the policy's implicit reward promises: term - α J*.

    Args:
      coefficient: α; positive is optimistic, pushes probability away from the calibration rows and
        has no lower bound; negative is pessimistic and imitates them.
      scale: β of the implicit reward, positive.
      rows: (rollouts) -> bool [B], those that calibrate: `off_policy_rows` or `chosen_rows`.
    Metrics: induced_value.
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        log_ratio = log_ratio_sum(context.stats.logp, rollouts.reference_logp, signals.mask)
        value = induced_value(log_ratio, rows(rollouts), scale)
        signals = replace(signals, term=signals.term - coefficient * value)
        return signals, state, {"induced_value": value}

    reads = {"logp", "reference_logp"} | ({"off_policy"} if rows is off_policy_rows else set())
    return Transform(apply, reads=reads)


def vpo(
    scale: float = 0.1,
    value_coefficient: float = 0.1,
    calibration: Calibration = off_policy_rows,
    rated: int = 1024,
    share: float = 0.25,
) -> Recipe:
    """DPO on right and wrong rollouts of a group, minus the induced value.

    Args:
      scale: of the implicit reward (β).
      value_coefficient: weight of the value (α), positive online and negative offline.
      calibration: (rollouts) -> bool [B], the rows on which the reward averages to 0.
      rated: prompts of which the first policy's answers are kept as calibration rows.
      share: calibration rows of a batch, as a share of its own.
    """
    rows = [rehearse(share, capacity=rated, solved=False)]
    return Recipe(
        objective=objective_of_terms(
            [
                implicit_reward_loss(scale),
                value_incentive(value_coefficient, scale, calibration),
            ]
        ),
        experience=experience([shuffled_epochs(), rate_first(rated, 1)], stages=rows),
    )


METHOD = Method(
    vpo,
    "Value-Incentivized Preference Optimization: A Unified Approach to Online and Offline RLHF",
    "",
    changes="surrogate, regularizer",
    evidence="reconstruction",
    left_out="refitting on all pairs of earlier rounds",
    reports="TL;DR and dialogue: favoured over DPO's kin (no number)",
    traps=(
        "α > 0 has no lower bound: keep it small or let it fall; sums over tokens grow with "
        "length; without pairs the linear term alone acts; with chosen rows and α < 0 it is DPO "
        "plus imitation"
    ),
)
