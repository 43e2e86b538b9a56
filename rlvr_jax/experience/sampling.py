"""Drawing and grading rollouts: prompts in, verified `Rollouts` on the host out."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from rlvr_jax.experience.batch import Graded
from rlvr_jax.experience.grades import check_grades
from rlvr_jax.experience.prompts import PromptTable, responses
from rlvr_jax.parallel import fetch, gather, own_rows
from rlvr_jax.policy import Model, Params
from rlvr_jax.rollout import Sampling, sample
from rlvr_jax.tasks import Grade, Prompt, Task
from rlvr_jax.types import Rollouts, replace

__all__ = ["Sampler"]


@dataclass(frozen=True)
class Sampler:
    """Draws groups of responses with one compiled program of fixed shape, and has them graded.

    Fields:
      num_prompts, samples: of a batch: prompts × samples rows.
      wave: prompts, and samples of each, that the program draws at a time; they divide a batch's.
      opening: tokens that all prompts of every table that is drawn from begin with.
      at_once: rows of a wave that are computed at the same time, see `sample`; None: all.
    """

    model: Model
    tokenizer: Any
    task: Task
    num_prompts: int
    samples: int
    wave: tuple[int, int]
    response_tokens: int
    sampling: Sampling
    stop_tokens: tuple[int, ...]
    opening: int = 0
    at_once: int | None = None

    def draw(
        self,
        params: Params,
        table: PromptTable,
        indices: np.ndarray,
        key: jax.Array,
        *,
        first_sample: int | np.ndarray = 0,
        weight_version: int = 0,
    ) -> Graded:
        """Samples and grades `samples` responses to each of `num_prompts` prompts.

        Args:
          indices: positions in the table, [num_prompts].
          first_sample: number of the first sample of each prompt, [num_prompts]; keys the random
            numbers. One number: of each prompt where it comes first; where it comes again, it goes
            on behind itself.
        Raises:
          ValueError: a reward or outcome that is not finite.
        """
        started = time.perf_counter()
        rollouts, rows = self._sample(params, table, indices, first_sample, key, weight_version)
        sampled = time.perf_counter()
        prompts = [table.prompts[i] for i in np.repeat(indices, self.samples)]
        grades = self._grade(prompts, rollouts, rows)
        rollouts = replace(
            rollouts,
            outcome=np.array([g.outcome or 0 for g in grades], rollouts.outcome.dtype),
            reward=np.array([g.reward or 0 for g in grades], rollouts.reward.dtype),
        )
        verified = time.perf_counter()
        return Graded(
            rollouts, prompts, grades, self.tokenizer, sampled - started, verified - sampled
        )

    def _sample(
        self,
        params: Params,
        table: PromptTable,
        indices: np.ndarray,
        first_sample: int | np.ndarray,
        key: jax.Array,
        weight_version: int,
    ) -> tuple[Rollouts, np.ndarray]:
        """The rollouts of a batch, drawn wave by wave, and the rows this process answers for."""
        prompts, samples = self.wave
        first = np.asarray(first_sample, np.int32)
        if first.ndim == 0:
            first = (first + self.samples * _occurrence(indices)).astype(np.int32)
        places = np.arange(self.num_prompts * self.samples).reshape(-1, self.samples)
        drawn, order, own = [], [], []
        for start in range(0, self.num_prompts, prompts):
            part = slice(start, start + prompts)
            asked = indices[part]
            for number in range(0, self.samples, samples):
                wave = sample(
                    self.model,
                    params,
                    table.tokens[asked],
                    table.length[asked],
                    asked.astype(np.int32),
                    first[part] + np.int32(number),
                    key,
                    samples=samples,
                    response_tokens=self.response_tokens,
                    sampling=self.sampling,
                    stop_tokens=self.stop_tokens,
                    opening=self.opening,
                    at_once=self.at_once,
                    weight_version=np.asarray(weight_version, np.int32),
                )
                order.append(places[part, number : number + samples].reshape(-1))
                own.append(order[-1][own_rows(wave.tokens)])
                drawn.append(fetch(wave))
        rollouts = _one_batch(drawn, np.concatenate(order), self.samples)
        return rollouts, np.sort(np.concatenate(own))

    def _grade(
        self, prompts: Sequence[Prompt], rollouts: Rollouts, rows: np.ndarray
    ) -> list[Grade]:
        """The grades of all rollouts: those of `rows` given here, the others by their processes."""
        asked = [prompts[row] for row in rows]
        texts = responses(self.tokenizer, jax.tree.map(lambda x: x[rows], rollouts))
        grades = list(self.task.verify(asked, texts))
        check_grades(self.task, asked, texts, grades)
        own = {int(row): dataclasses.asdict(g) for row, g in zip(rows, grades, strict=True)}
        known = {int(row): grade for part in gather(own) for row, grade in part.items()}
        return [Grade(**known[row]) for row in range(len(prompts))]


def _one_batch(drawn: Sequence[Rollouts], places: np.ndarray, samples: int) -> Rollouts:
    """The rollouts of all waves, group by group.

    Args:
      places: row in the batch of each row that was drawn, [B].
      samples: of each group of the batch.
    """
    if len(drawn) == 1:
        return drawn[0]
    order = np.argsort(places)
    rollouts = jax.tree.map(lambda *leaves: np.concatenate(leaves)[order], *drawn)
    numbers = np.arange(len(places), dtype=np.int32)
    return replace(rollouts, group=numbers // np.int32(samples), rollout_id=numbers)


def _occurrence(indices: np.ndarray) -> np.ndarray:
    """How often each entry has come before: a prompt asked twice must not be answered alike."""
    seen: dict[int, int] = {}
    counts = np.empty(len(indices), np.int64)
    for position, index in enumerate(indices.tolist()):
        counts[position] = seen.get(index, 0)
        seen[index] = counts[position] + 1
    return counts
