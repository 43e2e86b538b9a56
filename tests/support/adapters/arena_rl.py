"""ArenaRL's vectors: a formula of the places and the graded rewards is the judge."""

import golden_vectors as golden
import numpy as np
from adapters.common import row_advantages

from rlvr_jax.experience.rewards.tournaments import play
from rlvr_jax.methods import recipe
from rlvr_jax.methods.judges.arena_rl import (
    ANCHOR,
    KNOCKOUT,
    ROBIN,
    anchor_scores,
    knockout_places,
    ranks,
    wins,
)


def outputs(case, hyper):
    batch, size = golden.rollouts(case), int(golden.inputs(case)["group_size"])
    quality = np.asarray(golden.rollouts(case, soft=True).outcome)

    def score(row, other):
        return 10 * quality[row] + 3 * np.sin(37 * (row % size) + 11 * (other % size))

    def judge(pairs):
        return np.array([[score(i, j), score(j, i)] for i, j in pairs])

    def in_a_step(batch, pairs, actor, turn):
        del batch, actor, turn
        return judge(pairs), {}, ()

    found = {}
    for name, arena in (("anchor", ANCHOR), ("robin", ROBIN), ("knockout", KNOCKOUT)):
        method = recipe("arena_rl", arena=arena, compare=in_a_step, epsilon=hyper["eps"])
        found[f"adv_{name}"] = row_advantages(method, golden.prepared(method, batch))

    def of_groups(arena, standing):
        groups = np.arange(len(quality)).reshape(-1, size)
        return np.concatenate(
            [standing(size, rounds) for rounds in play(groups, arena.schedule, judge)]
        )

    return {
        **found,
        "anchor_score": of_groups(ANCHOR, anchor_scores),
        "anchor_rank": of_groups(ANCHOR, lambda n, rounds: ranks(anchor_scores(n, rounds))),
        "wins": of_groups(ROBIN, wins),
        "robin_rank": of_groups(ROBIN, lambda n, rounds: ranks(wins(n, rounds))),
        "knockout_rank": of_groups(KNOCKOUT, knockout_places),
    }
