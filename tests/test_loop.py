"""The loop that a person reads: it trains as `experiments.train` does, resumes, and refuses."""

import shutil
from pathlib import Path

import jax
import numpy as np
import pytest

from experiments import loop
from rlvr_jax import policy, tasks
from rlvr_jax.runs import parse_config, train as train_run

SMALL = [
    *("--task=brackets", "--steps=2", "--prompts-per-step=8", "--samples-per-prompt=4"),
    *("--minibatches=2", "--evaluate-every=1", "--evaluation-prompts=4"),
    *("--evaluation-samples=4", "--checkpoint-every=1"),
]
# Adam divides a gradient by its own size, so a rounding error of a small one moves a weight by a
# part of the learning rate, 3e-4.
OF_RATE = 3e-6


@pytest.fixture(autouse=True)
def usual_promotion():
    with jax.numpy_dtype_promotion("standard"):
        yield


def settings(place: Path, *more: str):
    return parse_config([*SMALL, "--run-dir", str(place), *more])


def weights(place: Path) -> list[np.ndarray]:
    return list(map(np.asarray, jax.tree.leaves(policy.load(place / "policy")[1])))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Two steps, and what their last evaluation found."""
    place = tmp_path_factory.mktemp("loop") / "run"
    with jax.numpy_dtype_promotion("standard"):
        return place, loop.train(settings(place))


def test_two_steps_move_the_weights_and_find_numbers(trained):
    place, found = trained
    assert found.keys() == {"pass@1", "pass@2", "entropy"}
    assert 0 <= found["pass@1"] <= found["pass@2"] <= 1 and found["entropy"] > 0
    start = jax.tree.leaves(policy.load(tasks.load("brackets").base_model)[1])
    moved = [np.abs(a - b).max() for a, b in zip(weights(place), start, strict=True)]
    assert np.isfinite(moved).all() and min(moved) > 0


@pytest.mark.thorough
def test_weights_and_numbers_are_those_of_a_run(trained, tmp_path):
    place, found = trained
    summary = train_run(settings(tmp_path / "run"))
    assert found["pass@1"] == pytest.approx(summary["held_out_pass_at_1_end"])
    assert found["entropy"] == pytest.approx(summary["entropy_end"], rel=1e-4)
    for one, other in zip(weights(place), weights(tmp_path / "run"), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=OF_RATE)


@pytest.mark.thorough
def test_a_resumed_run_ends_in_the_same_bytes(trained):
    place, _ = trained
    written = place / "policy" / "model.safetensors"
    before = written.read_bytes()
    shutil.rmtree(place / "checkpoints" / "2")
    written.unlink()
    loop.train(settings(place, "--resume"))
    assert written.read_bytes() == before
    with pytest.raises(ValueError, match=r"--resume must continue with the settings in .* others"):
        loop.train(settings(place, "--resume", "--seed", "1"))


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--method", "dapo"], "got 'dapo', which needs experience; .*rlvr_jax train"),
        (["--method", "ace"], "got 'ace', which needs reference_logp; .*rlvr_jax train"),
        (["--lora-rank", "2"], "--lora-rank must be left out, as it has no effect"),
    ],
)
def test_what_it_cannot_train_is_refused(more, sentence, tmp_path):
    with pytest.raises(ValueError, match=f"^loop: .*{sentence}"):
        loop.train(settings(tmp_path / "run", *more))
    assert not (tmp_path / "run").exists()


def test_it_can_be_read_on_one_sitting():
    assert len(Path(loop.__file__).read_text().splitlines()) <= 250
