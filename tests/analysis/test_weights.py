"""Matrices before and after: brute force, limits, storage, two folders, predictions."""

import json

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_allclose
from safetensors.numpy import save_file

from rlvr_jax.analysis.diagnosis.parameters import parameters
from rlvr_jax.analysis.weights.alpha_rl import predict_update, rank_one_series
from rlvr_jax.analysis.weights.checkpoints import (
    compare_folders,
    compare_pair,
    repeated_unembedding,
    tensor_pairs,
)
from rlvr_jax.analysis.weights.geometry import (
    changed_entries,
    decompose,
    effective_rank,
    inside,
    largest_entries,
    principal_angles,
    replacement,
    smallest_entries,
    spectral_shift,
)
from rlvr_jax.analysis.weights.off_principal import off_principal, random_update
from rlvr_jax.analysis.weights.spectral import (
    linearity,
    stored_sparsity,
    to_bfloat16,
    update_spectrum,
)

RTOL = 1e-10  # float64, decompositions of matrices of some tens of entries
rng = np.random.default_rng(0)


def plane(angle):
    """The plane of the first two axes of four, the second axis turned out of it."""
    return np.array([[1, 0, 0, 0], [0, np.cos(angle), np.sin(angle), 0]]).T


@pytest.mark.parametrize("angle", [0.0, 1e-9, 0.3, np.pi / 2])
def test_small_angles_keep_their_digits(angle):
    assert_allclose(principal_angles(plane(0), plane(angle)), [0, angle], rtol=1e-6, atol=1e-16)


def test_masks_hold_their_share_and_ties_go_to_the_first():
    matrix = np.array([[3.0, -5.0], [1.0, 1.0]])
    assert largest_entries(matrix, 0.25).tolist() == [[False, True], [False, False]]
    assert smallest_entries(matrix, 0.25).tolist() == [[False, False], [True, False]]
    with pytest.raises(ValueError, match=r"fraction must be in \[0, 1\], got 2"):
        largest_entries(matrix, 2)


def test_an_exact_zero_is_unchanged_only_if_it_stays():
    assert changed_entries([0, 0, 1, 1], [0, 1e-9, 1.0005, 1.01], 1e-3).tolist() == [0, 1, 0, 1]


def test_ranks_count_equal_directions():
    assert_allclose(effective_rank([2.0, 2.0, 0.0]), 2, rtol=RTOL)
    assert effective_rank([0.0]) == 0 and inside([True], [0.0]) == 0
    assert spectral_shift([0, 0], [0, 0]) == 0 and spectral_shift([0], [1]) == np.inf


def test_a_replacement_of_full_rank_is_the_matrix():
    matrix = rng.normal(size=(4, 6))
    assert_allclose(replacement(decompose(matrix), 4), matrix, rtol=RTOL)
    assert_allclose(np.linalg.norm(replacement(decompose(matrix), 1)), np.linalg.norm(matrix))


def test_equal_matrices_differ_in_nothing():
    matrix = rng.normal(size=(6, 5))
    found = off_principal(matrix, matrix)
    assert found.sparsity == 1 and found.spectral_shift == 0 and found.overlap == 0
    assert_allclose(found.angles_left, 0, atol=1e-7)  # a sine of rounding errors
    with pytest.raises(ValueError, match="update_spectrum: after must differ"):
        update_spectrum(matrix, matrix)


def test_storage_hides_changes_below_half_a_unit_in_the_last_place():
    matrix = np.array([[1.0, 2.0], [-4.0, 0.5]])
    assert stored_sparsity(matrix, matrix * (1 + 1e-3), rank=1).exact == 1
    assert stored_sparsity(matrix, matrix * (1 + 2.0**-7), rank=1).exact == 0
    assert to_bfloat16(1 + 2.0**-8) == 1 and to_bfloat16(1 + 3 * 2.0**-8) == 1 + 2.0**-6


def test_bfloat16_alone_keeps_random_updates_off_the_principal_mask():
    """What the claim must be compared with: arithmetic alone gives an overlap below chance."""
    before = to_bfloat16(rng.normal(size=(40, 8)) @ rng.normal(size=(8, 60)))
    after = before + 0.003 * rng.normal(size=before.shape)
    found = off_principal(before, to_bfloat16(after), rank=8, tolerance=0)
    assert found.overlap < 0.5 * found.chance and found.overlap_low > 2 * found.chance
    unstored = off_principal(before, after, rank=8, tolerance=0)
    assert_allclose(unstored.overlap, unstored.chance)  # every entry changed


def test_a_random_update_has_the_size_of_the_real_one():
    before, after = rng.normal(size=(2, 5, 5))
    control = random_update(before, after, seed=1)
    assert_allclose(np.linalg.norm(control - before), np.linalg.norm(after - before), rtol=RTOL)
    assert not np.allclose(control, random_update(before, after, seed=2))


