"""Routes of a mixture of experts: recorded by the sampler, used again by scorer and update."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from devices import NEEDS_EIGHT_DEVICES
from numpy.testing import assert_allclose, assert_array_equal
from tiny_experts import CHOSEN, EXPERTS, SAMPLES, experts, sampled

from rlvr_jax.experience.given import behind_given
from rlvr_jax.methods import recipe
from rlvr_jax.objectives import Spec
from rlvr_jax.parallel import make_mesh, parameter_shardings, row_sharding
from rlvr_jax.policy import Model, named_config, score
from rlvr_jax.policy.decoder import Decoder
from rlvr_jax.policy.scoring import hidden_states, without_routes
from rlvr_jax.rollout import load_rollouts, save_rollouts
from rlvr_jax.training.update import objective_gradient
from rlvr_jax.types import TokenStats, replace

# float64 on both sides, some hundred roundings of 1e-16 on numbers of order one
EXACT = dict(rtol=1e-10, atol=1e-11)


def other_routes(rollouts, seed=3):
    """The rollouts with experts at random, distinct for each token, where any are recorded."""
    random = np.random.default_rng(seed)

    def drawn(routes):
        every = np.broadcast_to(np.arange(EXPERTS), (*routes.shape[:-1], EXPERTS))
        ids = 1 + random.permuted(every, axis=-1)[..., :CHOSEN]
        return jnp.where(routes > 0, ids, 0).astype(routes.dtype)

    names = "routes", "prompt_routes"
    others = {name: drawn(rollouts.records[name]) for name in names}
    # Prompts have a common opening, which the sampler reads once.
    asked = others["prompt_routes"]
    return rollouts.replace(**others | {"prompt_routes": asked.at[:, :2].set(asked[:1, :2])})


def sequences(rollouts):
    """Tokens [B, S] and routes of prompt and response in one row, and both lengths."""
    rows, asked = rollouts.prompt_tokens.shape
    tokens = np.zeros((rows, asked + rollouts.tokens.shape[1]), np.int32)
    shape = rollouts.records["routes"].shape[2:]
    routes = np.zeros((*tokens.shape, *shape), np.uint8)
    lengths = list(
        zip(np.asarray(rollouts.prompt_length), np.asarray(rollouts.length), strict=True)
    )
    for row, (start, count) in enumerate(lengths):
        parts = slice(0, start), slice(start, start + count)
        tokens[row, parts[0]] = rollouts.prompt_tokens[row, :start]
        tokens[row, parts[1]] = rollouts.tokens[row, :count]
        routes[row, parts[0]] = rollouts.records["prompt_routes"][row, :start]
        routes[row, parts[1]] = rollouts.records["routes"][row, :count]
    return tokens, routes, lengths


@partial(jax.jit, static_argnums=0)
def decoded(model, params, tokens, routes):
    """Hidden states and used routes of whole sequences, one to a row."""
    places = jnp.arange(tokens.shape[1])[None]
    hidden, _, used = Decoder(model.config).apply(
        {"params": params}, jnp.asarray(tokens), places, routes=jnp.asarray(routes)
    )
    return hidden, used


STATIC = dict(static_argnums=0, static_argnames=("shared", "opening"))
SCORE, HIDDEN = (jax.jit(function, **STATIC) for function in (score, hidden_states))


@pytest.mark.parametrize("layers", [2, pytest.param(6, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("how", [{}, {"opening": 2, "at_once": 5}], ids=str)
def test_recorded_routes_are_those_of_one_pass_over_the_whole_sequence(layers, how):
    model, params = experts(num_layers=layers)
    rollouts = sampled(model, params, **how)
    assert rollouts.records["routes"].dtype == np.uint8
    tokens, routes, lengths = sequences(rollouts)
    _, used = decoded(model, params, tokens, 0 * routes)
    for row, (start, count) in enumerate(lengths):
        # The last token is never read.
        assert_array_equal(routes[row, : start + count - 1], used[row, : start + count - 1])
        assert not rollouts.records["routes"][row, count - 1 :].any()
        assert not rollouts.records["prompt_routes"][row, start:].any()


def test_records_of_routes_change_no_sample():
    model, params = experts()
    plain, routed = (sampled(model, params, record_routes=on) for on in (False, True))
    for name, array in plain.arrays.items():
        assert_array_equal(array, routed.get(name))
    assert {*routed.records} - {*plain.records} == {"routes", "prompt_routes"}


@pytest.mark.parametrize("layers", [2, pytest.param(6, marks=pytest.mark.thorough)])
def test_the_scorer_uses_given_routes(layers):
    """Against the decoder, with prompt and response in one row."""
    model, params = experts(num_layers=layers)
    rollouts = other_routes(sampled(model, params))
    how = dict(shared=SAMPLES, opening=2)
    found = HIDDEN(model, params, rollouts, **how)
    tokens, routes, lengths = sequences(rollouts)
    hidden, used = decoded(model, params, tokens, routes)
    prompts = rollouts.records["prompt_routes"]
    others = [
        HIDDEN(model, params, rows, **how)
        for rows in (without_routes(rollouts), rollouts.replace(prompt_routes=0 * prompts))
    ]
    for row, (start, count) in enumerate(lengths):
        assert_array_equal(used[row, : start + count - 1], routes[row, : start + count - 1])
        if row % SAMPLES == 0:  # the routes of a prompt are those of its first row
            own = hidden[row, start - 1 : start + count - 1]
            assert_allclose(found[row, :count], own, **EXACT)
        # Neither the choice of the router, nor replay after a prompt without it.
        for other in others:
            assert np.abs(found[row, :count] - other[row, :count]).max() > 1e-3


@pytest.mark.thorough
def test_own_routes_replayed_change_no_bit():
    model, params = experts("float32")
    rollouts = sampled(model, params)
    replayed = score(model, params, rollouts, shared=SAMPLES).logp
    assert_array_equal(
        score(model, params, without_routes(rollouts), shared=SAMPLES).logp, replayed
    )


def test_the_gap_of_a_bfloat16_sampler_shrinks():
    model, params = experts("bfloat16", num_layers=6)
    rollouts = sampled(model, params)
    wide = replace(model, config=replace(model.config, compute_dtype="float32"))

    def gap(rows):
        logp = SCORE(wide, params, rows, shared=SAMPLES).logp
        return float(jnp.abs(jnp.where(rows.mask, logp - rows.behaviour_logp, 0)).max())

    # 0.031 and 0.008 nats; other processors round otherwise
    assert gap(rollouts) < 0.5 * gap(without_routes(rollouts))


def test_the_gradient_of_the_router_with_fixed_routes_is_that_of_differences():
    model, params = experts()
    rollouts = other_routes(sampled(model, params))
    weight = jnp.asarray(np.random.default_rng(5).normal(size=rollouts.mask.shape))

    @jax.jit
    def loss(router):
        layers = {**params["layers"], "router": router}
        logp = score(model, {**params, "layers": layers}, rollouts, shared=SAMPLES).logp
        return jnp.sum(weight * logp)

    router = params["layers"]["router"]
    slope = jax.grad(loss)(router)
    assert float(jnp.abs(slope).max()) > 0.1
    for seed in range(4):
        direction = jnp.asarray(np.random.default_rng(seed).normal(size=router.shape))
        step = 1e-4
        above, below = (loss(router + side * step * direction) for side in (1, -1))
        # The error of a central difference is of order step².
        assert_allclose(jnp.vdot(slope, direction), (above - below) / (2 * step), rtol=1e-5)


@partial(jax.jit, static_argnums=0, static_argnames=("micro_batches", "shared"))
def gradient(model, params, rollouts, **how):
    objective = recipe("dapo").objective
    state = objective.init(Spec(4, *rollouts.mask.shape))
    key = jax.random.key(0)
    return objective_gradient(model, objective, params, rollouts, state, key, **how)


@pytest.mark.thorough
def test_an_update_in_micro_batches_replays_the_routes_of_its_rows():
    model, params = experts()
    rollouts = other_routes(sampled(model, params)).only_valid()
    whole, split = (
        gradient(model, params, rollouts, micro_batches=number, shared=SAMPLES) for number in (1, 4)
    )
    own = gradient(model, params, without_routes(rollouts), shared=SAMPLES)
    for leaf, other in zip(*map(jax.tree.leaves, (whole.grads, split.grads)), strict=True):
        assert_allclose(leaf, other, **EXACT)
    routers = (found.grads["layers"]["router"] for found in (whole, own))
    assert np.abs(np.subtract(*routers)).max() > 1e-4


@pytest.mark.thorough
@NEEDS_EIGHT_DEVICES
@pytest.mark.parametrize("spec", ["data=4,tensor=2", "data=2,fsdp=2,tensor=2"])
def test_a_mesh_changes_neither_routes_nor_the_update(spec):
    model, params = experts()
    mesh = make_mesh(spec)
    split = Model(model.config, mesh=mesh)
    placed = jax.device_put(params, parameter_shardings(model.config, mesh))
    whole, shared = sampled(model, params), sampled(split, placed)
    for name in ("tokens", "routes", "prompt_routes"):
        assert_array_equal(whole.get(name), shared.get(name))
    rollouts = other_routes(whole).only_valid()
    on_mesh = jax.device_put(rollouts, row_sharding(mesh))
    one = gradient(model, params, rollouts, shared=SAMPLES).grads
    many = gradient(split, placed, on_mesh, shared=SAMPLES).grads
    for leaf, other in zip(*map(jax.tree.leaves, (one, many)), strict=True):
        assert_allclose(leaf, other, **EXACT)


def test_files_and_other_prompts_follow_the_declaration(tmp_path):
    model, params = experts()
    rollouts = jax.tree.map(np.asarray, sampled(model, params))
    save_rollouts(tmp_path / "rows.npz", rollouts, TokenStats(logp=np.zeros(rollouts.mask.shape)))
    loaded = load_rollouts(tmp_path / "rows.npz")[0]
    for name in ("routes", "prompt_routes"):
        assert loaded.records[name].dtype == np.uint8
        assert_array_equal(loaded.records[name], rollouts.records[name])
    assert "routes" in rollouts.replace(reward=rollouts.reward).records
    moved = rollouts.replace(prompt_tokens=rollouts.prompt_tokens + 1)
    assert not {"routes", "prompt_routes"} & moved.records.keys()


def test_given_tokens_have_no_routes_and_sampled_ones_keep_theirs():
    model, params = experts()
    rollouts = jax.tree.map(np.asarray, sampled(model, params))
    rows, own = len(rollouts.group), rollouts.prompt_length - 2
    given = [rollouts.prompt_tokens[row, own[row] : own[row] + 2].tolist() for row in range(rows)]
    asked = rollouts.prompt_tokens[:, :4]
    found = behind_given(rollouts, asked, own, given, np.zeros(rows, bool), 12)
    routes, before = found.records["routes"], rollouts.records["prompt_routes"]
    assert not routes[:, :2].any()
    assert_array_equal(routes[:, 2:], rollouts.records["routes"])
    for row, length in enumerate(own):
        assert_array_equal(found.records["prompt_routes"][row, :length], before[row, :length])
        assert not found.records["prompt_routes"][row, length:].any()


def test_routes_of_a_dense_model_are_refused():
    model = Model(named_config("tiny", 32))
    with pytest.raises(ValueError, match="no_routes: config must be of a mixture of experts"):
        sampled(model, model.init(jax.random.key(0)))
