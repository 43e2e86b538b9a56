"""Answers in segments between which the policy sums up."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import training_runs
from numpy.testing import assert_allclose, assert_array_equal

from rlvr_jax.experience import experience, plain
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.agents.supo import summaries
from rlvr_jax.objectives import GIVEN
from rlvr_jax.runs.step import collect

FLOAT32 = 1e-5  # log-probs of a float32 sampler and scorer, of at most some nats
CONTEXT, SUMMARY, MOST = 4, 2, 2


def sampled(**changes):
    own = {"most": MOST, "instruction": "a", "context": CONTEXT, "summary": SUMMARY, **changes}
    return numpy_actor.walk(experience(draw=summaries(**own)), steps=3)


def traces(rollouts):
    return [
        np.flatnonzero(rollouts.records["trace"] == number)
        for number in np.unique(rollouts.records["trace"])
    ]


def test_a_segment_is_text_an_instruction_and_a_summary_that_the_next_one_begins_with():
    (instruction,), stop = numpy_actor.NumpyActor().encode("a"), numpy_actor.STOP
    lengths = set()
    for found, _, _ in sampled():
        rollouts = found.batch.rollouts
        assert found.metrics["segments"] == len(found.batch) and found.metrics["answers"] == 16
        for rows in traces(rollouts):
            lengths.add(len(rows))
            carried = []
            for row, after in pairwise([*rows, None]):
                tokens = rollouts.tokens[row, : rollouts.length[row]].tolist()
                given = rollouts.records["origin"][row, : rollouts.length[row]] == GIVEN
                assert_array_equal(rollouts.mask[row, : rollouts.length[row]], ~given)
                assert tokens[: len(carried)] == carried and given[: len(carried)].all()
                if after is None:
                    assert given.sum() == len(carried)
                    continue
                assert tokens[CONTEXT] == instruction and given[CONTEXT]
                assert given.sum() == len(carried) + 1
                written = tokens[CONTEXT + 1 :]
                assert 1 <= len(written) <= SUMMARY
                carried = [token for token in written if token != stop]
    assert lengths == {1, 2, 3}


def test_the_rows_of_an_answer_have_the_grade_of_the_last():
    for found, _, _ in sampled():
        batch = found.batch
        for rows in traces(batch.rollouts):
            assert all(batch.grades[row] == batch.grades[rows[-1]] for row in rows)
            assert np.ptp(batch.rollouts.truncated[rows].astype(int)) == 0


def test_without_a_summary_it_is_plain_sampling():
    plainly = numpy_actor.walk(experience(draw=plain()), steps=3)
    for (one, _, _), (other, _, _) in zip(sampled(most=0), plainly, strict=True):
        for name in ("tokens", "mask", "length", "outcome"):
            assert_array_equal(one.batch.rollouts.get(name), other.batch.rollouts.get(name))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"most": -1}, "summaries: most must be at least 0, got -1"),
        ({"context": 6}, "context must be above 2.* and at most 5, .*got 6"),
        ({"context": 2}, "context must be above 2.*got 2"),
    ],
)
def test_segments_that_cannot_be_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        sampled(**changes)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    policy = training_runs.write_policy(tmp_path_factory.mktemp("policy"))
    given = ("instruction==", "context=3", "summary=1")
    config = training_runs.settings(policy, "unused", method="supo", steps=2)
    return training_runs.prepared(replace(config, hyperparameters=given))


@pytest.mark.thorough
def test_every_segment_is_scored_in_the_context_it_was_drawn_in(run):
    state = run.initial_state()
    rollouts = collect(run, state, 0).batch.rollouts
    assert max(map(len, traces(rollouts))) == 3
    logp = run.scorer(state.device)(rollouts, ["logp"], "current")["logp"]
    on = rollouts.mask
    assert_allclose(rollouts.behaviour_logp[on], logp[on], atol=FLOAT32)


@pytest.mark.slow
def test_it_trains_and_the_first_ratio_is_one(run, tmp_path):
    training_runs.quietly(replace(run.config, run_dir=tmp_path / "run"))
    lines = training_runs.metrics(tmp_path / "run")
    assert len(training_runs.values(lines, "loss")) == 2
    segments, answers = (
        training_runs.values(lines, f"experience/{name}") for name in ("segments", "answers")
    )
    assert min(segments) > max(answers)
    assert set(training_runs.values(lines, "ratio/max")) == {1.0}
