"""The value that an implicit reward promises, as a term of the loss."""

from collections.abc import Callable

from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.regularizers.preferences import (
    log_ratio_sum,
    outcome_is_right,
    right_wrong_pairs,
)
from rlvr_jax.objectives.statistics.groups import has_tokens
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import Rollouts, replace
from rlvr_jax.types.hyperparameters import Finite, Positive
from rlvr_jax.types.parts import part

__all__ = ["Calibration", "chosen_rows", "induced_value", "off_policy_rows", "value_incentive"]

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
    Reads: logp, reference_logp, the mask, what `rows` reads. Writes: term.
    Metrics: induced_value.
    Raises:
      ValueError: coefficient not finite, or scale not positive.
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        log_ratio = log_ratio_sum(context.stats.logp, rollouts.reference_logp, signals.mask)
        value = induced_value(log_ratio, rows(rollouts), scale)
        signals = replace(signals, term=signals.term - coefficient * value)
        return signals, state, {"induced_value": value}

    reads = {"logp", "reference_logp"} | ({"off_policy"} if rows is off_policy_rows else set())
    return Transform(apply, reads=reads)
