"""Soft prefixes: what was drawn behind one is scored behind it."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import training_runs
from numpy.testing import assert_allclose, assert_array_equal

from experiments import palette
from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.exploration.reasoning_palette import (
    falling_fraction,
    prefixed_rows,
    soft_prefixes,
)
from rlvr_jax.policy import Model, named_config, score
from rlvr_jax.policy.prefixes import (
    decode_prefix,
    encode_latent,
    gaussian_kl,
    load_prefix_vae,
    new_prefix_vae,
    save_prefix_vae,
    vae_loss,
)
from rlvr_jax.runs.step import collect

FLOAT32 = 1e-5  # log-probs of a float32 sampler and scorer, of at most some nats
PRINTED = 5e-7  # half a unit of the sixth digit


def test_the_worked_example_of_the_divergence():
    found = gaussian_kl(jnp.array([[1.0, 0]]), jnp.log(jnp.array([[1, 0.25]])))
    assert_allclose(found, [0.818147], atol=PRINTED)


def test_the_worked_example_of_the_schedule():
    assert_allclose(
        [falling_fraction(step, 100) for step in (0, 10, 25, 50, 90)], [1, 0.8, 0.5, 0, 0]
    )
    assert prefixed_rows(0.8, 8) == 6 and prefixed_rows(0.5, 5) == 3 and prefixed_rows(0, 8) == 0


@pytest.mark.thorough
def test_an_autoencoder_learns_two_kinds_of_texts():
    random = np.random.default_rng(0)
    kinds = random.normal(size=(2, 6))
    texts = jnp.asarray(kinds[np.arange(32) % 2] + 0.01 * random.normal(size=(32, 6)), jnp.float32)
    vae = new_prefix_vae(jax.random.key(0), width=6, latent=3, prefix=2, hidden=16)
    loss = jax.jit(jax.value_and_grad(vae_loss))
    before = loss(vae, texts, jax.random.key(1))[0]
    for step in range(300):
        _, slope = loss(vae, texts, jax.random.key(step))
        vae = jax.tree.map(lambda p, g: p - 0.01 * g, vae, slope)
    assert loss(vae, texts, jax.random.key(1))[0] < 0.3 * before
    assert decode_prefix(vae, jnp.zeros((5, 3), jnp.float32)).shape == (5, 2, 6)
    mean, _ = encode_latent(vae, texts)
    assert np.linalg.norm(mean[0] - mean[1]) > 3 * np.linalg.norm(mean[0] - mean[2])


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    return training_runs.write_policy(tmp_path_factory.mktemp("policy"))


@pytest.fixture(scope="module")
def run(policy):
    given = ("latent=3", "prefix=2", "until=1")
    return training_runs.prepared(
        training_runs.settings(
            policy, "unused", method="reasoning_palette", hyperparameters=given, steps=2
        )
    )


@pytest.fixture(scope="module")
def sampled(run):
    """A batch of which half of each group has a prefix."""
    state = run.initial_state()
    return run, state, collect(run, state, 1).batch


@pytest.mark.thorough
def test_rows_are_scored_behind_their_own_prefixes(sampled):
    run, state, batch = sampled
    rollouts, on = batch.rollouts, batch.rollouts.mask
    assert_array_equal(
        rollouts.records["soft_length"].reshape(-1, 4), np.tile([2, 2, 0, 0], (4, 1))
    )
    logp = run.scorer(state.device)(rollouts, ["logp"], "current")["logp"]
    assert_allclose(rollouts.behaviour_logp[on], logp[on], atol=FLOAT32)
    zero = rollouts.replace(soft_prompt=np.zeros_like(rollouts.records["soft_prompt"]))
    other = run.scorer(state.device)(zero, ["logp"], "current")["logp"]
    moved = np.abs(other - logp).max(axis=1)
    assert np.all(moved[rollouts.records["soft_length"] > 0] > 1e-3)
    assert np.all(moved[rollouts.records["soft_length"] == 0] == 0)


@pytest.mark.thorough
def test_prefixes_of_a_group_differ(sampled):
    vectors = sampled[2].rollouts.records["soft_prompt"].reshape(4, 4, -1)
    assert np.all(np.abs(vectors[:, 0] - vectors[:, 1]).max(axis=1) > 0.01)
    assert not vectors[:, 2:].any()


@pytest.mark.thorough
def test_rows_without_a_prefix_are_those_of_plain_sampling(sampled, policy):
    _, _, batch = sampled
    plainly = training_runs.prepared(training_runs.settings(policy, "unused", steps=2))
    other = collect(plainly, plainly.initial_state(), 1).batch
    rows = np.flatnonzero(batch.rollouts.records["soft_length"] == 0)
    for name in ("tokens", "length", "mask", "behaviour_logp"):
        found, wanted = (x.rollouts.get(name)[rows] for x in (batch, other))
        if name == "behaviour_logp":
            assert_allclose(found, wanted, atol=FLOAT32)
        else:
            assert_array_equal(found, wanted)


@pytest.mark.slow
def test_no_gradient_reaches_the_prefix(sampled):
    rollouts = jax.tree.map(jnp.asarray, sampled[2].rollouts)
    model = Model(named_config("tiny", len(training_runs.WORDS), max_positions=32))
    params = jax.jit(model.init)(jax.random.key(0))

    def total(vectors):
        return jnp.sum(score(model, params, rollouts.replace(soft_prompt=vectors)).logp)

    assert not np.asarray(jax.grad(total)(rollouts.records["soft_prompt"])).any()


@pytest.mark.slow
def test_it_trains_while_prefixes_are_withdrawn(run, tmp_path):
    training_runs.quietly(replace(run.config, run_dir=tmp_path / "run"))
    lines = training_runs.metrics(tmp_path / "run")
    assert training_runs.values(lines, "experience/prefixed_fraction") == [1.0, 0.5]
    assert np.all(np.isfinite(training_runs.values(lines, "loss")))
    assert set(training_runs.values(lines, "ratio/max")) == {1.0}


def test_a_decoder_is_read_from_its_file_and_decodes_every_prefix(tmp_path):
    file = tmp_path / "decoder.npz"
    vae = new_prefix_vae(jax.random.key(0), width=4, latent=3, prefix=2)
    save_prefix_vae(file, vae)
    for name, found in load_prefix_vae(file)._asdict().items():
        assert_array_equal(found, getattr(vae, name))
    for decoder, decoded in ((str(file), 16), ("", 0)):
        chain = experience(draw=soft_prefixes(latent=3, prefix=2, decoder=decoder))
        collected = numpy_actor.walk(chain, steps=1)[0][0]
        assert collected.metrics["decoded_prefixes"] == decoded
        assert collected.metrics["prefixed_fraction"] == 1


def test_a_decoder_of_another_shape_is_refused(tmp_path):
    save_prefix_vae(
        tmp_path / "wide.npz", new_prefix_vae(jax.random.key(0), width=5, latent=3, prefix=4)
    )
    chain = experience(draw=soft_prefixes(latent=3, decoder=str(tmp_path / "wide.npz")))
    with pytest.raises(ValueError, match=r"as \(3, 4, 4\), got \(3, 4, 5\)"):
        numpy_actor.walk(chain, steps=1)
    with pytest.raises(ValueError, match=r"file of save_prefix_vae, got 'none.npz'.*palette"):
        soft_prefixes(decoder="none.npz")


def test_the_command_fits_the_texts_of_a_task(tmp_path, capsys):
    palette.main(palette.Config(tmp_path / "d.npz", "brackets:train=64", latent=8, steps=300))
    explained = float(capsys.readouterr().out.split("explained ")[1].split()[0])
    assert 0.3 < explained <= 1
    assert load_prefix_vae(tmp_path / "d.npz").mean.shape[1] == 8


def test_a_prefix_that_does_not_fit_is_refused(run):
    long = replace(run.config, hyperparameters=("prefix=40",))
    own = training_runs.prepared(long)
    with pytest.raises(ValueError, match=r"prefix must have at most \d+ vectors.*got 40"):
        collect(own, own.initial_state(), 0)
