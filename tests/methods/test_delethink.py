"""Answers that are written in chunks, each in a context of its own."""

from dataclasses import replace
from itertools import pairwise

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
import pytest
import training_runs

from rlvr_jax.experience import experience, plain, redraw
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numpy_actor import NumpyActor
from rlvr_jax.experience.requests import PLAIN
from rlvr_jax.experience.samples import sample_rows
from rlvr_jax.methods import recipe
from rlvr_jax.methods.credit.delethink import carried_over, chunks
from rlvr_jax.objectives import (
    group_normalized,
    objective,
    ppo_clip,
    rollout_mean_token_mean,
    truncate_importance,
)
from rlvr_jax.objectives.statistics.traces import last_of_trace, trace_ids
from rlvr_jax.runs.loop import evaluate_run
from rlvr_jax.runs.step import collect, take_step
from rlvr_jax.types import Recipe

FLOAT32 = 1e-5  # log-probs of a float32 sampler and scorer, of at most some nats
CARRY, HEAD, MOST = 4, 2, 3


class Lengthy(NumpyActor):
    """Whose responses end within the budget in one case of two or three."""

    def _row(self, request, sample, key):
        row = super()._row(request, sample, key)
        again = replace(request, number=request.number + 1000)
        return row if row["truncated"] else super()._row(again, sample, key)


def collected(step=0, most=MOST, **changes):
    chain = experience(draw=chunks(most, HEAD, CARRY), **changes)
    ((found, _, _),) = numpy_actor.walk(chain, Lengthy(), steps=1, first=step)
    return found


def traces(rollouts):
    """The rows of each answer."""
    return [
        np.flatnonzero(rollouts.records["trace"] == number)
        for number in np.unique(rollouts.records["trace"])
    ]


def test_the_beginning_and_the_end_are_carried_over():
    text = list(range(10))
    assert carried_over(text, carry=5, head=2) == [0, 1, 7, 8, 9]
    assert carried_over(text, carry=5, head=0) == [5, 6, 7, 8, 9]
    assert carried_over(text, carry=3, head=3) == [0, 1, 2]


def test_every_chunk_begins_with_what_the_one_before_carries_over():
    lengths = set()
    for step in range(4):
        rollouts = collected(step).batch.rollouts
        width = rollouts.mask.shape[1]
        places = np.arange(width)
        for rows in traces(rollouts):
            lengths.add(len(rows))
            assert np.all(np.diff(rows) == 1) and np.ptp(rollouts.group[rows]) == 0
            for before, row in pairwise(rows):
                assert rollouts.length[before] == width
                kept = carried_over(rollouts.tokens[before].tolist(), CARRY, HEAD)
                assert rollouts.tokens[row, :CARRY].tolist() == kept
                wanted = (places >= CARRY) & (places < rollouts.length[row])
                np.testing.assert_array_equal(rollouts.mask[row], wanted)
                np.testing.assert_array_equal(rollouts.records["origin"][row] == 3, places < CARRY)
    assert lengths == {1, 2, 3}


def test_the_rows_of_an_answer_have_the_grade_of_the_last():
    batch = collected().batch
    for rows in traces(batch.rollouts):
        assert all(batch.grades[row] == batch.grades[rows[-1]] for row in rows)
        assert np.ptp(batch.rollouts.outcome[rows]) == np.ptp(batch.rollouts.reward[rows]) == 0
        assert np.ptp(batch.rollouts.truncated[rows].astype(int)) == 0
    last = batch.take(np.unique(batch.last_of_trace))
    np.testing.assert_array_equal(last.rollouts.outcome, Lengthy().grade(last).rollouts.outcome)
    assert 0 < batch.rollouts.outcome.mean() < 1


def test_a_group_has_all_answers_to_its_prompt():
    found = collected()
    batch = found.batch
    for rows in batch.groups:
        assert len(np.unique(batch.rollouts.records["trace"][rows])) == 4
        assert len({batch.requests[row].number for row in rows}) == 1
    assert found.metrics["answers"] == 16 and found.metrics["chunks"] == len(batch)
    assert found.metrics["sampled_tokens"] == batch.rollouts.mask.sum()


def test_one_chunk_is_plain_sampling():
    found = collected(most=1).batch.rollouts
    ((other, _, _),) = numpy_actor.walk(experience(draw=plain()), Lengthy(), steps=1)
    for name in ("tokens", "mask", "group", "truncated", "outcome"):
        np.testing.assert_array_equal(found.get(name), other.batch.rollouts.get(name))


def test_answers_that_are_drawn_again_are_other_traces():
    again = redraw(lambda outcomes: np.ones(len(outcomes), bool), PLAIN, "append", samples=4)
    batch = collected(stages=[again]).batch
    for rows in batch.groups:
        assert len(np.unique(batch.rollouts.records["trace"][rows])) == 8
    for rows in traces(batch.rollouts):
        assert np.ptp(batch.rollouts.group[rows]) == 0 and len(rows) <= MOST


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"most": 0}, "chunks: most must be at least 1, got 0"),
        ({"head": -1}, "chunks: head must be at least 0, got -1"),
        ({"carry": 0}, "chunks: carry must be at least 1, got 0"),
    ],
)
def test_chunks_that_cannot_be_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        chunks(**{"most": 2, "head": 1, "carry": 4, **changes})


