"""MDPO: an unclipped ratio, and an exact KL to the old policy whose weight grows.

Tomar et al. 2020, "Mirror Descent Policy Optimization", https://arxiv.org/abs/2005.09814

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ [-A ρ + KL(π ‖ π_old) / t_k] / Σ n_i,  t_k = 1 - (k - 1) / K

The KL is over the whole vocabulary at each token. k is the outer step, K (`num_steps`) their number
in the run. Several updates per batch are essential, because the KL has no gradient at the first.
The paper is about control tasks, with a critic's advantages and 10 gradient steps per outer step.
The form for tokens and K = 400 are ours.

Left out: the critic; the Tsallis divergence; the off-policy variant; the form that fits the
log-ratio of the response to its reward.
Reports: MuJoCo: on-policy at least as good as TRPO and PPO, off-policy as SAC (no numbers).
Traps: With one update per batch, the method is plain policy gradient. 1 / t_k is largest at the end
of the run. Ratios are not clipped.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int

from rlvr_jax.objectives import Transform, group_normalized, masked_mean, objective, token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import importance_weighted
from rlvr_jax.types import LOSS_ON_BRACKETS, Method, Recipe, part, replace
from rlvr_jax.types.hyperparameters import Epsilon, StepUpdates, TotalSteps


class MirrorState(NamedTuple):
    """Number of updates made."""

    updates: Int[Array, ""]


@part(writes={"penalty"})
def mirror_descent_kl(num_steps: TotalSteps, updates_per_step: StepUpdates) -> Transform:
    """Adds KL(π ‖ π_old) / t_k to the loss of each token.

    k = 1 + ⌊updates / updates_per_step⌋, at most K = `num_steps`. An update without tokens does not
    count, so later outer steps shift.

    Metrics: mirror_step_size (step size t_k), mirror_kl (mean divergence, nats).
    """

    def init(spec):
        return MirrorState(jnp.zeros((), jnp.int32))

    def apply(signals, context, state):
        kl = context.stats.records["kl"]
        k = jnp.minimum(1 + state.updates // updates_per_step, num_steps).astype(kl.dtype)
        size = 1 - (k - 1) / num_steps
        signals = replace(signals, penalty=signals.penalty + kl / size)
        updates = state.updates + jnp.any(signals.mask).astype(jnp.int32)
        metrics = {"mirror_step_size": size, "mirror_kl": masked_mean(kl, signals.mask)}
        return signals, MirrorState(updates), metrics

    def remark(plan):
        if plan.updates_per_batch == 1:
            return "has no effect: with one update per batch the policy has not moved."
        if plan.updates_per_batch != updates_per_step:
            return (
                f"counts an outer step every {updates_per_step} updates, and a batch has"
                f" {plan.updates_per_batch}: the weight of the divergence changes within a batch."
            )
        return None

    return Transform(apply, init=init, reads={"kl"}, remark=remark)


def mdpo(
    num_steps: TotalSteps = 400, updates_per_step: StepUpdates = 10, epsilon: Epsilon = 1e-6
) -> Recipe:
    """Applies GRPO's advantages with the token mean and a penalty instead of a clip.

    Args:
      num_steps: outer steps of the run, one batch each (K).
      updates_per_step: gradient steps on one batch.
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=importance_weighted(),
            regularizers=[mirror_descent_kl(num_steps, updates_per_step)],
            aggregation=token_mean(),
        )
    )


METHOD = Method(
    mdpo, changes="surrogate, regularizer", evidence="reconstruction", shown=LOSS_ON_BRACKETS
)
