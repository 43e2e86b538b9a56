"""The choice of trees (`policy.trees`) for the rows of an update, from their tokens and lengths."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rlvr_jax.kernels.dispatch import warn_once
from rlvr_jax.objectives import GIVEN
from rlvr_jax.policy import Model
from rlvr_jax.policy.flash import flash_serves
from rlvr_jax.policy.trees import PrefixTree, block_size, prefix_tree
from rlvr_jax.training.micro_batches import row_parts, shared_rows
from rlvr_jax.training.plan import BatchPlan
from rlvr_jax.types import Rollouts

WORTH = 0.8
"""Largest fraction of the tokens with which "auto" uses trees: each token costs more in one."""

WORTH_OF_FLASH = 0.5
"""The same where the flash kernel serves for rows, in which it leaves out keys that are later than
a block of queries. With 0.86 of the tokens, trees take 1.3 times as long (estimate, v5e)."""

_OTHER_INPUTS = {
    "soft_prompt": "vectors in prompts",
    "candidate_weight": "mixtures of embeddings",
    "routes": "replayed experts",
    "second_tokens": "second prompts",
}
"""Records with which equal tokens can have different states."""


class Found(NamedTuple):
    """The trees of an update.

    Fields:
      tree: None: rows share the prompts of their groups only.
      fraction: tokens that the model reads, as a fraction of those without trees; None: rows were
        not compared.
    """

    tree: PrefixTree | None
    fraction: float | None


@dataclass(frozen=True)
class Prefixes:
    """Makes the trees of the rollouts of an update.

    `BatchPlan.prefix_trees` has three values:

    - "auto": trees are used if rows were forked or begin with given tokens, and trees have few
      enough tokens (`WORTH`). No other update changes by a bit.
    - "always": in every update. Rows that end early are then packed.
    - "never".

    Fields:
      opening: number of tokens that all prompts begin with.
    """

    model: Model
    plan: BatchPlan
    opening: int = 0

    def of(self, rollouts: Rollouts) -> Found:
        """The trees of rollouts, arrays of numpy."""
        when, rows = self.plan.prefix_trees, len(rollouts.group)
        if when == "never" or (when == "auto" and not _share_more(rollouts)):
            return Found(None, None)
        obstacles = [text for name, text in _OTHER_INPUTS.items() if name in rollouts.records]
        parts = row_parts(self.model.mesh) * self.plan.micro_batches
        if rows % parts:
            obstacles.append(f"{rows} rows in {parts} parts")
        if obstacles:
            warn_once(f"prefixes: rows are computed one by one: {', '.join(obstacles)}")
            return Found(None, None)
        (_, width), (_, budget) = rollouts.prompt_tokens.shape, rollouts.tokens.shape
        prompts = rows // shared_rows(self.plan, self.model.mesh)
        without = prompts * (width - self.opening) + rows * budget + parts * self.opening
        tree = prefix_tree(rollouts, parts, block_size(width, budget))
        fraction = tree.tokens.size / without
        flash = flash_serves(self.model.config, budget, self.model.mesh)
        if when == "auto" and fraction > (WORTH_OF_FLASH if flash else WORTH):
            return Found(None, 1.0)
        return Found(tree, fraction)


def _share_more(rollouts: Rollouts) -> bool:
    """Whether rows were forked, or begin with given tokens."""
    given = rollouts.records.get("origin")
    forked = np.any(np.asarray(rollouts.parent) >= 0)
    return bool(forked or (given is not None and np.any(np.asarray(given) == GIVEN)))
