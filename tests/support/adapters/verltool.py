"""VerlTool's vectors: odd turns are observations; rows that end within three tokens of the budget
never ended, and void rows made no call (the second reward) and earned nothing."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import both, recipe_with


def masks(case, hyper):
    batch, data = golden.rollouts(case), golden.inputs(case)
    own = np.asarray(batch.mask & (batch.records["turn"] % 2 == 0))
    unfinished = np.asarray(batch.mask).sum(axis=1) >= batch.mask.shape[1] - hyper["slack"]
    void = (data["multi_rewards"][:, 1] == 0) & (data["rewards"] == 0)
    return {
        "": own,
        "_no_overlong": own & ~unfinished[:, None],
        "_no_void": own & ~void[:, None],
        "_unmasked": np.asarray(batch.mask),
    }


def outputs(case, hyper):
    named = {f"loss_mask{suffix}": mask for suffix, mask in masks(case, hyper).items()}
    return losses(case, hyper) | named


@both
def losses(case, hyper, soft):
    method = recipe_with(hyper, "verltool", describe=False)
    whole = golden.rollouts(case, soft)
    # Advantages are those of all rows, whatever of them is learned from.
    advantage = golden.evaluate(method, case, batch=whole).signals.advantage
    found = {}
    for suffix, mask in masks(case, hyper).items():
        batch = whole.replace(mask=jnp.asarray(mask), advantage=advantage)
        done = golden.evaluate(method, case, batch=batch)
        found |= done.outputs(suffix)
    return found | {"advantages": advantage}
