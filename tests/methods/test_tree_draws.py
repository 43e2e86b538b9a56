"""Draws whose rows share beginnings, with our actor: what was drawn is what is trained."""

from dataclasses import replace

import numpy as np
import pytest
import training_runs
from everyday import everyday
from numpy.testing import assert_allclose, assert_array_equal
from tree_walks import walked

from rlvr_jax.experience import branch_rounds, experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods import recipe
from rlvr_jax.methods.off_policy.arrol import prune
from rlvr_jax.methods.trees.deepsearch import search_tree
from rlvr_jax.methods.trees.rose import branch_at_best
from rlvr_jax.runs.step import collect

FLOAT32 = 1e-5  # log-probs of a float32 sampler and scorer, of at most some nats


GREEDY = 1e-6


DRAWS = {
    "arpo": ("round_tokens=2", "top=5", "window=2", "weight=2"),
    "aepo_rollout": ("round_tokens=2", "top=5", "window=2"),
    "rose": ("fresh=0.2", "top=5"),
    "deepsearch": ("node_tokens=2", "width=3", "most_expansions=40", "overlong=2"),
    "arrol": ("least_area=0", "control=3", "check=0.4"),
}


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    return training_runs.write_policy(tmp_path_factory.mktemp("policy"))


def prepared(policy, method, **changes):
    config = training_runs.settings(policy, "unused", method=method, **changes)
    return training_runs.prepared(replace(config, hyperparameters=DRAWS.get(method, ())))


@pytest.fixture(scope="module", params=everyday(DRAWS, "arrol"))
def sampled(request, policy):
    """A run of the method, its state and a batch."""
    run = prepared(policy, request.param)
    state = run.initial_state()
    return request.param, run, state, collect(run, state, 0).batch


@pytest.mark.thorough
def test_every_token_is_scored_in_the_context_it_was_drawn_in(sampled):
    _, run, state, batch = sampled
    rollouts, on = batch.rollouts, batch.rollouts.mask
    scored = run.scorer(state.device)(rollouts, ["logp", "entropy"], "current")
    assert on.sum() > 50
    assert_allclose(rollouts.behaviour_logp[on], scored["logp"][on], atol=FLOAT32)
    assert_allclose(rollouts.entropy[on], scored["entropy"][on], atol=FLOAT32)


@pytest.mark.thorough
def test_what_was_drawn_is_on_the_mask_in_every_row_that_has_it(sampled):
    _, _, _, batch = sampled
    rollouts = batch.rollouts
    places = np.arange(rollouts.mask.shape[1])[None]
    assert_array_equal(rollouts.mask, places < rollouts.length[:, None])


def test_rows_share_the_records_of_what_they_branched_off(sampled):
    name, _, _, batch = sampled
    rollouts = batch.rollouts
    branches = np.flatnonzero(rollouts.parent >= 0)
    assert (len(branches) > 0) == (name != "arrol")
    for row in branches:
        parent, cut = rollouts.parent[row], rollouts.branch_position[row]
        assert rollouts.group[parent] == rollouts.group[row] and parent < row and cut > 0
        for record in ("tokens", "behaviour_logp", "entropy"):
            values = rollouts.get(record)
            assert_array_equal(values[row, :cut], values[parent, :cut])


@pytest.mark.thorough
@pytest.mark.parametrize("method", everyday(DRAWS, "rose"))
def test_greedy_rows_are_what_the_policy_writes_from_the_prompt(method, policy):
    """A segment that went on from another context than its own would differ."""
    run, plainly = (prepared(policy, name, temperature=GREEDY) for name in (method, "grpo"))
    state = run.initial_state()
    batch, other = collect(run, state, 0).batch, collect(plainly, state, 0).batch
    wanted = {
        request.number: row
        for request, row in zip(other.requests, other.rollouts.tokens, strict=True)
    }
    assert len(batch) > 0
    for request, tokens in zip(batch.requests, batch.rollouts.tokens, strict=True):
        assert_array_equal(tokens, wanted[request.number])


def test_without_pruning_rows_are_those_of_plain_sampling(policy):
    run, plainly = (prepared(policy, name) for name in ("arrol", "grpo"))
    own = replace(run, recipe=replace(run.recipe, experience=experience(draw=prune(least_area=1))))
    state = own.initial_state()
    batch, other = collect(own, state, 0).batch, collect(plainly, state, 0).batch
    for name in ("tokens", "mask", "length", "group", "truncated", "outcome"):
        assert_array_equal(batch.rollouts.get(name), other.rollouts.get(name))


def test_rounds_fork_up_to_the_samples_that_were_asked_for():
    eager = walked(branch_rounds(tokens=2, base=1.0, top=3, window=2), samples=6)
    for found in eager:
        told, batch = found.metrics, found.batch
        assert [len(rows) for rows in batch.groups] == [6] * 4
        assert told["forked_rows"] + told["begun_rows"] == 24 and told["begun_rows"] >= 12
    assert sum(found.metrics["forked_rows"] for found in eager) > 0
    for found in walked(branch_rounds(tokens=2, base=0.0, weight=0.0, top=3), samples=6):
        assert found.metrics["forked_rows"] == 0
        assert np.all(found.batch.rollouts.parent == -1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: branch_rounds(tokens=0), "branch_rounds: tokens must be at least 1, got 0"),
        (lambda: branch_rounds(base=2), r"branch_rounds: base must be in \[0, 1\], got 2"),
        (lambda: branch_at_best(fresh=-1), r"branch_at_best: fresh must be in \[0, 1\], got -1"),
        (lambda: search_tree(width=0), "search_tree: width must be at least 1, got 0"),
        (lambda: search_tree(least=0), "search_tree: least must be positive, got 0"),
        (lambda: prune(keep=0), r"prune: keep must be in \(0, 1\], got 0"),
        (lambda: prune(check=2), r"prune: check must be in \(0, 1\], got 2"),
    ],
)
def test_draws_that_cannot_be_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_vocabulary_that_is_too_small_is_refused_when_a_run_begins():
    chain = experience(draw=branch_rounds(top=20))
    with pytest.raises(ValueError, match=r"top must be at most the vocabulary.*got 20 and 12"):
        chain.init(numpy_actor.setting(chain))


@pytest.mark.slow
@pytest.mark.parametrize("method", DRAWS)
def test_it_trains_on_brackets(method, tmp_path):
    own = {"rose": ("max_length=48",), "deepsearch": ("node_tokens=12", "most_expansions=30")}
    own |= {"arpo": ("round_tokens=8",), "aepo_rollout": ("round_tokens=8",)}
    own["arrol"] = ("least_area=0",)
    lines = training_runs.on_brackets(
        method, tmp_path / "run", task="brackets", hyperparameters=own[method]
    )
    losses = training_runs.values(lines, "loss")
    assert len(losses) == 2 and np.all(np.isfinite(losses))
    acted = {"rose": "branched_rows", "deepsearch": "solved_rows", "arrol": "pruned_rows"}
    acted |= {"arpo": "forked_rows", "aepo_rollout": "forked_rows"}
    assert sum(training_runs.values(lines, f"experience/{acted[method]}")) > 0
    # One update a step: the rows are trained as they were drawn.
    for bound in ("max", "min"):
        assert set(training_runs.values(lines, f"ratio/{bound}")) == {1.0}
        drawn_at = training_runs.values(lines, f"sampler_ratio/{bound}")
        assert_allclose(drawn_at, 1, atol=2 * FLOAT32)


def test_their_draws_are_for_training_alone():
    for name in DRAWS:
        name, draw = recipe(name).experience.draw
        assert name != "plain" and not draw.of_policy
