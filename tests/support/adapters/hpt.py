"""HPT's vectors: the row of another policy in a group is its demonstration."""

import golden_vectors as golden
import numpy as np
from adapters.common import only, per_group, per_rollout

from rlvr_jax.methods import recipe
from rlvr_jax.methods.guidance.hpt import imitate_demonstrations, needs_demonstration, num_solved


def outputs(case, hyper):
    made = {
        "solved": hyper["gate"],
        "entropy_coefficient": 0.0,
        "max_length": golden.inputs(case)["mask"].shape[1],
    }
    done = golden.evaluate(recipe("hpt", imitation_coefficient=hyper["sft_coef"], **made), case)
    plain = golden.evaluate(recipe("hpt", imitation_coefficient=0.0, **made), case)
    imitated = golden.evaluate(only(imitate_demonstrations(1.0, hyper["gate"])), case)
    batch = done.batch
    failed = np.asarray(needs_demonstration(batch, hyper["gate"]))
    return {
        **done.outputs(),
        "solved": per_group(num_solved(batch), case),
        "gate": per_group(failed, case),
        "advantages": per_rollout(done.signals.advantage, batch),
        "rl_rows": np.asarray(done.signals.mask).any(axis=1),
        "sft_rows": failed & np.asarray(batch.records["off_policy"]),
        "loss_rl": plain.loss,
        "loss_sft": imitated.loss,
    }
