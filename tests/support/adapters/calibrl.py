"""CalibRL's vectors: the row of another policy in a group is its expert.

The code reads what stands behind the expert's end: there, its row goes on to the budget.
"""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
from adapters.common import row_advantages

from rlvr_jax.methods import recipe
from rlvr_jax.methods.guidance.calibrl import calibration_loss, expert_level


def outputs(case, hyper):
    guided = {
        "coefficient": hyper["coef"],
        "slope": hyper["slope"],
        "correct_above": hyper["pass_at"],
    }
    trust = {
        "clip_low": hyper["clip"],
        "clip_high": hyper["clip"],
        "dual_clip": hyper["dual_clip"],
    }
    method = recipe("calibrl", **guided, **trust)
    plain = recipe("calibrl", **{**guided, "coefficient": 0.0}, **trust)
    batch = golden.rollouts(case)
    padded = with_padding(case, batch)
    done = golden.evaluate(method, case, batch=padded)
    masked = golden.evaluate(method, case)
    pg = golden.evaluate(plain, case)

    own = np.asarray(batch.mask) & ~np.asarray(batch.records["off_policy"])[:, None]
    level, _ = expert_level(
        padded.old_logp, padded.mask, padded.records["off_policy"], padded.group
    )
    delta = golden.stats(case).logp - level
    advantage = row_advantages(method, batch)
    weight = jnp.abs(advantage)[:, None]
    correct = batch.outcome > hyper["pass_at"]
    token_loss = weight * calibration_loss(delta, correct, hyper["slope"])
    return {
        **done.outputs(),
        **masked.outputs("_expert_mask"),
        "advantages": np.where(batch.mask, np.asarray(advantage)[:, None], 0),
        "delta": np.where(own, delta, 0),
        "guided_token_loss": np.where(own, token_loss, 0),
        "pg_loss": pg.loss,
        "guided_loss": done.metrics["calibration_loss"],
        "guided_loss_expert_mask": masked.metrics["calibration_loss"],
    }


def with_padding(case, batch):
    """The record in which the experts' rows are full."""
    data = golden.inputs(case)
    old = jax.nn.log_softmax(data["old_logits"])
    old = np.take_along_axis(np.asarray(old), data["tokens"][..., None], axis=-1)[..., 0]
    expert = np.asarray(batch.records["off_policy"])[:, None]
    return batch.replace(
        mask=jnp.asarray(np.where(expert, True, batch.mask)),
        old_logp=jnp.asarray(np.where(expert, old, batch.old_logp)),
    )
