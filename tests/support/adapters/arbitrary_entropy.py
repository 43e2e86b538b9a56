"""The vectors of arbitrary-entropy control: the second half of every group is the resampled one."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import both

from rlvr_jax.methods import recipe
from rlvr_jax.methods.entropy.arbitrary_entropy import (
    LastEntropy,
    choose_controllers,
    normalized_by_origin,
)
from rlvr_jax.objectives import has_tokens, masked_mean, objective, ppo_clip, token_mean
from rlvr_jax.types import Recipe

STAGE = "the stage chooses it, tests/methods/test_arbitrary_entropy.py"
LEFT_OUT = {
    f"temperature{suffix}{kind}": STAGE for suffix in ("", "_below") for kind in ("", "_soft")
}


@both
def outputs(case, hyper, soft):
    batch = golden.rollouts(case, soft)
    size = int(golden.inputs(case)["group_size"])
    resampled = np.arange(batch.mask.shape[0]) % size >= size // 2
    batch = batch.replace(off_policy=jnp.asarray(resampled))
    entropy = -masked_mean(batch.old_logp, batch.mask)
    before = objective(
        normalized_by_origin(hyper["eps"]), surrogate=ppo_clip(0.2, 0.2), aggregation=token_mean()
    )
    advantage = golden.evaluate(Recipe(before), case, soft, batch=batch).signals.advantage
    found = {"advantages_before": advantage, "entropy_estimate": entropy}
    for suffix, target in (("", hyper["target"]), ("_below", hyper["target_below"])):
        choice = {"threshold": hyper["threshold"], "max_samples": hyper["max_samples"]}
        method = recipe(
            "arbitrary_entropy",
            target=target,
            clip_low=hyper["clip"],
            clip_high=hyper["clip"],
            dual_clip=hyper["dual"],
            epsilon=hyper["eps"],
            **choice,
        )
        state = {"imitate_controllers": LastEntropy(entropy)}
        done = golden.evaluate(method, case, soft, state=state, batch=batch)
        controller, keep = choose_controllers(
            jnp.max(jnp.where(batch.mask, advantage, -jnp.inf), axis=1),
            batch.records["off_policy"],
            batch.rollout_id,
            has_tokens(batch.mask),
            too_high=entropy > target,
            **choice,
        )
        outputs_here = {
            **done.outputs(),
            "n_controller": done.metrics["controllers"],
            "controller": controller,
            "keep": keep,
        }
        found |= {f"{name}{suffix}": value for name, value in outputs_here.items()}
    return found
