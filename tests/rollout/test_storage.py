"""Rollouts in a file: what comes back, and what is said about a file that is not one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from rlvr_jax.rollout import load_rollouts, save_rollouts
from rlvr_jax.types import STATISTICS, Rollouts, TokenStats
from rlvr_jax.types.rollouts import kind_and_axes, known_names

ROWS, WIDTH, BUDGET = 3, 2, 4
TEXTS = {"prompt": ["1 + 1", "1 + 1", ""], "response": ["2\0", "zwei ½\n\ud800", "=" * 9]}


def values(random, kind, axes):
    """Random values of the kind and the axes of an array field."""
    sizes = {"B": ROWS, "T": BUDGET, "P": WIDTH}
    dtype = {"Int": np.int32, "Bool": np.bool_, "Float": np.float32}[kind]
    return random.normal(0, 3, [sizes.get(axis, 5) for axis in axes]).astype(dtype)


def batch(seed=0):
    random = np.random.default_rng(seed)
    names = sorted(known_names())
    rollouts = Rollouts.of_arrays({name: values(random, *kind_and_axes(name)) for name in names})
    stats = {name: values(random, one.kind, ("B", "T")) for name, one in STATISTICS.items()}
    stats = TokenStats.of_arrays(stats)
    return rollouts.replace(reference_logp=None), stats.replace(p_squared_logp=None)


def assert_same(loaded, saved):
    assert jax.tree.structure(loaded) == jax.tree.structure(saved)
    for ours, theirs in zip(jax.tree.leaves(loaded), jax.tree.leaves(saved), strict=True):
        assert isinstance(ours, np.ndarray)
        assert ours.dtype == theirs.dtype
        assert_array_equal(ours, theirs)


def changed(path, **arrays):
    """Writes the file anew with other arrays; those that are None are left out."""
    with np.load(path) as archive:
        arrays = {**archive, **arrays}
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "batch.npz"
    save_rollouts(path, *batch(), TEXTS)
    return path


def test_what_was_saved_comes_back_bit_by_bit(path):
    rollouts, stats, texts = load_rollouts(path)
    assert_same((rollouts, stats), batch())
    assert rollouts.reference_logp is None
    assert "p_squared_logp" not in stats.records
    assert texts == TEXTS


def test_all_rows_of_an_older_file_are_valid(path):
    changed(path, **{"rollouts/valid": None})
    valid = load_rollouts(path)[0].valid
    assert valid.dtype == bool and valid.tolist() == ROWS * [True]


def test_device_arrays_and_a_batch_without_texts_come_back(tmp_path):
    save_rollouts(tmp_path / "no_suffix", *jax.tree.map(jnp.asarray, batch()))
    rollouts, stats, texts = load_rollouts(str(tmp_path / "no_suffix"))
    assert_same((rollouts, stats), batch())
    assert texts == {}


def test_equal_batches_are_equal_files_and_others_are_not(path, tmp_path):
    save_rollouts(tmp_path / "again.npz", *batch(), TEXTS)
    save_rollouts(tmp_path / "other.npz", *batch(seed=1), TEXTS)
    assert (tmp_path / "again.npz").read_bytes() == path.read_bytes()
    assert (tmp_path / "other.npz").read_bytes() != path.read_bytes()


def test_nothing_in_the_file_is_a_pickled_object(path):
    with np.load(path, allow_pickle=False) as archive:
        names = {name for name, array in archive.items() if not array.dtype.hasobject}
    assert {"version", "texts", "rollouts/mask", "stats/logp"} <= names
    assert "stats/p_squared_logp" not in names


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"rollouts/group": None}, "must hold rollouts/group"),
        ({"rollouts/colour": np.zeros(3)}, "got rollouts/colour"),
        ({"version": np.asarray(2)}, "version 1 of the format, got 2"),
        ({"version": None}, "version 1 of the format, got none"),
        ({"stats/logp": np.array([None])}, "stats/logp of .*batch.npz cannot be read"),
        ({"texts": np.zeros(3, np.uint8)}, "texts of .*batch.npz cannot be read"),
    ],
)
def test_a_file_that_is_not_as_it_should_be_is_named_with_its_field(path, arrays, message):
    changed(path, **arrays)
    with pytest.raises(ValueError, match=message) as caught:
        load_rollouts(path)
    assert str(path) in str(caught.value)


def test_a_damaged_field_is_named(path):
    content = bytearray(path.read_bytes())
    start = content.index(b"rollouts/tokens.npy")
    content[start + 60 : start + 70] = bytes(10)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"rollouts/tokens of .*batch.npz cannot be read"):
        load_rollouts(path)


@pytest.mark.parametrize("content", [b"", b"some text", b"\x93NUMPY\x01\x00"])
def test_a_file_of_another_kind_is_refused(tmp_path, content):
    path = tmp_path / "batch.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"batch.npz must be an .npz of rollouts"):
        load_rollouts(path)


@pytest.mark.parametrize(
    ("change", "texts", "message"),
    [
        ({"logp": np.zeros(ROWS)}, None, r"stats/logp must have the shape .* \(3, 4\), got \(3,\)"),
        ({"logp": jnp.zeros((ROWS, BUDGET), jnp.bfloat16)}, None, "stats/logp .* got bfloat16"),
        ({}, {"prompt": ["one"]}, r"texts\['prompt'\] must have one text for each of the 3"),
    ],
)
def test_what_cannot_be_kept_is_refused_and_nothing_is_written(tmp_path, change, texts, message):
    rollouts, stats = batch()
    with pytest.raises(ValueError, match=message):
        save_rollouts(tmp_path / "batch.npz", rollouts, stats.replace(**change), texts)
    assert not (tmp_path / "batch.npz").exists()
