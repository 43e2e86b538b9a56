"""token_stats: what is not asked for is not computed, and a token's bits are its own."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiling import OPTIMIZED
from devices import NEEDS_A_CPU
from everyday import everyday
from numpy.testing import assert_array_equal
from token_stats_cases import FLOAT32, assert_close, evaluate, make_case

from rlvr_jax.kernels import plan
from rlvr_jax.kernels.operation import DIFFERENTIABLE
from rlvr_jax.kernels.token_stats import STATISTICS, token_stats

TILED = pytest.mark.parametrize("form", ["xla in tiles"], indirect=True)
BOTH = pytest.mark.parametrize("form", ["xla", "xla in tiles"], indirect=True)


@pytest.mark.thorough
@BOTH
def test_a_spoiled_token_without_a_cotangent_spoils_no_gradient(form):
    arrays, targets, options = make_case((13, 4, 37), ("bias", "temperatures"))
    arrays["hidden"][3] = np.nan
    counted = np.arange(13) != 3

    def loss(arrays):
        stats = token_stats(
            targets=targets,
            needs={"logp", "entropy"},
            temperature=options["temperature"],
            implementation=form,
            **arrays,
        )
        return jnp.sum(jnp.where(counted, stats.logp + stats.entropy, 0))

    gradients = jax.jit(jax.grad(loss))(arrays)
    assert all(np.all(np.isfinite(value)) for value in gradients.values())
    assert_array_equal(gradients["hidden"][3], 0)


@pytest.mark.thorough
@TILED
@NEEDS_A_CPU  # whose sums do not depend on the number of tokens
def test_tokens_without_a_cotangent_are_not_visited_backward(form):
    arrays, targets, options = make_case((24, 4, 37))
    chosen = np.arange(24) % 3 == 1  # eight tokens: exactly one tile
    needs = {"logp", "entropy", "kl"}
    hidden, (other_hidden, other_unembedding) = arrays["hidden"], options["other"]

    @jax.jit
    def gradient(hidden, targets, other_hidden, cotangent):
        def total(unembedding):
            other = other_hidden, other_unembedding
            stats = token_stats(
                hidden, unembedding, targets, needs=needs, implementation=form, other=other
            )
            return stats.logp + stats.entropy + stats.records["kl"]

        return jax.vjp(total, arrays["unembedding"])[1](cotangent)[0]

    # One visit of a spoiled token would spoil the gradient.
    spoiled = np.where(chosen[:, None], hidden, np.nan)
    found = gradient(spoiled, targets, other_hidden, chosen.astype(np.float32))
    ones = np.ones(8, np.float32)
    alone = gradient(hidden[chosen], targets[chosen], other_hidden[chosen], ones)
    assert_array_equal(found, alone)


@pytest.mark.thorough
@BOTH
def test_bits_of_a_token_depend_neither_on_its_place_nor_on_the_mask(form):
    arrays, targets, _ = make_case((61, 16, 37))
    needs = ("logp", "entropy", "varentropy", "second_logp")
    measure = jax.jit(
        functools.partial(token_stats, needs=needs, implementation=form, second_temperature=2.0)
    )
    full = measure(arrays["hidden"], arrays["unembedding"], targets)
    order = np.random.default_rng(3).permutation(61)
    shuffled = measure(arrays["hidden"][order], arrays["unembedding"], targets[order])
    mask = np.arange(61) % 2 == 0
    masked = measure(arrays["hidden"], arrays["unembedding"], targets, mask=mask)
    for name in needs:
        whole = full.get(name)
        assert_array_equal(shuffled.get(name), whole[order])
        assert_array_equal(masked.get(name)[mask], whole[mask])


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", [np.float32, jnp.bfloat16])
def test_a_small_vocabulary_gives_the_same_up_to_rounding_for_any_number_of_tokens(dtype):
    # XLA:CPU multiplies small matrices in another way than large ones.
    arrays, targets, _ = make_case((1500, 128, 100), (), dtype)
    hidden, unembedding = arrays["hidden"] / 11, arrays["unembedding"]
    statistics = functools.partial(token_stats, needs=("logp", "entropy"))
    measure = jax.jit(statistics, compiler_options=OPTIMIZED)
    full = measure(hidden, unembedding, targets)
    for size in (1, 8, 24):
        part = measure(hidden[-size:], unembedding, targets[-size:])
        for name in ("logp", "entropy"):
            whole = {name: full.get(name)[-size:]}
            assert_close({name: part.get(name)}, whole, FLOAT32)


@pytest.mark.thorough
@NEEDS_A_CPU
@pytest.mark.parametrize("dtype", everyday([np.float32, jnp.bfloat16], np.float32))
def test_bits_do_not_depend_on_the_number_of_tokens_at_the_width_of_a_model(dtype):
    arrays, targets, _ = make_case((700, 896, 4100), (), dtype)
    statistics = functools.partial(token_stats, needs=("logp", "entropy"))
    measure = jax.jit(statistics, compiler_options=OPTIMIZED)
    full = measure(arrays["hidden"] / 30, arrays["unembedding"], targets)
    for size in (1, 3, 8, 100, 513):
        part = measure(arrays["hidden"][-size:] / 30, arrays["unembedding"], targets[-size:])
        assert_array_equal(part.logp, full.logp[-size:], err_msg=f"{size} tokens")
        assert_array_equal(part.entropy, full.entropy[-size:], err_msg=f"{size} tokens")


@pytest.mark.thorough
@BOTH
def test_logp_has_the_same_bits_with_and_without_a_gradient(form):
    arrays, targets, _ = make_case((61, 16, 37))
    logp = functools.partial(token_stats, targets=targets, needs={"logp"}, implementation=form)
    alone = jax.jit(logp, compiler_options=OPTIMIZED)
    stats, _ = evaluate(form, arrays, targets, {}, needs=["logp"], optimized=True)
    assert_array_equal(alone(**arrays).logp, stats["logp"])


@pytest.mark.thorough
@BOTH
def test_logp_has_the_same_bits_whatever_else_is_needed(form):
    arrays, targets, options = make_case((61, 16, 37))
    alone, _ = evaluate(form, arrays, targets, {}, needs=["logp"], optimized=True)
    needs = ("logp", "entropy", "p_squared", "varentropy", "nucleus_entropy", "kl")
    among, _ = evaluate(form, arrays, targets, options, needs, optimized=True)
    assert_array_equal(alone["logp"], among["logp"])


@pytest.mark.thorough
@NEEDS_A_CPU
def test_no_array_of_tokens_times_vocabulary_is_made():
    sizes = plan.TILES[0]
    assert sizes.platform == "cpu"
    tokens, vocabulary = 2 * sizes.forward[0] + 3, 16 * sizes.forward[1] + 5
    arrays, targets, options = make_case((tokens, 4, vocabulary), ("bias",))

    def loss(arrays):
        stats = token_stats(
            targets=targets, needs=STATISTICS, implementation="xla", **arrays, **options
        )
        return sum(jnp.sum(stats.get(name)) for name in DIFFERENTIABLE)

    lowered = jax.jit(jax.value_and_grad(loss)).lower(arrays)
    text = lowered.compile().as_text()
    shapes = re.findall(r"\w+\[([\d,]+)\]", text)
    largest = max(np.prod([int(n) for n in shape.split(",")]) for shape in shapes)
    assert largest <= sizes.wave[0] < tokens * vocabulary
