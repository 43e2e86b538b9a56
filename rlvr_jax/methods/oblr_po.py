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

from collections.abc import Callable

from jaxtyping import Array

from rlvr_jax.objectives.advantages.score_norms import logit_score_norm, score_weighted
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.algebra.parts import Context
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_sum
from rlvr_jax.objectives.surrogates.policy_gradient import reinforce
from rlvr_jax.types import Method, Recipe


def oblr_po(
    norm: Callable[[Context], Array] = logit_score_norm,
    epsilon: float = 0.0,
    reads: tuple[str, ...] = ("logp", "p_squared", "batch_statistics"),
) -> Recipe:
    """Rewards relative to their score-weighted mean, times the log-prob of the response.

    Args:
      norm: context -> [B], squared norms of the scores (w).
      epsilon: added to the sum of the norms; with 0 equal rewards have advantage 0 exactly.
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
    evidence="reconstruction",
    left_out="the learning rate by the gradient's ratio of signal to noise",
    reports="Qwen3-4B and 8B base: steadily above other policy gradients (abstract, no number)",
    traps=(
        "the norms are cheap ones in logit space: long confident answers count little; the own "
        "reward is in the baseline, a small bias; groups of equal rewards teach nothing"
    ),
)