def test_a_straight_path_is_linear_and_a_turned_one_is_not():
    main, other = np.outer([1.0, 2, 3], [1.0, -1]), np.outer([1.0, 0, 0], [1.0, 1])
    straight = linearity([s * main for s in range(1, 6)], range(1, 6), first=3)
    assert_allclose([straight.r_squared, straight.rank1_energy[0]], 1, rtol=RTOL)
    assert straight.extrapolation_error < RTOL
    assert_allclose(straight.sigma, np.arange(1, 6) * np.linalg.norm(main), rtol=RTOL)
    bent = [*(s * main for s in range(1, 4)), 20 * other, 30 * other]
    assert linearity(bent, range(1, 6), first=3).extrapolation_error > 0.5
    with pytest.raises(ValueError, match=r"first must be in \[2, 4\], got 5"):
        linearity(bent, range(1, 6), first=5)


def series(scores, sign=1.0):
    u, v = np.array([3.0, -1, 2]), np.array([1.0, 2])
    return rank_one_series([sign * y * np.outer(u, v) for y in scores]), np.outer(u, v)


def test_a_line_is_extrapolated_to_the_target_score():
    scores = np.array([0.2, 0.3, 0.4, 0.5])
    run, unit = series(scores)
    found = predict_update(run, scores, target=0.8)
    assert_allclose(found.update, 0.8 * unit, rtol=RTOL)
    assert_allclose(found.r_squared, 1, rtol=RTOL)
    turned = predict_update(series(scores, sign=-1.0)[0], scores, target=0.8)
    assert_allclose(turned.update, -0.8 * unit, rtol=RTOL)


def test_a_far_target_is_capped():
    scores = np.array([0.2, 0.3, 0.4])
    run, _ = series(scores)
    found = predict_update(run, scores, target=40.0, largest=2.0)
    assert found.capped
    assert_allclose(np.linalg.norm(found.vector), 2 * np.linalg.norm(run.left[-1]), rtol=RTOL)
    assert not predict_update(run, scores, target=0.5, largest=2.0).capped


@pytest.mark.parametrize(
    ("scores", "sentence"), [([0.1, 0.2], "must be 3, one per"), ([0.1] * 3, "scores must differ")]
)
def test_scores_must_be_one_per_checkpoint_and_differ(scores, sentence):
    with pytest.raises(ValueError, match=sentence):
        predict_update(series([1.0, 2.0, 3.0])[0], scores, 1.0)


def test_a_checkpoint_that_did_not_move_is_named():
    still = [np.eye(3), np.zeros((3, 3)), np.eye(3)]
    with pytest.raises(ValueError, match="rank_one_series: updates must not be zero, got zeros"):
        rank_one_series(still)
    with pytest.raises(
        ValueError, match="linearity: updates must not be zero, got zeros at position"
    ):
        linearity(still, [1, 2, 3], 2)
    with pytest.raises(ValueError, match="rank_one_series: updates must hold a checkpoint"):
        rank_one_series([])


LAYER = "model.layers.0.mlp.up_proj.weight"
NORM, EMBEDDING = "model.norm.weight", "model.embed_tokens.weight"


