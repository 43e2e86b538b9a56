"""MEL's vectors: the row of another policy in a mixed group is what was said about its answers."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np

from rlvr_jax.experience.stages.choices.pairs import mixed_groups
from rlvr_jax.methods import recipe
from rlvr_jax.types import replace


def outputs(case, hyper):
    trust = {"clip_low": hyper["clip"], "clip_high": hyper["clip"], "epsilon": hyper["std_eps"]}
    batch = golden.rollouts(case)
    foreign = np.asarray(batch.records["off_policy"])
    graded = golden.experience_batch(batch)
    outcomes = graded.by_group(np.where(foreign, np.nan, graded.rollouts.outcome), np.nan)
    mixed = mixed_groups(outcomes)
    said = foreign & mixed[np.asarray(batch.group)]
    # What was said is a group of its own, and no answer.
    rows = np.arange(len(foreign), dtype=np.int32)
    batch = batch.replace(
        group=jnp.asarray(np.where(foreign, len(rows) + rows, np.asarray(batch.group))),
        mask=batch.mask & ~jnp.asarray(foreign)[:, None],
        supervised=jnp.asarray(said),
    )

    def evaluated(weight):
        method = replace(recipe("mel", imitation=weight, **trust), experience=None)
        return golden.evaluate(method, case, batch=batch)

    done, plain = evaluated(hyper["lam"]), evaluated(0.0)
    return {
        **done.outputs(),
        "mixed": mixed,
        "text_mask": batch.supervised_tokens,
        "pg_loss": plain.loss,
        "nll": done.metrics["imitation_loss"],
    }
