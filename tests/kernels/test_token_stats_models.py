"""token_stats at the vocabularies of real models, against float64 mathematics on their inputs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.kernels.operation import DIFFERENTIABLE
from rlvr_jax.kernels.token_stats import token_stats

MODELS = {  # width, vocabulary, soft-cap
    "Qwen2.5-0.5B": (896, 151_936, None),
    "Qwen3-8B": (4096, 151_936, None),
    "Llama-3": (4096, 128_256, None),
    "Gemma-3": (2560, 262_144, 30.0),
}
NEEDS = (
    *("logp", "entropy", "p_squared", "p_squared_logp", "varentropy", "second_logp"),
    *("nucleus_entropy", "kl", "reverse_kl", "js"),
)
TOKENS, OTHER_WIDTH = 64, 8
TILE = 2**14  # of the vocabulary in float64 at a time

# Beside what the rounding of a logit makes of it, which is measured: with AVX2 the plain product of
# these matrices is off by 2e-5 to 4e-5 where it is off most.
LOGARITHMS = 2e-5
MOMENTS = 5e-6
# The threshold of a nucleus may take in or leave out a token of that mass' rounding.
NUCLEUS = 1e-4
# Sums over V terms of either sign, relative to the largest entry.
GRADIENTS = {np.float32: 5e-5, jnp.bfloat16: 1e-2}


@jax.jit
def plain_product(hidden, rows):
    return jnp.matmul(hidden, rows.T, precision="highest")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, jnp.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("model", MODELS)
def test_values_and_gradients_agree_with_float64(model, dtype):
    width, vocabulary, softcap = MODELS[model]
    random = np.random.default_rng(0)

    def normal(*shape, scale=1.0):
        return (random.standard_normal(shape, np.float32) * np.float32(scale)).astype(dtype)

    # Logits with a spread of 4, as a trained model's; entropies from 2 to 11 nats.
    hidden, unembedding = normal(TOKENS, width), normal(vocabulary, width, scale=4 / width**0.5)
    other = normal(TOKENS, OTHER_WIDTH), normal(vocabulary, OTHER_WIDTH)
    targets = random.integers(0, vocabulary, TOKENS)
    temperature = random.uniform(0.5, 5, TOKENS).astype(np.float32)
    weights = random.normal(size=(len(NEEDS), TOKENS))

    def measure(implementation, hidden, unembedding, targets, temperature, weights, other):
        stats = token_stats(
            hidden,
            unembedding,
            targets,
            needs=NEEDS,
            temperature=temperature,
            softcap=softcap,
            second_temperature=0.8,
            top_p=0.9,
            other=other,
            implementation=implementation,
        )
        values = [stats.get(name) for name in NEEDS]
        terms = [jnp.sum(w.astype(x.dtype) * x) for w, x in zip(weights, values, strict=True)]
        return sum(terms[1:], start=terms[0]), dict(zip(NEEDS, values, strict=True))

    def measured(hidden, unembedding):
        return measure("xla", hidden, unembedding, targets, temperature, weights, other)

    assert set(NEEDS) <= set(DIFFERENTIABLE)
    gradients, stats = jax.jit(jax.grad(measured, (0, 1), has_aux=True))(hidden, unembedding)

    # The reference gets one token after the other, its logits as a matrix of width 1: those of the
    # larger models would not fit into 24 GB in float64.
    tiles = [slice(start, start + TILE) for start in range(0, vocabulary, TILE)]
    single, hidden = hidden.astype(np.float32), hidden.astype(np.float64)
    logits = np.concatenate([hidden @ unembedding[t].astype(np.float64).T for t in tiles], axis=1)
    singles = (np.asarray(plain_product(single, unembedding[t].astype(np.float32))) for t in tiles)
    errors = (np.max(np.abs(z - logits[:, t])) for z, t in zip(singles, tiles, strict=True))
    rounding = max(errors) / np.min(temperature)

    def expect(token):
        logits, target, temperature, weights, other_hidden = token
        own = target[None], temperature[None], weights[:, None], (other_hidden[None], others)

        def of_logits(logits):
            return measure("reference", jnp.ones((1, 1)), logits[:, None], *own)

        return jax.grad(of_logits, has_aux=True)(logits)

    others = jnp.asarray(other[1], jnp.float64)
    tokens = logits, targets, temperature.astype(np.float64), weights.T, other[0].astype(np.float64)
    slopes, expected = jax.jit(lambda tokens: jax.lax.map(expect, tokens))(tokens)
    slopes = np.asarray(slopes)
    expected = {name: np.asarray(value)[:, 0] for name, value in expected.items()}
    tolerances = {"nucleus_entropy": NUCLEUS, "p_squared": MOMENTS, "p_squared_logp": MOMENTS}
    for name, value in stats.items():
        error = np.max(np.abs(np.float64(value) - expected[name]))
        # Varentropies are squares of log-probs: their size is up to 30 here.
        scale = max(1.0, np.max(np.abs(expected[name]))) if name == "varentropy" else 1.0
        bound = tolerances.get(name, LOGARITHMS + rounding)
        assert error <= bound * scale, name
    products = [slopes[:, t] @ unembedding[t].astype(np.float64) for t in tiles]
    difference = np.max(np.abs(np.float64(gradients[0]) - sum(products)))
    assert difference <= GRADIENTS[dtype] * np.max(np.abs(sum(products)))
    wanted = ((t, slopes[:, t].T @ hidden) for t in tiles)
    found = [
        (np.max(np.abs(np.float64(gradients[1][t]) - tile)), np.max(np.abs(tile)))
        for t, tile in wanted
    ]
    assert max(d for d, _ in found) <= GRADIENTS[dtype] * max(size for _, size in found)
