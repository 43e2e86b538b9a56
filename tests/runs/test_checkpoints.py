"""Checkpoints: what was saved, under which names, and written while no step begins."""

import ast
import contextlib
import itertools
import json

import jax
import numpy as np
import pytest
import training_runs
from orbax.checkpoint import CheckpointManager
from resumed_runs import settings_of

from rlvr_jax.runs import checkpoints, loop
from rlvr_jax.runs.checkpoints import Checkpoints, latest_step
from rlvr_jax.runs.state import HostState, RunState
from rlvr_jax.training import TrainState
from rlvr_jax.types import replace


def noted(done, name, function):
    """The function, with its name in a list of what was done."""

    def work(*arguments, **named):
        done.append(name)
        return function(*arguments, **named)

    return work


def test_a_checkpoint_is_what_was_saved_whatever_the_run_does_next(model, tmp_path):
    run = training_runs.prepared(settings_of(model, "unused"))
    state = run.initial_state()
    wanted = jax.tree.map(np.array, state)
    forget = jax.jit(lambda tree: jax.tree.map(lambda x: x * 0 + 7, tree), donate_argnums=0)
    checkpoints = Checkpoints(tmp_path / "checkpoints", state)
    checkpoints.save(1, state)
    forget(state)
    checkpoints.close()
    assert latest_step(tmp_path / "checkpoints") == 1
    again = Checkpoints(tmp_path / "checkpoints", state)
    like = run.initial_state()
    found = again.restore(1, like)
    again.close()
    # Both at once would take twice the memory of the run.
    on_devices = [leaf for leaf in jax.tree.leaves(like) if isinstance(leaf, jax.Array)]
    assert on_devices and all(leaf.is_deleted() for leaf in on_devices)
    jax.tree.map(np.testing.assert_array_equal, found, wanted)
    assert jax.tree.structure(found) == jax.tree.structure(wanted)


def test_an_array_may_be_larger_than_what_is_under_way(model, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "_IN_FLIGHT", 1)
    run = training_runs.prepared(settings_of(model, "unused"))
    state = run.initial_state()
    wanted = jax.tree.map(np.array, state)
    with contextlib.closing(Checkpoints(tmp_path, state)) as kept:
        kept.save(1, state)
        jax.tree.map(np.testing.assert_array_equal, kept.restore(1, state), wanted)


def test_no_step_begins_while_a_checkpoint_is_written(model, tmp_path, monkeypatch):
    done = []
    for name in ("save", "wait_until_finished"):
        own = getattr(CheckpointManager, name)
        monkeypatch.setattr(CheckpointManager, name, noted(done, name, own))
    monkeypatch.setattr(loop, "take_step", noted(done, "step", loop.take_step))
    training_runs.quietly(settings_of(model, tmp_path / "run", steps=2, checkpoint_every=1))
    assert [name for name, _ in itertools.groupby(done)] == 2 * [
        "step",
        "save",
        "wait_until_finished",
    ]


def state_of(**parts):
    """A state whose method has these parts, with these numbers."""
    method_state = jax.tree.map(np.asarray, parts)
    device = TrainState({}, (), method_state, np.asarray(0))
    return RunState(device, HostState(np.asarray(0), {}))


def test_a_checkpoint_names_its_arrays_by_their_fields(tmp_path):
    """One name for each array, of the device's state and of the host's."""
    state = state_of(b={"x": 2})
    state = replace(state, host=HostState(np.asarray(3), {"replay": np.zeros(2)}))
    with contextlib.closing(Checkpoints(tmp_path, state)) as kept:
        kept.save(1, state)
    names = json.loads((tmp_path / "1/default/_METADATA").read_text())["tree_metadata"]
    assert {ast.literal_eval(name)[0] for name in names} == {
        ".method_state['b']['x']",
        ".updates",
        ".sampled_tokens",
        ".data['replay']",
    }


def test_a_checkpoint_is_read_by_the_names_of_its_parts(tmp_path):
    with contextlib.closing(Checkpoints(tmp_path / "named", state_of())) as kept:
        kept.save(1, state_of(b=2, d=4))
        kept.save(2, state_of(b={"x": 2}))
    with contextlib.closing(Checkpoints(tmp_path / "named", state_of())) as kept:
        assert kept.restore(1, state_of(d=0, b=0)) == state_of(b=2, d=4)
        # A part that was inserted starts from its beginning.
        assert kept.restore(1, state_of(a=9, b=0, d=0)) == state_of(a=9, b=2, d=4)
        lacks = r"step 1 must .* without \.method_state\['a'\] and with .* \.method_state\['d'\]"
        with pytest.raises(ValueError, match=lacks):
            kept.restore(1, state_of(a=0, b=0))
        lacks = r"step 2 must .* without \.method_state\['b'\]\['y'\] and with .* none"
        with pytest.raises(ValueError, match=lacks):
            kept.restore(2, state_of(b={"x": 0, "y": 0}))
        widened = TrainState({"w": np.zeros(2)}, (), {"b": {"x": np.asarray(0)}}, np.asarray(0))
        with pytest.raises(ValueError, match=r"step 2 must .* without \.params\['w'\]"):
            kept.restore(2, RunState(widened, HostState(np.asarray(0), {})))
