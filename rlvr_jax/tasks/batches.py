"""The prompts of each step: a pure function of the seed and the number of the step.

A checkpoint only stores the step of the data. A resumed run, or a run that skips ahead, sees the
same prompts as an uninterrupted run. Two choices are independent:

- The kind of each position. The positions of all steps form one sequence. After any number of
  positions, the count of each kind differs from its exact fraction by less than one prompt. Among
  the kinds that stay within one prompt of their fraction, the kind whose next prompt is due first
  gets the position.
- The prompt of the kind. Each kind runs through its prompts in an endless sequence of epochs. The
  key of the shuffle is the seed, the kind's name and the number of the epoch, so kinds do not
  change each other's order.
"""

import functools
import hashlib
import math
from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from rlvr_jax.tasks.base import Task

# Fractions such as 1/3 are floats; this finds the exact fraction.
_LARGEST_DENOMINATOR = 1_000_000


class Batches:
    """The order of a task's train prompts. Equal objects return equal indices; state is a cache.

    Attributes:
      shares: exact fraction of each kind in any part of the sequence, in the order of the train
        prompts: the task's mixture scaled to sum 1, or the fractions in the train prompts.
    """

    def __init__(self, task: Task, prompts_per_step: int, seed: int = 0):
        """Prepares the order.

        Args:
          task: its train prompts and its mixture are read.
          prompts_per_step: number of prompts of one step, at least 1.
          seed: at least 0.
        Raises:
          ValueError: an argument is out of range; the mixture is negative, not finite or all 0.
        """
        if prompts_per_step < 1:
            raise ValueError(
                f"Batches: prompts_per_step must be at least 1, got {prompts_per_step}"
            )
        if seed < 0:
            raise ValueError(f"Batches: seed must be at least 0, got {seed}")
        members: dict[str, list[int]] = {}
        for index, prompt in enumerate(task.train):
            members.setdefault(prompt.kind, []).append(index)
        self.prompts_per_step = prompts_per_step
        self.seed = seed
        self.shares: dict[str, Fraction] = _fractions(members, task.mixture)
        self._members = [np.asarray(members[kind]) for kind in self.shares]
        self._period = math.lcm(*(fraction.denominator for fraction in self.shares.values()))
        self._quotas = [int(fraction * self._period) for fraction in self.shares.values()]
        self._places = np.empty(0, np.int64)
        self._shuffled = functools.lru_cache(maxsize=2 * len(members))(self._shuffle)

    def indices(self, step: int, number: int = 0, rounds: int = 1) -> np.ndarray:
        """Positions in `task.train` of the prompts of a step, int64 [prompts_per_step].

        A prompt is twice in one step only if the end of its kind's epoch is in the step, or if the
        kind has fewer prompts than positions.

        Args:
          step: number of the step, from 0.
          number, rounds: number of the batch, of `rounds` batches of the step. All have the same
            kinds at the same positions. Each begins at another place of the epochs, so the batches
            of a step differ, and the first batches alone run through whole epochs.
        Raises:
          ValueError: step is negative, or number is not in 0 … rounds - 1.
        """
        if step < 0:
            raise ValueError(f"Batches.indices: step must be at least 0, got {step}")
        if not 0 <= number < rounds:
            raise ValueError(f"Batches.indices: number must be in 0 … {rounds - 1}, got {number}")
        start = step * self.prompts_per_step
        whole, start = divmod(start, self._period)
        # A batch may be longer than the period of the kinds.
        stop = start + self.prompts_per_step
        self._extend(min(stop, self._period))
        # The period of several uneven fractions is longer than an int64.
        kinds = self._places[[place % self._period for place in range(start, stop)]]
        counts = np.bincount(self._places[:start], minlength=len(self._quotas))
        result = np.empty(self.prompts_per_step, np.int64)
        for kind, quota in enumerate(self._quotas):
            here = np.flatnonzero(kinds == kind)
            first = whole * quota + int(counts[kind])
            ahead = len(self._members[kind]) * number // rounds
            result[here] = self._stretch(kind, first, len(here), ahead)
        return result

    def _stretch(self, kind: int, start: int, length: int, ahead: int) -> np.ndarray:
        """Entries start .. start + length of a kind's sequence, each epoch shifted by `ahead`."""
        size = len(self._members[kind])
        epochs, positions = np.divmod(np.arange(start, start + length), size)
        result = np.empty(length, np.int64)
        for epoch in np.unique(epochs):
            here = epochs == epoch
            result[here] = self._shuffled(kind, int(epoch))[(positions[here] + ahead) % size]
        return result

    def _shuffle(self, kind: int, epoch: int) -> np.ndarray:
        digest = hashlib.sha256(list(self.shares)[kind].encode()).digest()
        key = [self.seed, int.from_bytes(digest[:8], "little"), epoch]
        return np.random.default_rng(key).permutation(self._members[kind])

    def _extend(self, length: int) -> None:
        """Assigns kinds to at least the first `length` positions of the period."""
        known = len(self._places)
        if known >= length:
            return
        length = min(max(length, 2 * known), self._period)
        counts = np.bincount(self._places, minlength=len(self._quotas)).tolist()
        chosen = []
        for place in range(known, length):
            # With a quota a of the period D, prompt j = 1, 2, … of a kind may come from position
            # floor((j - 1) D / a) on, and must come by position ceil(j D / a) - 1.
            _, kind = min(
                (-(-(count + 1) * self._period // quota), kind)
                for kind, (count, quota) in enumerate(zip(counts, self._quotas, strict=True))
                if quota and count * self._period < (place + 1) * quota
            )
            counts[kind] += 1
            chosen.append(kind)
        self._places = np.concatenate([self._places, np.asarray(chosen, np.int64)])


def _fractions(
    members: Mapping[str, list[int]], mixture: Mapping[str, float]
) -> dict[str, Fraction]:
    """Exact fraction of each kind; the sum is exactly 1."""
    if not mixture:
        mixture = {kind: len(indices) for kind, indices in members.items()}
    for kind, weight in mixture.items():
        if not 0 <= weight < math.inf:
            raise ValueError(
                f"Batches: mixture must be finite and at least 0, got {weight} for kind {kind!r}"
            )
    weights = {
        kind: Fraction(mixture.get(kind, 0)).limit_denominator(_LARGEST_DENOMINATOR)
        for kind in members
    }
    total = sum(weights.values())
    if not total:
        raise ValueError(f"Batches: mixture must have a positive fraction, got {dict(mixture)}")
    return {kind: weight / total for kind, weight in weights.items()}
