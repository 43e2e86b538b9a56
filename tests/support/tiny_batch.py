"""A batch of eight rows and a policy that scores it in no time, for tests of an update.

Arrays in float64 need `jax.enable_x64`, which the tests have on.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.policy import Model, ModelConfig
from rlvr_jax.types import Rollouts

ROWS, BUDGET = 8, 5
# Row 2 is empty; the two groups lie across every split into micro-batches and devices.
LENGTH = np.array([5, 3, 0, 1, 5, 2, 4, 5])
GROUP = np.array([0, 1, 0, 1, 1, 0, 1, 0])
REWARD = np.array([1.0, 0.0, 0.0, 1.0, 0.5, 1.0, 0.0, 0.0])


@functools.cache
def tiny(dtype="float64", vocabulary=11):
    """A model, and weights with which its distributions are far from uniform."""
    model = Model(
        ModelConfig(
            vocab_size=vocabulary,
            width=8,
            num_layers=2,
            num_heads=2,
            num_kv_heads=1,
            head_size=4,
            mlp_width=16,
            compute_dtype=dtype,
        )
    )
    return model, weights(model, dtype, seed=0)


def weights(model, dtype, seed):
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    random = np.random.default_rng(seed)
    return jax.tree.map(lambda s: jnp.asarray(random.normal(0, 0.5, s.shape), dtype), shapes)


@functools.cache
def second_policy(dtype="float64"):
    """Other weights of the model, for methods that compare two policies."""
    return weights(tiny(dtype)[0], dtype, seed=2)


@functools.cache
def batch(dtype="float64"):
    """Rollouts with uneven lengths, an empty row, and old log-probs some way off."""
    random = np.random.default_rng(1)
    mask = np.arange(BUDGET) < LENGTH[:, None]

    def logp():
        return np.where(mask, random.uniform(-4, -1, mask.shape), 0).astype(dtype)

    def whole(values):
        return np.asarray(values, np.int32)

    arrays = dict(
        prompt_tokens=whole(random.integers(0, 11, (ROWS, 3))),
        prompt_length=whole([3, 1, 2, 2, 1, 3, 3, 2]),
        tokens=whole(np.where(mask, random.integers(0, 11, mask.shape), 0)),
        length=whole(LENGTH),
        mask=mask,
        group=whole(GROUP),
        rollout_id=whole(np.arange(ROWS)),
        parent=whole(np.full(ROWS, -1)),
        branch_position=whole(np.full(ROWS, -1)),
        truncated=LENGTH == BUDGET,
        behaviour_logp=logp(),
        entropy=np.zeros(mask.shape, dtype),
        temperature=np.ones(mask.shape, dtype),
        outcome=REWARD.astype(dtype),
        reward=REWARD.astype(dtype),
        valid=np.ones(ROWS, bool),
        weight_version=whole(np.zeros(ROWS)),
        old_logp=logp(),
        reference_logp=logp(),
        values=logp(),
        critic_values=np.stack([REWARD / 2, LENGTH / BUDGET], axis=1).astype(dtype),
        prompt_logp=random.uniform(-4, 0, (ROWS, 3)).astype(dtype),
        answer=whole([0, 1, 2, 1, 3, 0, 1, 2]),
        component_rewards=np.stack([REWARD, LENGTH / BUDGET], axis=1).astype(dtype),
        teacher_logp=logp(),
        process_reward=logp(),
    )
    return jax.tree.map(jnp.asarray, Rollouts.of_arrays(arrays))
