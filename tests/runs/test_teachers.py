"""Teachers: whose whole distribution an objective compares the policy with."""

import json
import shutil

import jax
import numpy as np
import pytest
import training_runs

from rlvr_jax import methods, policy
from rlvr_jax.policy.scoring import score_vocabulary
from rlvr_jax.runs.resolved import resolve
from rlvr_jax.runs.run import make_run
from rlvr_jax.runs.step import take_step
from rlvr_jax.training.statistics import statistics
from rlvr_jax.types import Rollouts, replace

DECAY = 0.9
VOCABULARY = 23
FLOAT32 = 1e-5  # sums over a vocabulary of 23, logits of order 1


def run_with(model, teacher):
    """A run whose loss has the divergence from a teacher, one update a step."""
    config = training_runs.settings(model, "unused", method="mdpo", minibatches=1, epochs=1)
    task = training_runs.sums()
    recipe = replace(methods.recipe("mdpo", updates_per_step=1), teacher=teacher)
    return make_run(resolve(config, task, recipe))


def divergences(run, steps=2):
    state, found = run.initial_state(), []
    for step in range(steps):
        taken = take_step(run, state, step)
        state = taken.state
        found.append(taken.metrics["mirror_kl"])
    return found, state


@pytest.mark.thorough
def test_the_policy_that_sampled_is_no_distance_away(model):
    found, _ = divergences(run_with(model, None))
    np.testing.assert_allclose(found, 0, atol=1e-6)


@pytest.mark.thorough
def test_the_start_is_left_behind(model):
    found, _ = divergences(run_with(model, "start"))
    assert abs(found[0]) < 1e-6 < found[1]


def test_an_average_follows_the_weights(model):
    run = run_with(model, f"average:{DECAY}")
    start = jax.device_get(run.initial_state().device.params)
    taken = take_step(run, run.initial_state(), 0)
    now, average = jax.device_get((taken.state.device.params, taken.state.device.teacher))
    for before, after, mean in zip(*map(jax.tree.leaves, (start, now, average)), strict=True):
        np.testing.assert_allclose(mean, DECAY * before + (1 - DECAY) * after, atol=1e-6)
    found, _ = divergences(run)
    assert abs(found[0]) < 1e-6 < found[1]


@pytest.mark.slow
def test_an_average_is_sharded_as_the_weights_are(model):
    config = training_runs.settings(
        model,
        "unused",
        method="opd",
        hyperparameters=(f"teacher=average:{DECAY}",),
        mesh="data=4,fsdp=2",
    )
    run = training_runs.prepared(config)
    taken = take_step(run, run.initial_state(), 0)
    spread = 0
    for own, mean in zip(
        *map(jax.tree.leaves, (taken.state.device.params, taken.state.device.teacher)), strict=True
    ):
        assert mean.sharding.is_equivalent_to(own.sharding, own.ndim)
        spread += not mean.sharding.is_fully_replicated
    assert spread > 0


@pytest.mark.thorough
def test_an_average_is_saved_and_a_run_goes_on_in_the_same_bytes(model, tmp_path):
    changes = dict(method="opd", hyperparameters=(f"teacher=average:{DECAY}",))
    changes |= dict(steps=4, checkpoint_every=2)
    whole, again = tmp_path / "whole", tmp_path / "again"
    training_runs.quietly(training_runs.settings(model, whole, **changes))
    gaps = training_runs.values(training_runs.metrics(whole), "teacher_log_ratio")
    assert gaps[0] == pytest.approx(0, abs=1e-6) and abs(gaps[-1]) > 1e-6
    shutil.copytree(whole, again)
    shutil.rmtree(again / "checkpoints" / "4")
    (again / "summary.json").unlink()
    training_runs.quietly(training_runs.settings(model, again, resume=True, **changes))
    assert training_runs.contents(again) == training_runs.contents(whole)


def test_another_folder_is_a_teacher_from_the_first_step_on(model, tmp_path):
    other = training_runs.write_policy(tmp_path, seed=1)
    found, _ = divergences(run_with(model, str(other)), steps=1)
    assert found[0] > 1e-4


