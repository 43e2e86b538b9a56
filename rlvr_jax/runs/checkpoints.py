"""Checkpoints by orbax. A resumed run writes the same bytes as an uninterrupted one."""

import contextlib
import errno
import gc
import itertools
import logging
import mmap
import os
import re
import shutil
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

from rlvr_jax.parallel import has_accelerator
from rlvr_jax.runs.state import RunState
from rlvr_jax.training.memory import lacks_memory

_NUM_STORED = 2
# Bytes of arrays on their way to the disk where a run's memory is also the host's.
_IN_FLIGHT = 2**28
# Reserved address space, never written. It is freed when memory runs out: the threads and buffers
# of a save take less.
_RESERVE = 2**28


def latest_step(directory: Path) -> int | None:
    """Returns the step of the newest complete checkpoint in a directory; None if there is none."""
    return max(ocp.utils.checkpoint_steps(directory), default=None) if directory.is_dir() else None


class Checkpoints:
    """The last two states of a run, each under the number of its step; saving is asynchronous.

    A state has parameters, optimizer, states of the parts of method and experience, and counts.
    Random keys are not stored: they are functions of the seed and the step.

    Args:
      state: an example of the states to save; only its sizes are read.

    Fields:
      short: whether memory ran out in a save. That state is saved with the reserve, and the next
        save may fail.
    """

    def __init__(self, directory: Path, state: RunState):
        # orbax reports every save at WARNING on the root logger of absl, and its errors there
        # at ERROR once more.
        logging.getLogger("absl").setLevel(logging.CRITICAL)
        self._directory = directory
        options = ocp.CheckpointManagerOptions(
            max_to_keep=_NUM_STORED, enable_async_checkpointing=True
        )
        limit = {}
        if not has_accelerator():
            # An array that is larger than this limit is an error in orbax.
            largest = max(leaf.nbytes for leaf in jax.tree.leaves(state))
            limit = {"save_concurrent_gb": max(_IN_FLIGHT, 2 * largest) / 1e9}
        self._make = partial(
            ocp.CheckpointManager,
            directory.absolute(),
            options=options,
            item_handlers=ocp.StandardCheckpointHandler(**limit),
        )
        self._manager = self._make()
        self._reserve = mmap.mmap(-1, _RESERVE)
        self.short: bool = False

    def save(self, step: int, state: RunState) -> None:
        """Starts to write a state. A kill before the end does not damage older checkpoints.

        On a CPU this waits for the save. The arrays are written without a copy, and an update
        meanwhile would allocate a second state.

        Raises:
          OSError: the free space of the disk is smaller than the state, or ended in another save.
        """
        if step == self.latest():
            return
        # Several hosts write a part each, so the free space of one disk is not enough to know.
        wanted = sum(leaf.nbytes for leaf in jax.tree.leaves(state))
        if jax.process_count() == 1 and shutil.disk_usage(self._directory).free < wanted:
            raise _no_room(self._directory)
        try:
            self._write(step, state)
        except (MemoryError, RuntimeError) as error:
            if self.short or not lacks_memory(error):
                raise
            self.short = True
            self._reserve.close()
            jax.clear_caches()
            gc.collect()
            self._manager = self._make()  # the other one may wait for a thread that never began
            self._write(step, state)

    def _write(self, step: int, state: RunState) -> None:
        with self._disk_errors():
            self._manager.save(step, args=ocp.args.StandardSave(_named(state)))
            if not has_accelerator():
                self._manager.wait_until_finished()

    def latest(self) -> int | None:
        """Returns the step of the newest saved state; None: there is none."""
        return self._manager.latest_step()

    def restore(self, step: int, like: RunState) -> RunState:
        """Reads a state with the structure, dtypes and shardings of `like`. The memory of `like` is
        freed first, so it cannot be used afterwards.

        A part of the objective that the checkpoint does not have keeps its state of `like`.

        Raises:
          ValueError: the checkpoint lacks another entry, or has other parts or sizes.
        """
        named = _named(like)
        found = self._manager.item_metadata(step).tree.keys()
        lacks, besides = sorted(named.keys() - found), sorted(found - named.keys())
        if besides or not all(_of_new_part(name, found) for name in lacks):
            raise ValueError(
                f"--resume: the checkpoint of step {step} must have the state of this run's parts,"
                f" got one without {', '.join(lacks) or 'none'} and with the additional"
                f" {', '.join(besides) or 'none'}; use the settings of the run, or a new --run-dir"
            )
        stored = {name: leaf for name, leaf in named.items() if name in found}
        shapes = self._manager.item_metadata(step).tree
        for name, leaf in stored.items():
            if tuple(shapes[name].shape) != leaf.shape:
                raise ValueError(
                    f"--resume: {name} must have the shape {tuple(shapes[name].shape)} as in the"
                    f" checkpoint of step {step}, got {leaf.shape}"
                )
        abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, stored)
        for leaf in stored.values():
            if isinstance(leaf, jax.Array):
                leaf.delete()
        restored = self._manager.restore(step, args=ocp.args.StandardRestore(abstract))
        # Orbax may hand back containers of its own; the values go into ours.
        leaves = [_like(restored.get(name, leaf), leaf) for name, leaf in named.items()]
        return jax.tree.unflatten(jax.tree.structure(like), leaves)

    @contextlib.contextmanager
    def _disk_errors(self) -> Iterator[None]:
        """Raises OSError for a full disk; orbax raises one type for all errors."""
        try:
            yield
        except ValueError as error:
            if os.strerror(errno.ENOSPC) not in str(error):
                raise
            raise _no_room(self._directory) from error

    def close(self) -> None:
        """Waits for the current save. No other save is possible afterwards.

        Raises:
          OSError: the disk is full.
        """
        with self._disk_errors():
            self._manager.wait_until_finished()
        self._manager.close()


def _no_room(directory: Path) -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(directory))


def _named(state: RunState) -> dict[str, Any]:
    # Not the tree itself: empty optimizer states and registered classes have no place in a file.
    parts = map(jax.tree.leaves_with_path, (state.device, state.host))
    leaves = itertools.chain.from_iterable(parts)
    return {jax.tree_util.keystr(path): _like(leaf, leaf) for path, leaf in leaves}


def _like(found: Any, wanted: Any) -> Any:
    """Host values become arrays of numpy, also numbers; device arrays do not move."""
    return found if isinstance(wanted, jax.Array) else np.asarray(found)


def _of_new_part(name: str, found: Collection[str]) -> bool:
    part = re.match(r"\.(method_state|data)\['[^']*'\]", name)
    return part is not None and not any(other.startswith(part[0]) for other in found)
