"""RepExp: a bonus for responses whose representation differs from the others of their group.

"Representation-Based Exploration for Language Models: From Test-Time to Post-Training",
https://arxiv.org/abs/2510.11686

    f_i  = mean over the response of the last hidden states of the initial policy
    b_i  = h_iᵀ (λ I + Σ_j h_j h_jᵀ)⁻¹ h_i over the group, h = f - mean f
    R_i  = outcome + β b_i in groups with a correct response, else the outcome
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1;  loss = Σ PPO clip / Σ n_i

β and λ are `coefficient` and `ridge`. With `others`, the matrix leaves out the row itself. This is
the default of the authors' config; their scripts use the form above. The authors first project f to
d dimensions at random. The Gram matrix of a group does not require that.

Left out: the random projection; the choice of samples at test time.
Reports: Qwen2.5-7B-Instruct on AIME24: pass@80 equals GRPO's pass@256.
Traps: In groups of only correct responses, the division by the std scales the bonus to full
advantages, for any weight. With few wide rows, every bonus is near 1 - 1/N; use `others=True`.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.experience import Shaping, embed, experience, judged_mean, judged_rows, shape
from rlvr_jax.objectives import clipped_objective, group_count, group_sum
from rlvr_jax.types import Method, Recipe, Shown, is_correct, part
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon, NonNegative, Positive
from rlvr_jax.types.passing import arguments_of

Rows = Float[Array, "B"]


@part(reads={"embedding"})
def novelty_bonus(
    coefficient: NonNegative = 0.01, ridge: Positive = 0.01, others: bool = False
) -> Shaping:
    """R = outcome + β b in groups with a correct response, b the leverage of the row.

    Args:
      coefficient: weight of the bonus (β).
      ridge: weight of the identity (λ).
      others: whether the matrix leaves out the row itself, which spreads large values.
    Reads: outcome, group, embedding. Metrics: reward/outcome (mean outcome), reward/novelty (mean
      bonus where it is added).
    Source: https://github.com/verl-project/verl-recipe (rep_exp), with random projections.
    """

    def apply(rollouts, state, moment):
        features = rollouts.records["embedding"].astype(rollouts.outcome.dtype)
        counted = judged_rows(rollouts)
        bonus = leverage(features, rollouts.group, ridge, counted)
        if others:
            bonus = leave_one_out_leverage(bonus)
        correct = is_correct(rollouts.outcome) & counted
        paid = group_count(rollouts.group, correct) > 0
        metrics = {
            "reward/outcome": judged_mean(rollouts.outcome, rollouts),
            "reward/novelty": judged_mean(jnp.where(paid, bonus, jnp.nan), rollouts),
        }
        return rollouts.outcome + coefficient * jnp.where(paid, bonus, 0), state, metrics

    return apply


def leverage(
    features: Float[Array, "B D"], group: Int[Array, "B"], ridge: float, where: Array | None = None
) -> Rows:
    """h_iᵀ (λ I + Σ_j h_j h_jᵀ)⁻¹ h_i over the group, h the features minus their group's mean.

    In [0, 1); equal rows have 0. N rows span N - 1 dimensions: for |h|² far above λ all values are
    close to 1 - 1/N.

    Args:
      features: hidden state of each row, [B, D].
      group: group of each row, int [B].
      ridge: λ, positive.
      where: rows that count; the others have 0. None: all.
    """
    counted = jnp.ones(group.shape, bool) if where is None else where
    counted_features = jnp.where(counted[:, None], features, 0)
    number = jnp.maximum(group_count(group, counted), 1).astype(features.dtype)
    mean = jax.vmap(group_sum, (1, None), 1)(counted_features, group) / number[:, None]
    own = jnp.where(counted[:, None], features - mean, 0)
    # (λ + K)⁻¹ K of the Gram matrix K of a group has the same diagonal and the size of the rows.
    # Eigenvalues, because float32 loses a λ that is small relative to K; those at rounding are 0.
    same = (group[:, None] == group[None]).astype(features.dtype)
    size, vectors = jnp.linalg.eigh((own @ own.T) * same)
    rounding = size[-1] * len(group) * jnp.finfo(size.dtype).eps
    fraction = jnp.where(size > rounding, size / (size + ridge), 0)
    most = 1 - 1 / number
    return jnp.where(counted, jnp.clip(vectors**2 @ fraction, 0, most), 0)


def leave_one_out_leverage(own: Rows) -> Rows:
    """l / (1 - l): the leverage with the matrix of the other rows."""
    return own / (1 - own)


@arguments_of(novelty_bonus)
def rep_exploration(
    clip_low: ClipLow = 0.2, clip_high: ClipHigh = 0.2, epsilon: Epsilon = 1e-6, **bonus: Any
) -> Recipe:
    """Applies GRPO with the token mean to outcomes and a bonus for novelty in the group."""
    return Recipe(
        objective=clipped_objective(clip_low, clip_high, epsilon=epsilon),
        experience=experience(stages=[embed(), shape(novelty_bonus(**bonus))]),
    )


METHOD = Method(
    rep_exploration,
    changes="reward",
    small={"coefficient": 1.0, "ridge": 10.0},
    shown=Shown("brackets", "experience/shaped_fraction"),
)
