"""SWEET-RL's vectors: the critic is the current policy; `_turns` is the paper's score."""

import golden_vectors as golden

from rlvr_jax.methods import recipe
from rlvr_jax.methods.agents.sweet_rl import turn_sum_score
from rlvr_jax.objectives.regularizers.turn_preferences import (
    best_in_group,
    pair_losses,
    pairs_with_best,
    token_mean_score,
)

LEFT_OUT = {"turn_advantage": "the worth of a turn, which `sweet_rl_policy` measures in a run"}


def outputs(case, hyper):
    batch, beta = golden.rollouts(case, True), hyper["beta"]
    log_ratio = golden.stats(case).logp - batch.reference_logp
    best = best_in_group(batch.reward, batch.group, batch.rollout_id)
    pairs = pairs_with_best(batch, best)
    found = {"chosen": best}
    for suffix, score in (("", token_mean_score), ("_turns", turn_sum_score)):
        done = golden.evaluate(recipe("sweet_rl", coefficient=beta, score=score), case, soft=True)
        scores = score(log_ratio, batch)
        found |= {
            **done.outputs(suffix),
            f"score{suffix}": scores,
            f"pair_loss{suffix}": pair_losses(scores, best, pairs, beta),
        }
    return found
