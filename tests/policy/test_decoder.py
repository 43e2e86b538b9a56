"""The decoder against an independent one in numpy, and against itself with and without a cache."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from decoder_families import (
    EVERYTHING,
    EXACT,
    FAMILIES,
    LENGTH,
    SIZE,
    extend,
    policy,
    to_hidden,
    to_logits,
    tokens,
)
from everyday import everyday
from numpy.testing import assert_allclose, assert_array_equal
from safetensors.numpy import load_file

from rlvr_jax.policy import Model, ModelConfig, save

# the same number of roundings of 6e-8; the logits are of order ten
SINGLE = dict(rtol=0, atol=1e-4)


def reference_logits(config, weights, tokens):
    """Logits in float64 by loops over heads, from tensors in Hugging Face's names and layout."""
    weights = {name: array.astype(np.float64) for name, array in weights.items()}
    gemma = config.output_norms

    def norm(x, name):
        root = np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + config.norm_epsilon)
        return x / root * (gemma + weights[f"{name}.weight"])

    def linear(x, name):
        return x @ weights[f"{name}.weight"].T + weights.get(f"{name}.bias", 0.0)

    def frequencies(sliding):
        theta = config.local_rope_theta if sliding else config.rope_theta
        plain = theta ** -(np.arange(0, size, 2) / size)
        scaling = config.rope_scaling
        if sliding or scaling is None:
            return plain
        if scaling.original_positions is None:
            return plain / scaling.factor
        stretched = []
        for frequency in plain:
            wavelength = 2 * np.pi / frequency
            if wavelength < scaling.original_positions / scaling.high_turns:
                stretched.append(frequency)
            elif wavelength > scaling.original_positions / scaling.low_turns:
                stretched.append(frequency / scaling.factor)
            else:
                smooth = scaling.original_positions / wavelength - scaling.low_turns
                smooth /= scaling.high_turns - scaling.low_turns
                stretched.append((1 - smooth) * frequency / scaling.factor + smooth * frequency)
        return np.array(stretched)

    def rotate(x, frequency):
        angle = np.arange(len(x))[:, None] * np.concatenate([frequency, frequency])
        half = np.concatenate([-x[:, size // 2 :], x[:, : size // 2]], axis=-1)
        return x * np.cos(angle) + half * np.sin(angle)

    def attention(x, prefix, sliding):
        heads = []
        scale = np.sqrt(config.query_pre_attn_scalar or size)
        place = np.arange(len(x))
        distance = place[:, None] - place
        seen = (distance >= 0) & (distance < (config.sliding_window if sliding else np.inf))
        for head in range(config.num_heads):
            shared = head // (config.num_heads // config.num_kv_heads)
            q, k, v = (
                linear(x, f"{prefix}.{kind}_proj")[:, place * size : (place + 1) * size]
                for kind, place in (("q", head), ("k", shared), ("v", shared))
            )
            if config.qk_norm:
                q, k = norm(q, f"{prefix}.q_norm"), norm(k, f"{prefix}.k_norm")
            q, k = (rotate(part, frequencies(sliding)) for part in (q, k))
            scores = q @ k.T / scale
            share = np.exp(scores - scores.max()) * seen
            heads.append(share / share.sum(axis=-1, keepdims=True) @ v)
        return linear(np.concatenate(heads, axis=-1), f"{prefix}.o_proj")

    def dense(y, prefix):
        gate = linear(y, f"{prefix}.gate_proj")
        if gemma:
            bent = 0.5 * gate * (1 + np.tanh(np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3)))
        else:
            bent = gate / (1 + np.exp(-gate))
        return linear(bent * linear(y, f"{prefix}.up_proj"), f"{prefix}.down_proj")

    def experts(y, prefix):
        shares = np.exp(linear(y, f"{prefix}.gate"))
        shares /= shares.sum(axis=-1, keepdims=True)
        mixed = []
        for token, share in zip(y, shares, strict=True):
            chosen = np.argsort(-share)[: config.experts_per_token]
            total = share[chosen].sum() if config.normalized_experts else 1.0
            given = [dense(token, f"{prefix}.experts.{expert}") for expert in chosen]
            mixed.append(share[chosen] @ np.array(given) / total)
        return np.array(mixed)

    def row(ids):
        x = weights["model.embed_tokens.weight"][ids]
        x = x * np.sqrt(config.width) if gemma else x
        mlp = dense if config.num_experts is None else experts
        for layer in range(config.num_layers):
            prefix = f"model.layers.{layer}"
            sliding = layer in config.sliding_layers
            y = attention(norm(x, f"{prefix}.input_layernorm"), f"{prefix}.self_attn", sliding)
            if gemma:
                x = x + norm(y, f"{prefix}.post_attention_layernorm")
                y = mlp(norm(x, f"{prefix}.pre_feedforward_layernorm"), f"{prefix}.mlp")
                x = x + norm(y, f"{prefix}.post_feedforward_layernorm")
            else:
                x = x + y
                x = x + mlp(norm(x, f"{prefix}.post_attention_layernorm"), f"{prefix}.mlp")
        logits = linear(norm(x, "model.norm"), "model.embed_tokens" if config.tied else "lm_head")
        cap = config.logit_softcap
        return logits if cap is None else cap * np.tanh(logits / cap)

    size = config.head_size
    return np.stack([row(ids) for ids in np.asarray(tokens)])


@pytest.mark.parametrize("dtype, tolerance", [("float64", EXACT), ("float32", SINGLE)])
@pytest.mark.parametrize("family", FAMILIES)
def test_logits_agree_with_a_decoder_in_numpy(family, dtype, tolerance, tmp_path):
    model, params = policy(family, dtype)
    save(tmp_path, model, params)
    weights = load_file(tmp_path / "model.safetensors")
    logits = to_logits(model, params, tokens())
    assert logits.dtype == dtype
    assert_allclose(logits, reference_logits(model.config, weights, tokens()), **tolerance)


@pytest.mark.thorough
@pytest.mark.parametrize("name", everyday(["everything", "experts"], "everything"))
def test_extending_a_cache_in_pieces_is_one_full_pass(name):
    model, params = policy(name)
    full = to_hidden(model, params, tokens())
    for chunks in [(1,) * LENGTH, (3, 4), (4, 3), (1, 3, 3)]:
        caches, seen, hidden = model.empty_caches(3, LENGTH + 2), 0, []
        for chunk in chunks:
            part = slice(seen, seen + chunk)
            positions = jnp.broadcast_to(jnp.arange(LENGTH)[part], (3, chunk))
            states, caches = extend(model, params, caches, tokens()[:, part], positions)
            hidden.append(states)
            seen += chunk
        assert_allclose(jnp.concatenate(hidden, axis=1), full, **EXACT)


def test_unstacked_parameters_extend_alike():
    model, params = policy()
    positions = jnp.broadcast_to(jnp.arange(3), (3, 3))
    caches = model.empty_caches(3, LENGTH + 2)
    layers = model.unstacked(params)
    stacked, _ = extend(model, params, caches, tokens()[:, :3], positions)
    unstacked, _ = extend(model, layers, caches, tokens()[:, :3], positions)
    assert_allclose(unstacked, stacked, **EXACT)
    assert jax.tree.structure(model.unstacked(layers)) == jax.tree.structure(layers)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["everything", "experts"])
def test_rows_of_a_cache_may_be_at_different_positions(name):
    model, params = policy(name)
    full = to_hidden(model, params, tokens())
    lengths = np.array([1, 4, 3])
    slots = LENGTH + 2
    positions = np.where(np.arange(4) < lengths[:, None], np.arange(4), slots)
    caches = model.empty_caches(3, slots)
    _, caches = extend(model, params, caches, tokens()[:, :4], jnp.asarray(positions))
    following = jnp.take_along_axis(tokens(), jnp.asarray(lengths)[:, None], axis=1)
    hidden, _ = extend(model, params, caches, following, jnp.asarray(lengths)[:, None])
    assert_allclose(hidden[:, 0], full[np.arange(3), lengths], **EXACT)


def test_positions_past_the_slots_write_nothing():
    model, params = policy()
    caches = model.empty_caches(3, LENGTH + 2)
    positions = jnp.full((3, 3), LENGTH + 2)
    _, written = extend(model, params, caches, tokens()[:, :3], positions)
    for before, after in zip(caches, written, strict=True):
        assert_array_equal(after.keys, before.keys)
        assert_array_equal(after.values, before.values)


@pytest.mark.parametrize("name", ["everything", "experts"])
def test_a_token_changes_nothing_before_it(name):
    model, params = policy(name)
    changed = tokens().at[:, 4:].set(0)
    before, after = to_hidden(model, params, tokens()), to_hidden(model, params, changed)
    assert_array_equal(after[:, :4], before[:, :4])
    assert not np.array_equal(after[:, 4:], before[:, 4:])


def test_right_padding_changes_nothing():
    model, params = policy()
    padded = jnp.pad(tokens(), ((0, 0), (0, 2)))
    expected = to_hidden(model, params, tokens())
    assert_allclose(to_hidden(model, params, padded)[:, :LENGTH], expected, **EXACT)


def test_rows_do_not_see_each_other():
    model, params = policy()
    before = to_hidden(model, params, tokens())
    after = to_hidden(model, params, tokens().at[1].set(0))
    assert_array_equal(after[::2], before[::2])


def test_only_the_distance_of_positions_counts():
    model, params = policy()
    near = jnp.broadcast_to(jnp.arange(LENGTH), (3, LENGTH))
    expected = to_hidden(model, params, tokens())
    assert_allclose(to_hidden(model, params, tokens(), near), expected, **EXACT)
    # angles of order 100 lose two digits to those of order one
    assert_allclose(to_hidden(model, params, tokens(), near + 100), expected, rtol=1e-9, atol=1e-10)
    assert np.abs(to_hidden(model, params, tokens(), 2 * near) - expected).max() > 1e-3


def test_a_sliding_layer_sees_its_window_and_no_more():
    window = {**EVERYTHING, "sliding_layers": (0, 1)}
    model = Model(ModelConfig(**SIZE, **window, compute_dtype="float64"))
    _, params = policy()
    before = to_hidden(model, params, tokens())
    after = to_hidden(model, params, tokens().at[:, 0].set(0))
    # two layers of a window of 3 reach 4 tokens back
    changed = np.abs(after - before).max(axis=(0, 2)) > 0
    assert_array_equal(changed, np.arange(LENGTH) <= 4)


@pytest.mark.thorough
@pytest.mark.parametrize("name", everyday(["everything", "experts"], "everything"))
def test_gradients_reach_every_parameter_and_agree_with_a_difference(name):
    model, params = policy(name)
    weight = jnp.asarray(np.random.default_rng(2).normal(size=(3, LENGTH, 11)))

    def loss(params):
        return jnp.sum(weight * to_logits(model, params, tokens()))

    gradient = jax.grad(loss)(params)
    for path, leaf in jax.tree.leaves_with_path(gradient):
        # no token may have visited an expert
        rows = np.moveaxis(leaf, 0, -1).reshape(-1, 2).T if leaf.ndim == 4 else np.asarray(leaf)
        assert np.all(np.any(rows != 0, axis=-1)), path
    random = np.random.default_rng(3)
    step = jax.tree.map(lambda leaf: random.normal(size=leaf.shape), params)
    ahead, behind = (
        loss(jax.tree.map(lambda p, d, h=h: p + h * d, params, step)) for h in (1e-5, -1e-5)
    )
    pairs = zip(jax.tree.leaves(gradient), jax.tree.leaves(step), strict=True)
    # the central difference is off by h² times the third derivative
    assert_allclose(sum(np.vdot(g, d) for g, d in pairs), (ahead - behind) / 2e-5, rtol=1e-5)
