"""R³'s vectors: two of the rewards say which rows are right and which can be read."""

import golden_vectors as golden
import jax.numpy as jnp
from adapters.common import recipe_with

from rlvr_jax.methods.guidance.reverse_curriculum import partial_credit
from rlvr_jax.objectives import generalized_advantages, token_rewards
from rlvr_jax.types import replace


def outputs(case, hyper):
    correct, readable = (
        jnp.asarray(golden.inputs(case)["multi_rewards"][:, k] > 0.5) for k in (0, 1)
    )
    batch = golden.rollouts(case)
    batch = batch.replace(
        outcome=correct.astype(batch.outcome.dtype),
        answer=jnp.where(readable, 0, -1 - batch.rollout_id),
    )
    method = recipe_with(
        hyper,
        "reverse_curriculum",
        kl_coefficient=hyper["kl_coef"],
        discount=hyper["gamma"],
        trace_decay=hyper["lam"],
    )
    # The stage `shape` would read grades, which a record does not have.
    score = partial_credit(correct, readable, hyper["partial"])
    (shaper,) = method.experience.stages.values()
    assert "right_or_readable" in shaper.label
    done = golden.evaluate(
        replace(method, experience=None), case, batch=batch.replace(reward=score)
    )
    ratio = batch.old_logp - batch.reference_logp
    rewards = token_rewards(score, batch.mask, ratio, hyper["kl_coef"])
    values = jnp.where(batch.mask, batch.records["values"], 0)
    raw = generalized_advantages(rewards, values, batch.mask, hyper["gamma"], hyper["lam"])
    return {
        **done.outputs(),
        "score": score,
        "token_rewards": rewards,
        "advantages_raw": raw,
        "returns": jnp.where(batch.mask, raw + values, 0),
    }
