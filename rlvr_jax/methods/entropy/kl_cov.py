"""KL-Cov: penalizes changes of the tokens whose log-prob and advantage agree most.

Cui et al. 2025, "The Entropy Mechanism of Reinforcement Learning for Reasoning Language Models",
https://arxiv.org/abs/2505.22617

    cov_t = (A_t - mean A) (logp_t - mean logp)
    loss  = Σ [-A ρ + β · 1[t ∈ S] · |logp - old_logp|] / Σ n_i

S are the max(⌊q n⌋, 1) tokens of largest covariance of the whole batch. The authors' code takes
them per micro-batch. The ratio is not clipped. Its logarithm is clamped to ±20, so that float32
stays finite; the authors do not clamp it. The value of q (`fraction`) is the authors' for 7B
models, 0.2 %. For 32B they use 0.02 %.

Left out: the group filter of `dapo`, which the authors' scripts set.
Reports: mean of seven maths sets in %, GRPO to KL-Cov: Qwen2.5-7B 38.6 to 40.6, 32B 45.8 to 52.2.
Traps: In the first update after sampling, log-probs have not changed, so the method is the plain
policy gradient. Implementations state q in percent or as a fraction.
"""

import jax
import jax.numpy as jnp

from rlvr_jax.objectives import clamped_token_ratio, group_normalized, objective, part, token_mean
from rlvr_jax.objectives.algebra.parts import Transform, at_one_update
from rlvr_jax.objectives.statistics.choices import masked_top_k
from rlvr_jax.objectives.statistics.covariance import token_covariance
from rlvr_jax.objectives.statistics.masked import fraction_of, masked_count, masked_mean
from rlvr_jax.objectives.surrogates.policy_gradient import importance_weighted
from rlvr_jax.types import Method, Recipe, Shown, replace
from rlvr_jax.types.hyperparameters import NonNegative, Share


@part(reads={"logp", "batch_statistics"}, writes={"chosen", "penalty"})
def penalize_high_covariance(fraction: Share, coefficient: NonNegative) -> Transform:
    """Holds the tokens of highest covariance at their old log-prob.

    Of n tokens, the k = max(⌊fraction · n⌋, 1) of largest covariance get the penalty coefficient ·
    |logp - old_logp|. Its gradient has a constant size, and is 0 where no log-prob has changed. The
    covariance is `token_covariance`; ties by rollout_id, then position.

    Metrics: chosen_fraction (of the tokens).
    """

    def apply(signals, context, state):
        mask = signals.mask
        logp = jax.lax.stop_gradient(context.stats.logp)
        covariance = token_covariance(signals.advantage, logp, mask)
        k = jnp.maximum(fraction_of(fraction, masked_count(mask)), 1)
        held = masked_top_k(covariance, mask, k, context.rollouts.rollout_id)
        distance = jnp.abs(context.stats.logp - context.old_logp)
        penalty = signals.penalty + jnp.where(held, coefficient * distance, 0)
        signals = replace(signals, penalty=penalty, chosen=signals.chosen | held)
        return signals, state, {"chosen_fraction": masked_mean(held, mask)}

    remark = at_one_update("has no effect: with one update per batch no log-prob has moved.")
    return Transform(apply, remark=remark)


def kl_cov(fraction: Share = 2e-3, penalty_coefficient: NonNegative = 1.0) -> Recipe:
    """Applies GRPO's advantages without a clip, and a penalty on tokens of high covariance.

    Args:
      fraction: fraction of the tokens that are penalized (q).
      penalty_coefficient: weight of their distance to the old log-prob (β).
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(),
            transforms=[penalize_high_covariance(fraction, penalty_coefficient)],
            surrogate=importance_weighted(ratio=clamped_token_ratio),
            aggregation=token_mean(),
        )
    )


METHOD = Method(
    kl_cov,
    changes="surrogate, regularizer",
    small={"fraction": 0.05},
    shown=Shown("brackets", "chosen_fraction", steps=300),
    # The default is for batches of millions of tokens.
    presets={
        "brackets": {"hyperparameters": ("fraction=0.02",), "epochs": 2},
        "arithmetic:hard": {"hyperparameters": ("fraction=0.02",)},
    },
)
