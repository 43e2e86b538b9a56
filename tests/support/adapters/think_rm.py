"""Think-RM's vectors: a formula of the places and the graded rewards is the judge."""

import golden_vectors as golden
import numpy as np
from adapters.common import per_rollout

from rlvr_jax.experience.rewards.tournaments import play, round_robin
from rlvr_jax.methods import recipe
from rlvr_jax.methods.judges.think_rm import difference_table


def outputs(case, hyper):
    size = int(golden.inputs(case)["group_size"])
    quality = np.asarray(golden.rollouts(case, soft=True).outcome)

    def judge(pairs):
        strengths = [
            4 * (quality[i] - quality[j]) + 2 * np.sin(17 * (i % size) + 29 * (j % size))
            for i, j in pairs
        ]
        return np.stack([np.clip(np.round(strengths), -3, 3), np.zeros(len(pairs))], axis=1)

    def in_a_step(batch, pairs, actor, turn):
        del batch, actor, turn
        return judge(pairs), {}, ()

    done = golden.evaluate(recipe("think_rm", compare=in_a_step, epsilon=hyper["eps"]), case)

    groups = np.arange(len(quality)).reshape(-1, size)
    tables = [difference_table(size, rounds) for rounds in play(groups, round_robin, judge)]
    brought = np.asarray(done.batch.records["advantage"])
    return {
        "diff": np.concatenate(tables),
        "advantage": per_rollout(brought, done.batch),
        "advantages": done.signals.advantage,
    }
