"""Learned scorers in the critic's place: what they say, how they are fitted, that they resume."""

import shutil
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from methods_of_tests import implicit_scorer
from training_runs import contents, metrics, quietly, settings, sums, values

from rlvr_jax import policy
from rlvr_jax.methods.clipping.safe import pessimistic_scorer, soft_min
from rlvr_jax.methods.credit.rlfr import flow_scorer
from rlvr_jax.objectives import Scorer
from rlvr_jax.runs.loading import load_policy
from rlvr_jax.training.critic import critic_params, initial_critic
from rlvr_jax.training.scorers import fit_scorer, seen_by
from rlvr_jax.types import Rollouts

CLOSE = 1e-5
"""Of float32 sums over some hundred terms."""


@pytest.fixture(scope="module")
def own(model):
    config = settings(model, "unused")
    loaded = load_policy(config, sums(), str(model))
    return loaded.model, loaded.params


def rows(own, count=8, seed=0):
    """Responses of several lengths, every second one right."""
    random = np.random.default_rng(seed)
    tokens = random.integers(3, 14, (count, 5)).astype(np.int32)
    length = random.integers(1, 6, count).astype(np.int32)
    batch = Rollouts.of_responses(
        tokens,
        np.arange(5)[None] < length[:, None],
        (np.arange(count) % 2).astype(np.float32),
        np.arange(count) // 4,
        prompt_tokens=random.integers(3, 14, (count, 4)).astype(np.int32),
        prompt_length=np.full(count, 4, np.int32),
    )
    reference = policy.score(*own, batch).logp
    blank = {
        "process_reward": jnp.zeros((count, 5)),
        "critic_values": jnp.zeros((count, 2), np.float32),
    }
    return batch.replace(reference_logp=reference, **blank)


def scored(own, scorer, state, batch):
    model, params = own
    whole = critic_params(state.params, params)
    return scorer.score(whole["head"], seen_by(model, scorer, whole["trunk"], batch, 1, 0), batch)


def begun(own, scorer, rate=1e-2):
    optimizer = optax.adam(rate)
    return optimizer, initial_critic(own[0], scorer, optimizer, own[1])


def fitted(own, scorer, optimizer, state, batch, **how):
    return fit_scorer(own[0], scorer, optimizer, state, batch, own[1], **how)


@pytest.mark.slow
def test_a_flow_begins_with_the_distance_from_noise_and_learns_right_answers(own):
    scorer, batch = flow_scorer(0.8, 2), rows(own)
    optimizer, state = begun(own, scorer)
    before = scored(own, scorer, state, batch)
    assert (np.asarray(before)[~np.asarray(batch.mask)] == 0).all()
    # The network says 0: what is left is 4 times the mean square of state less noise.
    states = np.asarray(seen_by(own[0], scorer, own[1], batch, 1, 0))[:, 1:]
    key = jax.random.fold_in(jax.random.fold_in(jax.random.key(0), 0), 3)
    noise = np.asarray(jax.random.normal(key, states.shape[1:], states.dtype))
    wanted = 4 * np.mean((states[3] - noise) ** 2, axis=-1)
    there = np.asarray(batch.mask)[3]
    np.testing.assert_allclose(np.asarray(before)[3][there], wanted[there], rtol=1e-4)
    losses = []
    fit = jax.jit(lambda state, batch: fitted(own, scorer, optimizer, state, batch))
    for version in range(100):
        # Other weights, other noise.
        again = batch.replace(weight_version=jnp.full(8, version, jnp.int32))
        state, told = fit(state, again)
        losses.append(float(told["critic/loss"]))
    assert np.mean(losses[-10:]) < 0.9 * np.mean(losses[:10])
    gain = np.asarray(before - scored(own, scorer, state, batch)).sum(axis=1)
    assert gain[1::2].mean() > 0


@pytest.mark.slow
def test_wrong_answers_teach_a_flow_nothing(own):
    scorer, batch = flow_scorer(0.8, 1), rows(own)
    optimizer, state = begun(own, scorer)
    incorrect = batch.replace(outcome=jnp.zeros(8))
    kept = jax.tree.map(jnp.copy, state)
    same, told = fitted(own, scorer, optimizer, state, incorrect)
    jax.tree.map(np.testing.assert_array_equal, same, kept)
    assert told["critic/gradient_norm"] == 0


@pytest.mark.slow
def test_what_a_token_scores_does_not_depend_on_the_other_rows(own):
    scorer, batch = flow_scorer(0.5, 1), rows(own)
    _, state = begun(own, scorer)
    whole = scored(own, scorer, state, batch)
    order = np.array([5, 2, 7, 0])
    part = jax.tree.map(lambda x: x[order], batch)
    np.testing.assert_allclose(scored(own, scorer, state, part), whole[order], rtol=CLOSE)


