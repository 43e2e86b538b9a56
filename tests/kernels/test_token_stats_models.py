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

# float32 logits of |z| < 50 have a spacing of 4e-6; their D terms add some roundings.
LOGARITHMS = 2e-5
MOMENTS = 5e-6
# The threshold of a nucleus may take in or leave out a token of that mass' rounding.
NUCLEUS = 1e-4
# Sums over V terms of either sign, relative to the largest entry.
GRADIENTS = {np.float32: 5e-5, jnp.bfloat16: 1e-2}


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

    def evaluate(implementation, hidden, unembedding, other, temperature):
        def loss(hidden, unembedding):
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
            values = [getattr(stats, name) for name in NEEDS]
            terms = [jnp.sum(w.astype(x.dtype) * x) for w, x in zip(weights, values, strict=True)]
            return sum(terms[1:], start=terms[0]), dict(zip(NEEDS, values, strict=True))

        return jax.jit(jax.grad(loss, (0, 1), has_aux=True))(hidden, unembedding)

    assert set(NEEDS) <= set(DIFFERENTIABLE)
    gradients, stats = evaluate("xla", hidden, unembedding, other, temperature)
    doubles = jax.tree.map(
        lambda x: x.astype(np.float64), (hidden, unembedding, other, temperature)
    )
    expected_gradients, expected = evaluate("reference", *doubles)
    tolerances = {"nucleus_entropy": NUCLEUS, "p_squared": MOMENTS, "p_squared_logp": MOMENTS}
    for name, value in stats.items():
        error = np.max(np.abs(np.float64(value) - expected[name]))
        # Varentropies are squares of log-probs: their size is up to 30 here.
        scale = max(1.0, np.max(np.abs(expected[name]))) if name == "varentropy" else 1.0
        assert error <= tolerances.get(name, LOGARITHMS) * scale, name
    for value, wanted in zip(gradients, expected_gradients, strict=True):
        error = np.max(np.abs(np.float64(value) - wanted)) / np.max(np.abs(wanted))
        assert error <= GRADIENTS[dtype]
