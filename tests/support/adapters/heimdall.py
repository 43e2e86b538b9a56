"""Heimdall's vectors: graded rewards stand for verdicts."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np

from rlvr_jax.experience import answer_clusters, choose, lower_bound, own_score, vote_count
from rlvr_jax.methods import recipe
from rlvr_jax.objectives import group_all_equal, group_count, group_mean


def outputs(case, hyper):
    batch = golden.rollouts(case)
    number, alpha = hyper["M"], hyper["alpha"]
    soft = golden.rollouts(case, soft=True).outcome
    thresholds = (jnp.arange(number, dtype=soft.dtype) + 0.5) / number
    verdict = (soft[:, None] > thresholds[None]).astype(soft.dtype)
    score = verdict.mean(axis=1)
    clusters = answer_clusters(batch.records["answer"], batch.group)
    count = group_count(clusters).astype(soft.dtype)
    bound = lower_bound(alpha, number)

    def chosen(rule):
        return choose(score, batch.records["answer"], batch.group, batch.rollout_id, rule)

    method = recipe("heimdall")

    def reward(verdict):
        truth = (verdict == batch.outcome).astype(verdict.dtype)
        return golden.prepared(method, batch.replace(outcome=truth, reward=truth)).reward

    return {
        "verdict": verdict,
        "answer_mean": group_mean(score, clusters),
        "answer_count": count,
        "penalty": group_mean(score, clusters) - bound(score, clusters, batch.group),
        "score": bound(score, clusters, batch.group),
        "picked": chosen(bound),
        "picked_majority": chosen(vote_count),
        "picked_best_of_n": chosen(own_score),
        "verifier_reward": jnp.stack([reward(column) for column in verdict.T], axis=1),
        "problem_used": ~np.asarray(group_all_equal(batch.outcome, batch.group)),
    }
