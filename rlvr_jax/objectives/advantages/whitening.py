"""Standardisation of an advantage over all tokens of a batch."""

import jax.numpy as jnp

from rlvr_jax.objectives.algebra.inputs import measured
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.masked import masked_max, masked_mean, masked_min, masked_std
from rlvr_jax.objectives.statistics.scopes import within_batch, z_score
from rlvr_jax.types import part, replace
from rlvr_jax.types.hyperparameters import Positive


@part(writes={"advantage"})
def whitened(
    estimator: Transform, ddof: int = 0, epsilon: float = 0.0, floor: float = 1e-8
) -> Transform:
    """Standardizes advantages over tokens: A'_t = (A_t - mean) / sqrt(max(var + ε, floor)).

    Every token counts once, so long rollouts weigh more in mean and variance. A batch is whitened
    as a whole before it is split into updates, unless the estimator reads the current policy. (A
    KL in the reward is that of the policy that sampled.) Equal advantages become exactly 0. The
    defaults are those of OpenRLHF; verl has ddof 1, ε = 1e-8 and no floor.

    Args:
      estimator: advantage before whitening.
      ddof: the sum of squares is divided by n - ddof.
      epsilon, floor: ε and the smallest divisor's square; at least one must be positive.
    Metrics: those of the estimator.
    Source: REINFORCE++, https://github.com/OpenRLHF/OpenRLHF.
    """
    if not (epsilon > 0 or floor > 0):
        raise ValueError(f"whitened: epsilon or floor must be positive, got {epsilon} and {floor}")

    def apply(signals, context, state):
        signals, state, metrics = estimator.apply(signals, context, state)
        advantage, mask = signals.advantage, signals.mask
        variance = masked_std(advantage, mask, ddof) ** 2
        centered = advantage - masked_mean(advantage, mask)
        scaled = centered / jnp.sqrt(jnp.maximum(variance + epsilon, floor))
        # The mean of equal numbers may differ from them by a rounding error.
        differ = masked_min(advantage, mask) != masked_max(advantage, mask)
        return replace(signals, advantage=jnp.where(mask & differ, scaled, 0)), state, metrics

    # At the first update the old log-probs are those of the current pass.
    reads = estimator.reads | ({"batch_statistics"} if "logp" in estimator.reads else set())
    return Transform(
        apply,
        init=estimator.init,
        reads=reads,
        remark=estimator.remark,
        options=estimator.options,
        once=estimator.once or not measured(estimator.reads),
    )


@part(writes={"advantage"}, once=True)
def standardize_advantage(epsilon: Positive, ddof: int = 1) -> Transform:
    """A' = (A - mean) / (std + ε) over the tokens of the batch, std with n - `ddof`."""

    def apply(signals, context, state):
        sets = within_batch(context.rollouts)
        scaled = z_score(signals.advantage, signals.mask, sets, ddof=ddof, epsilon=epsilon)
        return replace(signals, advantage=scaled), state, {}

    return apply