def test_an_average_without_a_decay_is_refused(model):
    with pytest.raises(ValueError, match=r"teacher must be average:<decay in \[0, 1\)>, got 'av"):
        run_with(model, "average:2")


@pytest.mark.thorough
def test_a_teacher_reads_the_second_prompt_of_rows_that_have_one():
    """Its divergences, entropy and log-probs, against arrays over the whole vocabulary."""
    config = policy.named_config("tiny", VOCABULARY, max_positions=32)
    model = policy.Model(config)
    own, other = (jax.jit(model.init)(jax.random.key(seed)) for seed in (0, 1))
    random = np.random.default_rng(0)
    rows, width, budget = 3, 4, 5
    length = np.array([5, 3, 0], np.int32)
    batch = Rollouts.of_responses(
        random.integers(VOCABULARY, size=(rows, budget)),
        np.arange(budget)[None] < length[:, None],
        np.zeros(rows),
        np.arange(rows),
        prompt_tokens=random.integers(VOCABULARY, size=(rows, width)).astype(np.int32),
        prompt_length=np.array([4, 2, 3], np.int32),
        second_tokens=random.integers(VOCABULARY, size=(rows, width + 2)).astype(np.int32),
        second_length=np.array([6, 0, 0], np.int32),
        temperature=np.full((rows, budget), 1.5, np.float32),
    )
    needs = {"logp", "topk_logp", "topk_ids", "kl", "teacher_entropy", "teacher_topk_logp"}
    found = statistics(model, own, batch, needs, (("top_k", 4),), other=other)
    plain = jax.tree.map(np.asarray, batch)
    two = plain.records["second_length"] > 0
    prompts = np.where(
        two[:, None],
        plain.records["second_tokens"],
        np.pad(plain.prompt_tokens, ((0, 0), (0, 2))),
    )
    beside = batch.replace(
        prompt_tokens=prompts,
        prompt_length=np.where(two, plain.records["second_length"], plain.prompt_length),
    )
    p, q = (
        np.asarray(score_vocabulary(model, params, rows_of), np.float64)
        for params, rows_of in ((own, batch), (other, beside))
    )
    mask = plain.mask
    kl = np.where(mask, np.sum(np.exp(p) * (p - q), axis=-1), 0)
    entropy = np.where(mask, -np.sum(np.exp(q) * q, axis=-1), 0)
    at = np.take_along_axis(q, np.asarray(found.records["topk_ids"]), axis=-1)
    np.testing.assert_allclose(found.records["kl"], kl, atol=FLOAT32)
    np.testing.assert_allclose(found.records["teacher_entropy"], entropy, atol=FLOAT32)
    np.testing.assert_allclose(
        found.records["teacher_topk_logp"], np.where(mask[:, :, None], at, 0), atol=FLOAT32
    )


def other_words(folder):
    """A policy of the same shape whose words have other numbers."""
    words = [*training_runs.WORDS[1:], training_runs.WORDS[0]]
    path = training_runs.write_policy(folder)
    file = path / "tokenizer.json"
    told = json.loads(file.read_text())
    told["model"]["vocab"] = {word: number for number, word in enumerate(words)}
    for added in told["added_tokens"]:
        added["id"] = words.index(added["content"])
    file.write_text(json.dumps(told))
    return path


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (other_words, "must have the policy's tokens, got others"),
        (
            lambda folder: training_runs.write_policy(folder, num_layers=3),
            "must have the policy's num_layers 2, got 3",
        ),
        (
            lambda folder: training_runs.write_policy(folder, rope_theta=5e5),
            r"must have the policy's rope_theta 10000.0, got 500000.0",
        ),
        (
            lambda folder: training_runs.write_policy(folder, mlp_width=8),
            "must have the policy's mlp_width .*, got 8",
        ),
    ],
)
def test_a_teacher_of_other_tokens_or_another_shape_is_refused(model, tmp_path, make, said):
    with pytest.raises(ValueError, match=said):
        run_with(model, str(make(tmp_path)))
