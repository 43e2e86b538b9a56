"""SPAE's vectors. What the probes would say is made of the steps themselves.

The confidence of a step is that of its own tokens, its accuracy the sum of its process rewards,
moved from [-1, 1] to [0, 1].
"""

import golden_vectors as golden
import jax.numpy as jnp
from adapters.common import both, recipe_with

from rlvr_jax.methods.credit.spae import credit_potential, step_potential
from rlvr_jax.objectives.advantages.group_relative import group_centered
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.statistics.steps import at_tokens, find_steps, step_mean, step_sum
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.types import Recipe


@both
def outputs(case, hyper, soft):
    credit = (hyper["xi"], hyper["alpha"], hyper["saturation"], hyper["eps"])
    method = recipe_with(hyper, "spae", potential_bonus=hyper["xi"], fade=hyper["alpha"])
    raw = Recipe(
        objective(
            group_centered(),
            [credit_potential(*credit)],
            surrogate=ppo_clip(hyper["clip_low"], hyper["clip_high"]),
            aggregation=token_mean(),
        )
    )
    batch = golden.rollouts(case, soft)
    steps = find_steps(batch.records["step"], batch.mask)
    confidence = jnp.where(steps.exists, jnp.exp(-step_mean(batch.entropy, steps)), 0)
    accuracy = (step_sum(batch.records["process_reward"], steps) + 1) / 2
    batch = batch.replace(
        probe_confidence=at_tokens(confidence, steps),
        probe_accuracy=at_tokens(accuracy, steps),
    )
    done = golden.evaluate(method, case, soft, batch=batch)
    how = {"fade": hyper["alpha"], "saturation": hyper["saturation"], "epsilon": hyper["eps"]}
    potential, factor, bonus = step_potential(confidence, accuracy, steps, batch, **how)
    return {
        **done.outputs(),
        "confidence": batch.records["probe_confidence"],
        "accuracy": batch.records["probe_accuracy"],
        "potential": at_tokens(potential, steps),
        "saturation_factor": at_tokens(factor, steps),
        "difference_bonus": at_tokens(bonus, steps),
        "advantages_raw": golden.evaluate(raw, case, soft, batch=batch).signals.advantage,
    }
