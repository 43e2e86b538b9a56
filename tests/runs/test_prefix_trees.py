"""`--prefix-trees`: a run whose rows fork, with trees and without."""

import jax
import numpy as np
import pytest
import training_runs

from rlvr_jax.policy import hidden_states
from rlvr_jax.runs.step import collect
from rlvr_jax.training import critic
from rlvr_jax.training.learning import learn
from rlvr_jax.training.prefixes import WORTH

# float32 sums in another order, on log-probs of some nats and on gradients of order one
ROUNDING = 2e-5
FORKS = ("round_tokens=4", "top=5", "window=4", "weight=2", "tool_bonus=0")


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    return training_runs.write_policy(tmp_path_factory.mktemp("policy"))


def settings(policy, folder, *hyperparameters, **changes):
    """Two groups of eight rows of up to 28 tokens."""
    sizes = dict(response_tokens=28, samples_per_prompt=8, prompts_per_step=4, steps=2)
    config = training_runs.settings(policy, folder, method="arpo", **{**sizes, **changes})
    return config.replace(hyperparameters=(*FORKS, *hyperparameters))


def learned(config, rollouts=None, **changes):
    """The rollouts of a step of a run, its metrics, its record, and the weights after it."""
    run = training_runs.prepared(config.replace(**changes))
    state = run.initial_state()
    if rollouts is None:
        rollouts = collect(run, state, 0).batch.rollouts
    after, metrics, record = learn(run.learner, state.device, rollouts, 0)
    return rollouts, metrics, record, jax.device_get(after.params)


def assert_same(found, wanted):
    """Up to rounding; Adam makes steps of one size of all but the smallest gradients."""
    for name in ("loss", "gradient_norm", "entropy"):
        np.testing.assert_allclose(found[1][name], wanted[1][name], rtol=1e-4, err_msg=name)
    for name in ("logp", "entropy", "old_logp", "ratio"):
        np.testing.assert_allclose(found[2][name], wanted[2][name], atol=ROUNDING, err_msg=name)


def test_forked_rows_are_computed_as_trees_with_the_same_numbers(policy):
    config = settings(policy, "unused")
    shared = learned(config)
    rows = shared[0]
    assert (rows.parent >= 0).any()
    assert shared[1]["update_tokens_fraction"] <= WORTH
    alone = learned(config, rows, prefix_trees="never")
    assert shared[1].keys() - alone[1].keys() == {"update_tokens_fraction"}
    assert_same(shared, alone)
    # Without forks no bit changes, even if rows have common prefixes.
    rows = rows.replace(parent=np.full_like(rows.parent, -1))
    again = learned(config, rows)
    assert again[1] == alone[1]
    jax.tree.map(np.testing.assert_array_equal, again[3], alone[3])


@pytest.mark.thorough
@pytest.mark.parametrize("mesh", [pytest.param("", marks=pytest.mark.slow), "data=4,tensor=2"])
def test_minibatches_and_meshes_have_the_trees_of_their_rows(policy, mesh):
    how = dict(minibatches=2, epochs=2, micro_batches=1 if mesh else 2, mesh=mesh)
    config = settings(policy, "unused", prefix_trees="always", **how)
    shared = learned(config)
    assert shared[1]["update_tokens_fraction"] < 1
    assert_same(shared, learned(config, shared[0], prefix_trees="never"))


@pytest.mark.thorough
def test_a_critic_reads_the_same_trees(policy, monkeypatch):
    trees = []

    def read(*arguments):
        trees.append(arguments[-1])
        return hidden_states(*arguments)

    monkeypatch.setattr(critic, "hidden_states", read)
    sizes = dict(response_tokens=28, samples_per_prompt=8, prompts_per_step=4, micro_batches=2)
    # The head is zero in the first pass, so that only the second has a gradient of the network.
    sizes["critic_epochs"] = 2
    config = training_runs.settings(policy, "unused", method="ppo", **sizes)
    shared = learned(config, prefix_trees="always")
    assert len(trees) == 2 and None not in trees  # the program of the values, that of the fit
    alone = learned(config, shared[0], prefix_trees="never")
    assert trees[2:] == [None, None]
    assert_same(shared, alone)
    for name in ("loss", "gradient_norm", "value", "return"):
        name = f"critic/{name}"
        np.testing.assert_allclose(shared[1][name], alone[1][name], rtol=1e-4, atol=ROUNDING)


@pytest.mark.thorough
def test_trees_have_the_bits_of_a_bitwise_sampler(policy):
    shared = learned(settings(policy, "unused", prefix_trees="always", bitwise=True))
    assert shared[1]["update_tokens_fraction"] < 1
    assert shared[1]["differing_fraction"] == 0


@pytest.mark.thorough
def test_a_resumed_run_has_the_bytes_of_a_whole_one(policy, tmp_path):
    whole = settings(policy, tmp_path / "whole", prefix_trees="always")
    training_runs.quietly(whole)
    half = whole.replace(run_dir=tmp_path / "half", steps=1)
    training_runs.quietly(half)
    training_runs.quietly(half.replace(steps=2, resume=True))
    found, again = (training_runs.contents(tmp_path / name) for name in ("whole", "half"))
    # The half run has an evaluation more, at its end.
    lines = [each.pop("metrics.jsonl").splitlines()[-1] for each in (found, again)]
    assert found == again
    assert lines[0] == lines[1]
    assert b"update_tokens_fraction" in lines[0]