@pytest.mark.slow
def test_an_implicit_reward_begins_at_zero_and_learns_which_answers_are_right(own):
    scorer, batch = implicit_scorer(1.0), rows(own)
    optimizer, state = begun(own, scorer, 1e-3)
    np.testing.assert_allclose(scored(own, scorer, state, batch), 0, atol=CLOSE)
    state, told = fitted(own, scorer, optimizer, state, batch)
    assert float(told["critic/loss"]) == pytest.approx(np.log(2), abs=1e-4)
    for _ in range(10):
        state, told = fitted(own, scorer, optimizer, state, batch)
    reward = np.asarray(scored(own, scorer, state, batch)).sum(axis=1)
    assert reward[1::2].mean() > reward[::2].mean() + 0.1
    assert float(told["critic/loss"]) < np.log(2)


@pytest.mark.slow
def test_two_critics_differ_and_come_to_expect_the_rewards(own):
    scorer, batch = pessimistic_scorer(), rows(own)
    optimizer, state = begun(own, scorer, 3e-2)
    before = scored(own, scorer, state, batch)
    assert before.shape == (8, 2) and not np.allclose(before[:, 0], before[:, 1], atol=1e-2)
    # They read the last token's state, normalized, whatever stands behind it.
    states = np.asarray(seen_by(own[0], scorer, own[1], batch, 1, 0))
    state_of = states[3, int(batch.length[3])]
    scaled = (state_of - state_of.mean()) / np.sqrt(state_of.var() + 1e-5)
    wanted = scaled @ np.asarray(state.params["head"]["weight"])
    np.testing.assert_allclose(before[3], wanted, rtol=1e-4, atol=CLOSE)
    fit = jax.jit(lambda state, batch: fitted(own, scorer, optimizer, state, batch))
    for _ in range(60):
        values = scored(own, scorer, state, batch)
        state, _ = fit(state, batch.replace(critic_values=values))
    after = np.asarray(soft_min(scored(own, scorer, state, batch), 0.3))
    then = np.asarray(soft_min(before, 0.3))
    reward = np.asarray(batch.reward)
    assert np.abs(after - reward).mean() < 0.5 * np.abs(then - reward).mean()


@pytest.mark.slow
def test_critics_expect_nothing_of_empty_responses_and_learn_nothing_from_them(own):
    scorer, batch = pessimistic_scorer(), rows(own)
    optimizer, state = begun(own, scorer)
    empty = batch.replace(mask=batch.mask & False, length=batch.length * 0)
    assert not np.asarray(scored(own, scorer, state, empty)).any()
    kept = jax.tree.map(jnp.copy, state)
    same, told = fitted(own, scorer, optimizer, state, empty)
    jax.tree.map(np.testing.assert_array_equal, same, kept)
    assert told["critic/loss"] == 0


@pytest.mark.thorough
@pytest.mark.parametrize(
    "scorer",
    [
        pytest.param(flow_scorer(0.8, 1), marks=pytest.mark.slow),
        pytest.param(implicit_scorer(1.0), marks=pytest.mark.slow),
        pessimistic_scorer(),
    ],
    ids=["flow", "prm", "critics"],
)
def test_pieces_change_nothing(own, scorer):
    batch = rows(own)
    optimizer, state = begun(own, scorer)
    found = []
    for chunks in (1, 4):
        fit = partial(fitted, own, scorer, optimizer, micro_batches=chunks)
        found.append(jax.jit(fit)(state, batch)[1])
    for name in found[0]:
        np.testing.assert_allclose(found[0][name], found[1][name], rtol=1e-4)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: flow_scorer(1.0), r"time must be in \(0, 1\), got 1"),
        (lambda: flow_scorer(blocks=0), "blocks must be"),
        (lambda: implicit_scorer(0.0), "scale must be positive, got 0"),
        (lambda: Scorer(None, None, None, "both"), "trunk must be one of 'own', 'policy'"),
        (
            lambda: Scorer(None, None, None, reads=frozenset({"turn"})),
            r"reads must be among reference_logp, got \['turn'\]",
        ),
        (
            lambda: Scorer(None, None, None, writes="values"),
            "writes must be one of 'process_reward', 'critic_values', got 'values'",
        ),
        (lambda: pessimistic_scorer(width=0.0), "width must be positive, got 0"),
    ],
)
def test_a_scorer_that_cannot_be_made_is_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rlfr", "safe", "methods_of_tests:implicit_process"])
def test_runs_fit_their_scorer_and_resume_in_the_same_bytes(model, tmp_path, name):
    changes = dict(method=name, steps=4, checkpoint_every=2, critic_learning_rate=1e-2)
    if name == "rlfr":
        changes["hyperparameters"] = ("blocks=2", "coefficient=0.1")
    whole, again = tmp_path / "whole", tmp_path / "again"
    quietly(settings(model, whole, **changes))
    lines = metrics(whole)
    assert all(norm > 0 for norm in values(lines, "critic/gradient_norm"))
    score = values(lines, "critic/score")
    assert all(x != 0 for x in score[1:])
    assert name == "safe" or any(values(lines, "process_reward"))
    shutil.copytree(whole, again)
    shutil.rmtree(again / "checkpoints" / "4")
    (again / "summary.json").unlink()
    quietly(settings(model, again, resume=True, **changes))
    assert contents(again) == contents(whole)
