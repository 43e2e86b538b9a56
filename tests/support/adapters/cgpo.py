"""CGPO's vectors: the second component of the reward is the judges' verdict."""

import functools

import golden_vectors as golden
import numpy as np
from adapters.common import per_rollout

from rlvr_jax.methods import recipe
from rlvr_jax.methods.judges.cgpo import (
    codpo,
    constrained_reward,
    crpg,
    crraft,
    feasible_preference_choice,
)

LEFT_OUT = {
    "regularised": "compared in the advantages, which centre it",
    "raft_best": "compared in the loss and gradient of that row",
}


def outputs(case, hyper):
    made = functools.partial(
        recipe,
        "cgpo",
        kl_max=hyper["kl_max"],
        scale=hyper["beta"],
        likelihood_coefficient=hyper["lam"],
    )
    gradient, preference, imitation = (
        golden.evaluate(made(optimizer=optimizer), case, soft=True)
        for optimizer in (crpg, codpo, crraft)
    )
    batch = gradient.batch
    given = constrained_reward(batch, (1,))
    better, worse = feasible_preference_choice(given, batch)
    return {
        **gradient.outputs(),
        **preference.outputs("_codpo"),
        **imitation.outputs("_raft"),
        "calibrated": given.calibrated,
        "satisfied": given.feasible,
        "constrained": given.constrained,
        "advantages": per_rollout(gradient.signals.advantage, batch),
        "codpo_plus": row_of_group(better, case),
        "codpo_minus": row_of_group(worse, case),
    }


def row_of_group(chosen, case):
    """Number of the one chosen row of each group, -1 where there is none."""
    table = np.asarray(chosen).reshape(-1, int(golden.inputs(case)["group_size"]))
    rows = np.arange(table.size).reshape(table.shape)
    return np.where(table.any(axis=1), (table * rows).sum(axis=1), -1)
