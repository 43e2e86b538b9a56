"""Signals of an advantage and the transforms that act on it."""

import jax
import numpy as np
from golden_vectors import array, rollouts, spec, stats

from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import reinforce

BATCH = rollouts("b")


def signals(advantage, *transforms, batch=BATCH):
    own = objective(advantage, transforms, surrogate=reinforce(), aggregation=token_mean())
    return own.signals(stats("b"), batch, own.init(spec(batch)), jax.random.key(0))


def with_reward(reward):
    return BATCH.replace(reward=array(reward, np.float64), outcome=array(reward, np.float64))