def write_folder(path, scale, dtype=np.float32, shards=False, **other):
    """A policy folder of three tensors."""
    random = np.random.default_rng(1)
    tensors = {
        EMBEDDING: random.normal(size=(7, 4)),
        LAYER: random.normal(size=(6, 4)) + scale * random.normal(size=(6, 4)),
        NORM: np.ones(4),
    } | other
    tensors = {name: value.astype(dtype) for name, value in tensors.items()}
    path.mkdir()
    if shards:
        places = {name: f"part-{i}.safetensors" for i, name in enumerate(tensors)}
        for name, file in places.items():
            save_file({name: tensors[name]}, path / file)
        (path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    else:
        save_file(tensors, path / "model.safetensors")
    return path


def test_two_folders_are_compared_tensor_by_tensor(tmp_path):
    before = write_folder(tmp_path / "before", 0.0)
    after = write_folder(tmp_path / "after", 0.01, shards=True)
    found = {change.name: change for change in compare_folders(before, after, rank=2)}
    assert list(found) == [EMBEDDING, LAYER, NORM]
    layer = found[LAYER]
    assert (layer.kind, layer.layer, layer.dtype, layer.shape) == ("up_proj", 0, "F32", (6, 4))
    assert layer.unchanged == 0 < layer.unchanged_bfloat16 < 1 and 0 < layer.relative_norm < 0.03
    assert layer.rank1_fraction**2 == pytest.approx(1 / layer.stable_rank)
    for name in (EMBEDDING, NORM):
        assert found[name].unchanged == 1 and found[name].relative_norm == 0
        assert found[name].angle is None


def test_the_stored_dtype_decides_what_is_unchanged(tmp_path):
    before = write_folder(tmp_path / "before", 0.0, ml_dtypes.bfloat16)
    after = write_folder(tmp_path / "after", 1e-4, ml_dtypes.bfloat16)
    (pair,) = (pair for pair in tensor_pairs(before, after) if pair.name == LAYER)
    change = compare_pair(pair, rank=2)
    assert change.dtype == "BF16" and pair.before.dtype == np.float64
    assert change.unchanged == change.unchanged_bfloat16 > 0.5


def test_a_tensor_that_did_not_move_has_no_direction(tmp_path):
    before = write_folder(tmp_path / "before", 0.0)
    (layer,) = (c for c in compare_folders(before, before, rank=9) if c.name == LAYER)
    assert layer.spectral_shift == 0 and layer.stable_rank is None and layer.unchanged == 1


def test_both_stored_dtypes_are_named(tmp_path):
    before = write_folder(tmp_path / "before", 0.0, ml_dtypes.bfloat16)
    after = write_folder(tmp_path / "after", 0.0)
    assert {pair.dtype for pair in tensor_pairs(before, after)} == {"BF16 → F32"}


def test_places_of_changed_entries_need_changed_entries(tmp_path):
    before = write_folder(tmp_path / "before", 0.0)
    after = write_folder(tmp_path / "after", 1e-6)
    (layer,) = (c for c in compare_folders(before, after, rank=2) if c.name == LAYER)
    assert layer.unchanged_bfloat16 == 1 and layer.relative_norm > 0
    assert layer.principal_overlap is layer.low_overlap is layer.control_overlap is None
    assert layer.mass_on_principal > 0


def test_a_change_of_zeros_has_no_relative_size(tmp_path):
    bias = "model.layers.0.self_attn.q_proj.bias"
    folders = [
        write_folder(
            tmp_path / name, 0.0, **{bias: np.full(4, value), LAYER: np.full((6, 4), value)}
        )
        for name, value in (("before", 0.0), ("after", 0.1))
    ]
    found = {change.name: change for change in compare_folders(*folders, rank=2)}
    assert found[bias].relative_norm is found[LAYER].relative_norm is None
    assert found[LAYER].spectral_shift is None and found[LAYER].effective_rank is not None


def test_an_unembedding_that_repeats_the_embedding_is_left_out(tmp_path):
    before = write_folder(tmp_path / "before", 0.0)
    table = np.random.default_rng(2).normal(size=(7, 4))  # training moved it
    tied = {EMBEDDING: table, "lm_head.weight": table}
    after = write_folder(tmp_path / "after", 0.01, shards=True, **tied)
    for pair in ((before, after), (after, before)):
        assert [change.name for change in compare_folders(*pair)] == [EMBEDDING, LAYER, NORM]
        assert repeated_unembedding(*pair) == after
    topic = parameters(before, after)
    assert topic.sentences[0].startswith("The 1 matrices moved")
    assert topic.missing[0].startswith(f"lm_head.weight, which only {after} stores, repeats")
    # both store it, or neither does: nothing is left out
    again = write_folder(tmp_path / "again", 0.0, **tied)
    assert "lm_head.weight" in [change.name for change in compare_folders(again, after)]
    assert repeated_unembedding(again, after) is repeated_unembedding(before, before) is None
    # one of its own, or one more difference, is another model
    own = write_folder(tmp_path / "own", 0.0, **{"lm_head.weight": table + 1e-6})
    more = write_folder(tmp_path / "more", 0.0, **tied, bias=np.ones(4))
    for folder in (own, more):
        assert repeated_unembedding(before, folder) is None
        with pytest.raises(ValueError, match="must hold the tensors of"):
            compare_folders(before, folder)


def test_folders_that_do_not_fit_are_refused(tmp_path):
    before = write_folder(tmp_path / "before", 0.0)
    more = write_folder(tmp_path / "more", 0.0, lm_head=np.ones((2, 2)))
    wide = write_folder(tmp_path / "wide", 0.0, **{NORM: np.ones(5)})
    whole = write_folder(tmp_path / "whole", 0.0, np.int32)
    broken = write_folder(tmp_path / "broken", np.nan)
    part = write_folder(tmp_path / "part", 0.0, shards=True)
    (part / "part-1.safetensors").unlink()
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "model.safetensors").write_bytes(b"no")
    for folder, sentence in [
        (more, "where lm_head differs"),
        (wide, r"model.norm.weight must have one shape, got \(4,\) and \(5,\)"),
        (whole, "must have one of the dtypes"),
        (broken, f"{LAYER} of .*broken must be finite, got NaN"),
        (part, "part-1.safetensors must be a safetensors file"),
        (tmp_path, "must hold model.safetensors"),
        (tmp_path / "torn", "must be a safetensors file"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            list(tensor_pairs(before, folder))
