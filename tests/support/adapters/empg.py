"""EMPG's vectors, with reasoning steps and with turns (`_turn`)."""

import golden_vectors as golden
from adapters.common import recipe_with

from rlvr_jax.methods.agents.empg import credit_step_entropy, step_uncertainty
from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.statistics.steps import at_tokens, find_steps
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.types import Recipe


def outputs(case, hyper):
    found = {}
    for ids, suffix in (("step", ""), ("turn", "_turn")):
        for soft in (False, True):
            values = one(case, hyper, ids, soft)
            named = {f"{name}{suffix}": value for name, value in values.items()}
            found |= golden.named(named, soft)
    return found


def one(case, hyper, ids, soft):
    method = recipe_with(
        hyper,
        "empg",
        scale_rate=hyper["k"],
        clarity_rate=hyper["k_future"],
        clarity_bonus=hyper["zeta"],
        ids=ids,
    )
    credit = credit_step_entropy(hyper["k"], hyper["k_future"], hyper["zeta"], ids)
    uncentered = Recipe(
        objective(
            group_normalized(hyper["eps"]),
            [credit],
            surrogate=ppo_clip(hyper["clip_low"], hyper["clip_high"]),
            aggregation=token_mean(),
        )
    )
    done = golden.evaluate(method, case, soft)
    batch = done.batch
    steps = find_steps(batch.records[ids], batch.mask)
    said = step_uncertainty(batch.entropy, steps, batch, hyper["k"], hyper["k_future"])
    return {
        **done.outputs(),
        "step_entropy": at_tokens(said.entropy, steps),
        "step_entropy_scaled": at_tokens(said.scaled, steps),
        "scale": at_tokens(said.scale, steps),
        "advantages_uncentred": golden.signals(uncentered, case, soft).advantage,
    }
