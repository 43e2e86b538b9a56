"""Micro-batches on a mesh: every device keeps its rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.parallel import make_mesh, row_sharding
from rlvr_jax.training.micro_batches import (
    CPU_TOKENS,
    merge_rows,
    shared_rows,
    split_rows,
    spread,
    usual_micro_batches,
)
from rlvr_jax.training.plan import BatchPlan

ROWS = np.arange(48).reshape(16, 3)


def test_on_one_device_pieces_are_the_next_rows():
    np.testing.assert_array_equal(split_rows(ROWS, 4, None), ROWS.reshape(4, 4, 3))


@pytest.mark.parametrize("mesh", [None, "data=8", "data=2,fsdp=2,tensor=2"])
def test_joined_pieces_are_the_rows_in_their_order(mesh):
    mesh = mesh and make_mesh(mesh)
    there_and_back = jax.jit(lambda x: merge_rows(split_rows(x, 2, mesh), mesh))
    np.testing.assert_array_equal(there_and_back(ROWS), ROWS)


@pytest.mark.parametrize(("mesh", "chunks"), [(None, 4), ("data=8", 2), ("data=2,fsdp=4", 4)])
def test_groups_that_stand_last_are_in_the_last_pieces_of_every_device(mesh, chunks):
    """They are not pulled back; on one device of several they would spare nothing."""
    mesh = mesh and make_mesh(mesh)
    groups = np.arange(64)
    found = split_rows(spread(groups, mesh), chunks, mesh)
    np.testing.assert_array_equal(np.sort(np.asarray(found).ravel()), groups)
    assert [set(np.asarray(chunk) // (64 // chunks)) for chunk in found] == [
        {number} for number in range(chunks)
    ]


def test_groups_that_cannot_be_shared_out_stay_as_they_are():
    np.testing.assert_array_equal(spread(np.arange(6), make_mesh("data=8")), np.arange(6))


def test_no_row_moves_between_devices():
    mesh = make_mesh("data=4,fsdp=2")
    sharding = row_sharding(mesh)
    rows = jax.ShapeDtypeStruct(ROWS.shape, ROWS.dtype, sharding=sharding)

    def sums(rows):
        """A loop over pieces, and what it gives for every row."""
        chunks = split_rows(rows, 2, mesh)
        return merge_rows(jax.lax.map(lambda chunk: jnp.sum(chunk, axis=1), chunks), mesh)

    text = jax.jit(sums, out_shardings=sharding).lower(rows).compile().as_text()
    assert "while" in text
    for kind in ("all-gather", "all-to-all", "collective-permute", "all-reduce"):
        assert f" {kind}(" not in text


@pytest.mark.parametrize(
    ("group_tokens", "mesh", "chunks"),
    [
        (1, "data=1", 1),
        (CPU_TOKENS // 4, "data=1", 4),
        (CPU_TOKENS // 4 + 1, "data=1", 8),  # five pieces of three groups do not make sixteen
        (CPU_TOKENS * 2, "data=1", 16),
        (CPU_TOKENS // 4, "data=2", 2),
    ],
)
def test_pieces_are_the_fewest_that_stay_in_a_cpus_caches(group_tokens, mesh, chunks):
    sizes = {"data=1": 1, "data=2": 2}
    mesh = make_mesh(mesh, jax.devices()[: sizes[mesh]])
    plan = BatchPlan(prompts=32, samples=8, minibatches=2)
    assert usual_micro_batches(plan, mesh, group_tokens) == chunks


@pytest.mark.parametrize(
    ("micro_batches", "mesh", "shared"),
    [(1, None, 8), (4, None, 8), (8, None, 4), (1, "data=8", 4), (4, "data=8", 1)],
)
def test_rows_that_share_a_prompt_lie_in_one_piece_of_one_device(micro_batches, mesh, shared):
    plan = BatchPlan(prompts=4, samples=8, micro_batches=micro_batches)
    assert shared_rows(plan, mesh and make_mesh(mesh)) == shared
