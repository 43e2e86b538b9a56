"""Checkpoints by orbax: everything a run needs to go on as if it had never stopped."""

from __future__ import annotations

import logging
from pathlib import Path

import jax
import orbax.checkpoint as ocp

from rlvr_jax.training.update import TrainState

__all__ = ["Checkpoints"]

KEPT = 2


class Checkpoints:
    """The last two states of a run, each under the number of its step; saving is asynchronous.

    A state is parameters, optimizer, method state and the number of updates. Random keys and the
    position in the data are functions of the seed and the step, so the step is all they need.
    """

    def __init__(self, directory: Path):
        # orbax reports every save at WARNING on the root logger of absl.
        logging.getLogger("absl").setLevel(logging.ERROR)
        options = ocp.CheckpointManagerOptions(max_to_keep=KEPT, enable_async_checkpointing=True)
        self._manager = ocp.CheckpointManager(directory.absolute(), options=options)

    def latest_step(self) -> int | None:
        """Step of the newest complete checkpoint; None if there is none."""
        return self._manager.latest_step()

    def save(self, step: int, state: TrainState) -> None:
        """Starts writing a state; a kill before the end leaves the older ones whole."""
        if step != self.latest_step():
            self._manager.save(step, args=ocp.args.StandardSave(_as_dict(state)))

    def restore(self, step: int, like: TrainState) -> TrainState:
        """Reads a state with the structure, dtypes and shardings of `like`."""
        abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, _as_dict(like))
        restored = self._manager.restore(step, args=ocp.args.StandardRestore(abstract))
        # Orbax may hand back containers of its own; the values go into ours.
        leaves = jax.tree.leaves(restored)
        return jax.tree.unflatten(jax.tree.structure(like), leaves)

    def close(self) -> None:
        """Waits for the save under way."""
        self._manager.wait_until_finished()
        self._manager.close()


def _as_dict(state: TrainState) -> dict:
    # Numbered leaves: empty optimizer states and registered classes have no place in a file.
    return {f"{index:05d}": leaf for index, leaf in enumerate(jax.tree.leaves(state))}
