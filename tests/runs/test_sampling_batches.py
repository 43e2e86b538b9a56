"""A batch that is drawn in several calls of the sampler is the batch of one call."""

import jax
import numpy as np
import pytest
import training_runs
from compiling import compilations
from everyday import everyday

from rlvr_jax.experience.evaluation import answered
from rlvr_jax.rollout.sample import draw_groups
from rlvr_jax.runs.step import collect

# Some prompts are sampled again, in another sampling batch and in the same one.
INDICES = np.array([3, 1, 3, 3, 2, 1, 0, 4])
INEXACT = ("behaviour_logp", "entropy")
ROUNDING = 1e-6  # float32 sums of some tens of terms in another order


def sampled(model, **changes):
    """A batch of 8 prompts x 4 samples, and what one call of the sampler draws of it."""
    config = training_runs.settings(model, "unused", prompts_per_step=8, **changes)
    run = training_runs.prepared(config)
    sampler = run.start.sampler
    params = run.sampler_params(run.initial_state().device)
    key = jax.random.key(5)
    graded = answered(sampler, params, run.start.train_table, INDICES, key, first_sample=2)
    return graded, sampler.sampling_batch


@pytest.fixture(scope="module")
def at_once(model):
    return sampled(model)[0]


def assert_same(found, wanted):
    """Bytes of all fields, up to rounding for those that are `INEXACT`."""
    for name, theirs in wanted.arrays.items():
        ours = found.get(name)
        if name in INEXACT:
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=ROUNDING)
        else:
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs, name)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("sampling_batches", "mesh", "sampling_batch"),
    [
        (16, "", (1, 2)),
        (2, "data=8", (8, 2)),
        pytest.param(2, "", (4, 4), marks=pytest.mark.slow),
        pytest.param(8, "", (1, 4), marks=pytest.mark.slow),
        pytest.param(2, "data=2,fsdp=4", (8, 2), marks=pytest.mark.slow),
        pytest.param(8, "data=2,tensor=2,fsdp=2", (4, 1), marks=pytest.mark.slow),
    ],
)
def test_waves_give_the_rollouts_of_one_call_with_one_program(
    model, at_once, sampling_batches, mesh, sampling_batch
):
    draw_groups.clear_cache()  # other tests draw with the same shapes
    calls = []
    with training_runs.watched(lambda: calls.append(None)), compilations("draw_groups") as compiled:
        found, shape = sampled(model, sampling_batches=sampling_batches, mesh=mesh)
    assert shape == sampling_batch
    assert len(compiled) == 1
    assert len(calls) == 1
    # Sums are taken in another order over tensor, and for other numbers of rows on some machines.
    assert_same(found.rollouts, at_once.rollouts)
    assert found.prompts == at_once.prompts
    assert found.grades == at_once.grades


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("rows", "changes"),
    everyday(
        [(5, {}), (16, {"mesh": "data=8"}), (3, {"sampling_batches": 2})],
        (3, {"sampling_batches": 2}),
    ),
)
def test_rows_that_make_room_for_others_are_those_of_one_call(model, at_once, rows, changes):
    found, _ = sampled(model, rows_at_once=rows, **changes)
    assert_same(found.rollouts, at_once.rollouts)
    assert found.grades == at_once.grades


@pytest.mark.slow  # ten seconds
def test_a_step_of_turns_and_branches_is_the_same_whatever_the_seats(model):
    """Segments are sampled in calls of many sizes; their rows have other slots in each."""

    def stepped(rows):
        config = training_runs.settings(
            model,
            "unused",
            task="small_environments:answering_sums",
            method="arpo",
            response_tokens=14,
            hyperparameters=("tools=None", "top=5", "window=2", "base=1", "weight=0"),
            rows_at_once=rows,
        )
        run = training_runs.prepared(config)
        return collect(run, run.initial_state(), 0).batch.rollouts

    wanted = stepped(0)
    assert np.any(wanted.parent >= 0)
    assert_same(stepped(3), wanted)


def test_answers_to_a_prompt_that_is_asked_again_are_others(at_once):
    tokens = at_once.rollouts.tokens.reshape(8, 4, -1)
    asked = tokens[INDICES == 3].reshape(12, -1)
    assert len({row.tobytes() for row in asked}) > 4


@pytest.mark.slow
def test_one_row_at_a_time_gives_the_same_tokens(model, at_once):
    found, _ = sampled(model, sampling_batches=32)
    assert_same(found.rollouts, at_once.rollouts)
