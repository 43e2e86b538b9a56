"""RL^V's vectors: the slot after the response stands for the appended question."""

import functools

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
from adapters.common import only

from rlvr_jax.experience import choose, own_score, vote_sum
from rlvr_jax.methods import recipe
from rlvr_jax.methods.judges.rl_v import verdict_loss
from rlvr_jax.objectives.statistics.groups import finished_rows

LEFT_OUT = {"majority_vote": "a tie goes to the smallest answer, with `choose` to the first row"}


def outputs(case, hyper):
    data, batch = golden.inputs(case), golden.rollouts(case)
    after = golden.token_after(data["mask"])
    batch = batch.replace(truncated=jnp.asarray(after >= data["mask"].shape[1]))
    verdict = ([hyper["yes"], hyper["no"]], after)
    stats_of = functools.partial(golden.token_stats, tokens=batch.tokens, verdict=verdict)
    evaluate = functools.partial(golden.evaluate, case=case, stats_of=stats_of, batch=batch)
    done = evaluate(recipe("rl_v", verification_coefficient=hyper["lam"]))
    usable, stats = finished_rows(batch), stats_of(jnp.asarray(data["logits"]))
    score = jnp.where(usable, jnp.exp(stats.records["verdict_logp"][:, 0]), 0)

    def answer(rule):
        chosen = choose(score, batch.records["answer"], batch.group, batch.rollout_id, rule)
        return batch.records["answer"][chosen]

    return {
        **done.outputs(),
        "usable": usable,
        "score": score,
        "score_two_way": np.asarray(jax.nn.softmax(stats.records["verdict_logp"]))[:, 0],
        "loss_rl": evaluate(recipe("rl_v", verification_coefficient=0.0)).loss,
        "loss_verify": evaluate(only(verdict_loss(1.0))).loss,
        "best_of_n": answer(own_score),
        "weighted_vote": answer(vote_sum),
    }
