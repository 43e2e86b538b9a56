"""MPO: a judge's rubric is rewritten while the policy trains on it.

"Toward Evaluative Thinking: Meta Policy Optimization with Evolving Reward Models",
https://github.com/minnesotanlp/mpo

    R    = Σ_k points_k (published), or the mean of points_k / maximum_k
    r_t  = R on the last token, -β (log π_old - log π_ref) on every one
    Â    = GAE with λ = 0.95, whitened; loss = Σ PPO clip / Σ n_i

The published sum pays more for a longer rubric, and rewards before and after a rewrite are not
comparable. The mean is therefore the default. An item without readable points leaves the mean. A
response without any leaves its batch; in the published form its reward is 0. Points are the first
rewards of the task. `rlvr_jax.verifiers.texts.meta_policy` reads points, and a model rewrites a
rubric between two runs (`evolve`).

Left out: the authors' judge (use `--judge`); the rewriting of its rubric within a run.
Reports: essays, summaries, ethics and maths: equal to a fixed expert prompt or better. No collapse
where the policy exploits the first prompt (no numbers).
Traps: Without `evolve` between runs, the method is PPO on a fixed rubric. After a rewrite, the
critic's scale does not fit.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from rlvr_jax.experience import by_rubric, experience, fraction_of_rubric, shape
from rlvr_jax.objectives import clipped_with_critic, generalized_advantage
from rlvr_jax.types import Criterion, Method, Recipe, arguments_of
from rlvr_jax.types.hyperparameters import KLCoefficient, TraceDecay


def sum_of_rubric(scores: Array, rubric: Sequence[Criterion]) -> Array:
    """The sum of the points; a criterion without a score has 0."""
    most = jnp.asarray([criterion.maximum for criterion in rubric], scores.dtype)[None]
    return jnp.sum(jnp.where(jnp.isnan(scores), 0, scores) * most, axis=1)


@arguments_of(clipped_with_critic, "clip_low", "clip_high", "value_clip")
def meta_policy(
    maxima: Sequence[float] = (1.0, 1.0),
    summed: bool = False,
    kl_coefficient: KLCoefficient = 0.05,
    trace_decay: TraceDecay = 0.95,
    **clips: Any,
) -> Recipe:
    """Applies PPO with a critic to the points of a rubric.

    Args:
      maxima: maximum points of each item, the first rewards of the task.
      summed: whether the reward is the published sum, in which unreadable points are 0.
    """
    rubric = [Criterion(f"{number}", maximum=most) for number, most in enumerate(maxima)]
    estimator = generalized_advantage(1.0, trace_decay, kl_coefficient)
    reward = by_rubric(rubric, sum_of_rubric if summed else fraction_of_rubric)
    fitted = clipped_with_critic(estimator, **clips)
    return Recipe(**fitted, experience=experience(stages=[shape(reward)]))


METHOD = Method(meta_policy, changes="reward", baseline="other")
