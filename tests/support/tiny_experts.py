"""A tiny mixture of experts of the Qwen3-MoE kind, and rollouts with its routes."""

import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.policy import Model, named_config
from rlvr_jax.rollout import Prompts, Sampling, sample
from rlvr_jax.types import replace

VOCABULARY, PROMPTS, SAMPLES, WIDTH, BUDGET = 32, 4, 4, 6, 10
EXPERTS, CHOSEN = 8, 2
LENGTH = np.array([6, 5, 4, 6], np.int32)
SHAPE = dict(
    mlp_width=16, num_experts=EXPERTS, experts_per_token=CHOSEN, normalized_experts=True
) | dict(qk_norm=True)


def experts(dtype="float64", **shape):
    """The model, and weights with which few choices of an expert are clear."""
    model = Model(named_config("tiny", VOCABULARY, compute_dtype=dtype, **SHAPE, **shape))
    random = np.random.default_rng(0)
    shapes = jax.eval_shape(model.init, jax.random.key(0))

    def weights(leaf):
        return jnp.asarray(random.normal(0, 0.3, leaf.shape), leaf.dtype)

    return model, jax.tree.map(weights, shapes)


def sampled(model, params, record_routes=True, **how):
    """Responses to prompts that begin with two equal tokens; stop token 1."""
    tokens = np.random.default_rng(1).integers(3, VOCABULARY, (PROMPTS, WIDTH)).astype(np.int32)
    tokens[:, :2] = 7
    prompts = Prompts(
        tokens, LENGTH, np.arange(PROMPTS, dtype=np.int32), np.zeros(PROMPTS, np.int32)
    )
    small = dict(samples=SAMPLES, response_tokens=BUDGET, sampling=Sampling(), stop_tokens=(1,))
    key = jax.random.key(0)
    found = sample(model, params, prompts, key, record_routes=record_routes, **small | how)
    return replace(found, reward=jnp.arange(len(found.group), dtype=found.reward.dtype) % 3)
