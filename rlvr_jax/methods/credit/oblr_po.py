"""OBLR-PO: the baseline of least variance, weighted by the squared norms of the scores.

"OBLR-PO: A Theoretical Framework for Stable Reinforcement Learning"

    w_i  = ‖∇ log π(y_i)‖²
    A_i  = R_i - Σ_j w_j R_j / Σ_j w_j over the group
    loss = -mean_i A_i Σ_t logp_it

A reconstruction from the abstract, without constants of its own. The norms are those in logit
space, Σ_t (1 - 2 p_t(y_t) + Σ_v p_t(v)²): any others go in as `norm`, with what it reads as `reads`
(`last_layer_score` gives that of the last matrix from logits, which an objective does not have: for
norms that are made outside of it). The paper also sets the learning rate by the ratio of signal to
noise of the gradient; ours is the standard η₀ · SNR / (1 + SNR), `snr_learning_rate`. The abstract
does not give its schedule. An ε of 1e-8 in the denominator is usual; ours is 0.
"""

from collections.abc import Callable, Iterable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.advantages.group_relative import group_of_one_remark
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.algebra.parts import Context, Transform
from rlvr_jax.objectives.arguments import check_count
from rlvr_jax.objectives.statistics.groups import group_mean, group_sum
from rlvr_jax.objectives.statistics.masked import masked_sum
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_sum
from rlvr_jax.objectives.surrogates.policy_gradient import reinforce
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import Epsilon, NonNegative
from rlvr_jax.types.parts import part


def logit_score_norm(context: Context) -> Float[Array, "B"]:
    """Σ_t ‖e_{y_t} - p_t‖² = Σ_t (1 - 2 p_t(y_t) + Σ_v p_t(v)²): norms in logit space, squared.

    Leaves out the products of different tokens and the size of the hidden states.
    """
    stats = jax.lax.stop_gradient(context.stats)
    squares = jnp.maximum(1 - 2 * jnp.exp(stats.logp) + stats.p_squared, 0)  # 0 may round below
    return masked_sum(squares, context.rollouts.mask, axis=1)


def last_layer_score(
    logits: Float[Array, "T V"],
    hidden: Float[Array, "T D"],
    tokens: Int[Array, "T"],
    mask: Bool[Array, "T"],
) -> Float[Array, "V D"]:
    """Σ_t (e_{y_t} - p_t) h_tᵀ: the score of one rollout with respect to the last matrix.

    One rollout at a time: neither scores nor probabilities of a batch have to be held.
    """
    errors = jax.nn.one_hot(tokens, logits.shape[1], dtype=logits.dtype) - jax.nn.softmax(logits)
    return jnp.where(mask[:, None], errors, 0).T @ jnp.where(mask[:, None], hidden, 0)


def score_weighted_mean(
    reward: Float[Array, "B"],
    norm: Float[Array, "B"],
    group: Int[Array, "B"],
    epsilon: float = 0.0,
) -> Float[Array, "B"]:
    """b = Σ_j w_j R_j / (Σ_j w_j + ε) over the group.

    Args:
      reward, group: of the rollouts.
      norm: w, squared norm of the score.
      epsilon: ε; with 0 the baseline of equal rewards is exactly their value.
    """
    if not epsilon:
        # Norms that all round to 0 weigh alike: the baseline of equal rewards is their value.
        weights = jnp.where(group_sum(norm, group) > 0, norm, 1)
        return group_mean(reward, group, weights=weights)
    return group_sum(norm * reward, group) / (group_sum(norm, group) + epsilon)


def signal_to_noise(
    mean_norm: Float[Array, ""], sum_of_norms: Float[Array, ""], count: int, epsilon: float = 1e-8
) -> Float[Array, ""]:
    """‖x̄‖² / (tr Var(x) / N + ε) for N independent gradients x_i; 0 if all are 0.

    Args:
      mean_norm: ‖x̄‖², of the mean gradient.
      sum_of_norms: Σ ‖x_i‖². With x̄ it gives the variance (with N - 1), so that no gradient of a
        single rollout has to be kept.
      count: N, at least 2: rollouts, not tokens.
      epsilon: ε.
    Raises:
      ValueError: count below 2.
    """
    check_count(2, "signal_to_noise", count=count)
    variance = jnp.maximum(sum_of_norms - count * mean_norm, 0) / (count - 1)
    return mean_norm / (variance / count + epsilon)


def snr_learning_rate(snr: Float[Array, ""], base: float = 1.0) -> Float[Array, ""]:
    """η = η₀ · SNR / (1 + SNR), the step of least expected loss for a smooth noisy objective."""
    return base * snr / (1 + snr)


@part(writes={"advantage"})
def score_weighted(
    norm: Callable[[Context], Array] = logit_score_norm,
    epsilon: NonNegative = 0.0,
    reads: Iterable[str] = ("logp", "p_squared", "batch_statistics"),
) -> Transform:
    """A_i = R_i - b with the baseline of `score_weighted_mean`.

    Args:
      norm: context -> [B], squared norms of the scores.
      epsilon: ε, at least 0.
      reads: what `norm` reads, as in `Transform`.
    Source: OBLR-PO (reconstruction).
    """

    def apply(signals, context, state):
        reward, group = context.rollouts.reward, context.rollouts.group
        baseline = score_weighted_mean(reward, norm(context), group, epsilon)
        own = jnp.where(signals.mask, (reward - baseline)[:, None], 0)
        return replace(signals, advantage=own), state, {}

    return Transform(apply, reads=frozenset(reads), remark=group_of_one_remark)


def oblr_po(
    norm: Callable[[Context], Array] = logit_score_norm,
    epsilon: Epsilon = 0.0,
    reads: tuple[str, ...] = ("logp", "p_squared", "batch_statistics"),
) -> Recipe:
    """Rewards relative to their score-weighted mean, times the log-prob of the response.

    Args:
      norm: context -> [B], squared norms of the scores (w).
      reads: what `norm` reads.
    """
    return Recipe(
        objective=objective(
            advantage=score_weighted(norm, epsilon, reads),
            surrogate=reinforce(),
            aggregation=rollout_mean_token_sum(),
        )
    )


METHOD = Method(
    oblr_po,
    "OBLR-PO: A Theoretical Framework for Stable Reinforcement Learning",
    "",
    changes="advantage, surrogate",
    gradient="stopped",
    evidence="reconstruction",
    left_out="the learning rate by the gradient's ratio of signal to noise",
    reports="Qwen3-4B and 8B base: steadily above other policy gradients (abstract, no number)",
    traps=(
        "the norms are cheap ones in logit space: long confident answers count little; the own "
        "reward is in the baseline, a small bias; groups of equal rewards teach nothing"
    ),
)