def test_a_carry_that_leaves_no_room_is_refused_when_a_run_begins():
    chain = experience(draw=chunks(most=2, head=1, carry=8))
    with pytest.raises(ValueError, match=r"response_tokens must be at least 9 .*got 8"):
        chain.init(numpy_actor.setting(chain))


# What is learned from them.


def test_a_row_without_a_trace_is_one_by_itself():
    numbers = jnp.arange(5)
    trace = jnp.array([1, -1, 1, -1, 0])
    ids = trace_ids(trace, numbers)
    assert len(np.unique(ids)) == 4
    last = last_of_trace(ids, numbers)
    np.testing.assert_array_equal(last, [False, True, True, True, True])
    np.testing.assert_array_equal(last_of_trace(trace_ids(None, numbers), numbers), [True] * 5)


@pytest.mark.slow
def test_answers_in_one_row_each_are_grpo():
    ours = golden.evaluate(recipe("delethink"), "b")
    plainly = objective(
        advantage=group_normalized(),
        transforms=[truncate_importance(2.0)],
        surrogate=ppo_clip(0.2, 0.26, dual=3.0),
        aggregation=rollout_mean_token_mean(),
    )
    grpo = golden.evaluate(Recipe(plainly), "b")
    golden.assert_agrees(ours.loss, grpo.loss)
    golden.assert_agrees(ours.dlogits, grpo.dlogits)


@pytest.mark.slow
def test_rows_without_tokens_do_not_count():
    """Such as those that fill a batch up to a compiled number of rows."""
    batch = golden.rollouts("b")
    rows = len(batch.group)
    last = np.arange(rows) >= rows - 2
    trace = np.where(last, -1, np.arange(rows) // 2).astype(np.int32)
    group = np.where(last, rows + np.arange(rows), batch.group).astype(np.int32)
    cleared = batch.replace(
        mask=batch.mask & ~last[:, None],
        trace=jnp.asarray(trace),
        group=jnp.asarray(group),
    )
    one, other = (
        golden.evaluate(recipe("delethink"), "b", batch=cleared.replace(reward=reward))
        for reward in (cleared.reward, jnp.where(last, 7, cleared.reward))
    )
    golden.assert_agrees(one.dlogits, other.dlogits)
    assert one.metrics["rows_per_trace"] == 2
    per_token = np.where(cleared.mask, one.token_loss, 0).sum(axis=1)
    np.testing.assert_allclose(one.loss, per_token[~last].sum() / (rows - 2))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    policy = training_runs.write_policy(tmp_path_factory.mktemp("policy"))
    config = training_runs.settings(policy, "unused", method="delethink", temperature=0.6)
    return training_runs.prepared(replace(config, hyperparameters=("head=1", "carry=4")))


@pytest.mark.thorough
def test_every_chunk_is_scored_in_the_context_it_was_drawn_in(run):
    state = run.initial_state()
    batch = collect(run, state, 0).batch
    rollouts = batch.rollouts
    assert max(map(len, traces(rollouts))) > 2
    on = rollouts.mask
    logp = run.scorer(state.device)(rollouts, ["logp"], "current")["logp"]
    np.testing.assert_allclose(rollouts.behaviour_logp[on], logp[on], atol=FLOAT32)
    assert np.all(rollouts.temperature[on] == np.float32(0.6))


@pytest.mark.thorough
def test_evaluations_write_in_chunks_too(run):
    """In one context the budget cuts many more answers than in three."""
    config = replace(run.config, hyperparameters=("head=1", "max_chunks=1"), method="delethink")
    alone = training_runs.prepared(config)
    found = [evaluate_run(own, own.initial_state(), 0) for own in (run, alone)]
    cut = [told.metrics["held_out/truncated_fraction"] for told in found]
    assert cut[0] <= cut[1] / 2 and cut[1] > 0
    assert found[0].n == found[1].n


@pytest.mark.slow
def test_it_trains_to_the_end(run, tmp_path):
    training_runs.quietly(replace(run.config, run_dir=tmp_path / "run", steps=2))
    lines = [line for line in training_runs.metrics(tmp_path / "run") if "loss" in line]
    assert len(lines) == 2 and all(np.isfinite(line["loss"]) for line in lines)
    for line in lines:
        chunks_of = line["experience/chunks"] / line["experience/answers"]
        assert line["rows_per_trace"] == pytest.approx(chunks_of) and chunks_of > 1.5
        assert line["left_out_rows"] == 0
        assert line["ratio/max"] == line["ratio/min"] == 1


@pytest.mark.thorough
def test_samples_show_every_token_of_a_chunk_that_is_gone_on_from(run):
    taken = take_step(run, run.initial_state(), 0)
    batch = taken.batch
    shown = sample_rows(batch, taken.records, 1, 99)
    assert len(shown) == len(batch.groups)
    first = [rows[0] for rows in batch.groups]
    goes_on = batch.last_of_trace[first] != first
    assert goes_on.any()
    for row, on, sample in zip(first, goes_on, shown, strict=True):
        stops = not on and not batch.rollouts.truncated[row]
        assert len(sample["response"].split()) == batch.rollouts.length[row] - stops
