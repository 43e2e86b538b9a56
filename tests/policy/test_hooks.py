"""Changing the stream behind a layer: the worked example, and the same in passes and caches."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rlvr_jax import policy
from rlvr_jax.policy.hooks import (
    Hook,
    code_logp,
    code_loss,
    controlled,
    switched_codes,
)

PRINTED = 5e-7  # half a unit of the sixth digit
FLOAT32 = 1e-5  # hidden states of a few layers
ROWS, PLACES, VOCABULARY, CODE = 2, 6, 11, 2


@pytest.fixture(scope="module", params=[2, 6])
def model(request):
    """A shallow model, whose layers are unrolled anyway, and one whose layers are scanned."""
    config = policy.named_config("tiny", VOCABULARY, max_positions=16, num_layers=request.param)
    made = policy.Model(config)
    return made, jax.jit(made.init)(jax.random.key(0))


def example():
    """Tokens, positions, a basis and codes of every place."""
    random = np.random.default_rng(0)
    tokens = jnp.asarray(random.integers(0, VOCABULARY, (ROWS, PLACES)), jnp.int32)
    positions = jnp.broadcast_to(jnp.arange(PLACES, dtype=jnp.int32), (ROWS, PLACES))
    basis = jnp.asarray(random.normal(size=(CODE, 32, 32)), jnp.float32) / 8
    codes = jnp.asarray(random.normal(size=(ROWS, PLACES, CODE)), jnp.float32)
    return tokens, positions, basis, codes


def controller(basis, layer=1):
    """A hook whose carry is the codes of the places that come."""

    def apply(stream, codes):
        now, later = codes[:, : stream.shape[1]], codes[:, stream.shape[1] :]
        return stream + controlled(basis, now, stream), later

    return Hook(layer, apply)


def test_the_worked_example_of_a_controller():
    basis = jnp.array([[[0.0, 1], [0, 0]], [[1, 0], [0, -1]]])
    stream, code = jnp.array([[[2.0, 4.0]]]), jnp.array([[[0.5, 0.25]]])
    added = controlled(basis, code, stream)
    assert_allclose(added[0, 0], [2.5, -1])
    assert_allclose((stream + added)[0, 0], [4.5, 3])


def test_the_worked_example_of_codes_and_their_loss():
    proposed = jnp.array([[[1.0, 0], [0, 1], [0, 1]]])
    found = switched_codes(proposed, jnp.array([[1.0, 0, 0.5]]))
    assert_allclose(found.code[0], [[1, 0], [1, 0], [0.5, 0.5]])
    assert_array_equal(found.fires[0], [True, False, True])
    logp = code_logp(proposed, jnp.zeros_like(proposed))
    assert_allclose(logp, -2.337877, atol=PRINTED)
    loss = code_loss(logp, found.fires, jnp.array([0.5]))
    assert_allclose(loss, 2.337877, atol=PRINTED)


def test_a_code_goes_on_where_a_part_of_the_row_ended():
    random = np.random.default_rng(1)
    proposed, switch = (
        jnp.asarray(random.normal(size=(2, 5, 3))),
        jnp.asarray(random.random((2, 5))),
    )
    whole = switched_codes(proposed, switch)
    first = switched_codes(proposed[:, :2], switch[:, :2])
    rest = switched_codes(proposed[:, 2:], switch[:, 2:], first.code[:, -1])
    assert_allclose(jnp.concatenate([first.code, rest.code], axis=1), whole.code, rtol=1e-12)


@pytest.mark.thorough
def test_nothing_added_changes_no_bit(model):
    tokens, positions, basis, codes = example()
    own, params = model
    plain = own.hidden(params, tokens, positions)
    hook = controller(jnp.zeros_like(basis))
    found, _, _ = own.hooked(params, tokens, positions, hook, codes)
    if own.config.num_layers <= 4:
        assert_array_equal(found, plain)
    else:
        # A scan of layers is another program than the layers one by one.
        assert_allclose(found, plain, atol=FLOAT32)
    moved, _, _ = own.hooked(params, tokens, positions, controller(basis), codes)
    assert np.abs(moved - plain).max() > 0.01


@pytest.mark.thorough
def test_decoding_with_recorded_codes_is_a_full_pass_with_them(model):
    tokens, positions, basis, codes = example()
    own, params = model
    hook = controller(basis)
    whole, _, _ = own.hooked(params, tokens, positions, hook, codes)
    caches, left, found = own.empty_caches(ROWS, PLACES), codes, []
    for part in (slice(0, 3), slice(3, 4), slice(4, 5), slice(5, 6)):
        hidden, caches, left = own.hooked(
            params, tokens[:, part], positions[:, part], hook, left, caches
        )
        found.append(hidden)
    assert_allclose(jnp.concatenate(found, axis=1), whole, atol=FLOAT32)
    assert left.shape[1] == 0


@pytest.mark.thorough
def test_what_stands_before_a_place_does_not_see_its_code(model):
    tokens, positions, basis, codes = example()
    own, params = model
    other = codes.at[:, 3:].set(0)
    one, two = (
        own.hooked(params, tokens, positions, controller(basis), given)[0]
        for given in (codes, other)
    )
    assert_array_equal(one[:, :3], two[:, :3])
    assert np.abs(one[:, 3:] - two[:, 3:]).max() > 0.01


@pytest.mark.thorough
def test_no_gradient_reaches_the_base(model):
    """The loss of codes is one of their policy: the model below is part of the environment."""
    tokens, positions, basis, _ = example()
    own, params = model

    def loss(params, mean):
        proposed = mean + 0.3
        codes = switched_codes(proposed, jnp.ones((ROWS, PLACES)))
        hidden, _, _ = own.hooked(params, tokens, positions, controller(basis), codes.code)
        advantage = jnp.mean(hidden, axis=(1, 2))
        logp = code_logp(jax.lax.stop_gradient(proposed), mean)
        return code_loss(logp, codes.fires, advantage)

    mean = jnp.zeros((ROWS, PLACES, CODE))
    below, above = jax.grad(loss, argnums=(0, 1))(params, mean)
    assert not any(np.asarray(leaf).any() for leaf in jax.tree.leaves(below))
    assert np.asarray(above).any()


def test_a_layer_that_is_not_there_is_refused(model):
    tokens, positions, basis, codes = example()
    own, params = model
    with pytest.raises(ValueError, match=r"hook.layer must be in 0 … \d, got 9"):
        own.hooked(params, tokens, positions, controller(basis, 9), codes)
