"""Sampling of rollouts with compiled functions of fixed shape, from prompts to host arrays."""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from rlvr_jax.parallel import fetch
from rlvr_jax.policy import Model, Params
from rlvr_jax.rollout import Prompts, Sampling, sample
from rlvr_jax.tasks import Task
from rlvr_jax.types import Rollouts

SMALLEST = 8
"""Smallest compiled fraction of a sampling batch: 1, 1/2, 1/4 and 1/8 are compiled."""


@dataclass(frozen=True)
class Sampler:
    """Samples groups of responses with one compiled function of fixed shape.

    Fields:
      num_prompts, samples: prompts of a batch, and samples of each: num_prompts × samples rows.
      sampling_batch: prompts, and samples of each, in one call; divisors of the above.
      opening: number of first tokens that the prompts of all tables have in common.
      at_once: rows of a sampling batch that are computed simultaneously, see `sample`; None: all.
      record_top: number of most probable tokens that are recorded with each generated token.
      record_routes: the experts of each token are recorded.
    """

    model: Model
    tokenizer: Any
    task: Task
    num_prompts: int
    samples: int
    sampling_batch: tuple[int, int]
    response_tokens: int
    sampling: Sampling
    stop_tokens: tuple[int, ...]
    opening: int = 0
    at_once: int | None = None
    record_top: int = 0
    record_routes: bool = False

    def cache_bytes(self, prompt_tokens: int) -> int:
        """Bytes per device of the keys and values that a sampling batch stores.

        Args:
          prompt_tokens: width of the prompts. Each prompt is stored once for its group, and again
            for each computed row if rows take turns.
        """
        config, (prompts, samples) = self.model.config, self.sampling_batch
        tokens = prompts * (prompt_tokens + samples * self.response_tokens)
        if self.at_once is not None and self.at_once < prompts * samples:
            each = prompt_tokens + self.response_tokens
            tokens = prompts * prompt_tokens + self.at_once * each
        width = 2 * config.num_layers * config.num_kv_heads * config.head_size
        return tokens * width * np.dtype(config.compute_dtype).itemsize // self.model.mesh.size

    def calls(self, count: int, samples: int) -> list[tuple[int, int, int]]:
        """Calls that sample `count` requests: (first request, requests, prompts that are computed).

        A call has 1, 1/2, 1/4 or 1/8 of the rows of a sampling batch: whole groups, whose number
        the number of devices divides.
        """
        prompts, batch_samples = self.sampling_batch
        devices = self.model.mesh.size if self.model.mesh is not None else 1
        rows = prompts * batch_samples
        sizes = []
        for part in (1, 2, 4, SMALLEST):
            size = max(1, rows // part // samples)
            sizes.append(-(-size // devices) * devices if size >= devices else size)
        sizes = sorted(set(sizes))
        found, start = [], 0
        while start < count:
            size = next((size for size in sizes if size >= count - start), sizes[-1])
            found.append((start, min(size, count - start), size))
            start += size
        return found

    def draw(
        self,
        params: Params,
        tokens: np.ndarray,
        length: np.ndarray,
        numbers: np.ndarray,
        key: jax.Array,
        *,
        first_sample: int | np.ndarray = 0,
        weight_version: int = 0,
        temperature: np.ndarray | None = None,
        constants: Any = None,
        soft_prompt: np.ndarray | None = None,
        stop_state: np.ndarray | None = None,
    ) -> Rollouts:
        """Samples `samples` responses to each of `num_prompts` prompts.

        Args:
          params: weights in the form that the sampler reads.
          tokens, length: prompts [num_prompts, P] and their lengths [num_prompts].
          numbers: identities of the prompts, [num_prompts], for the random keys.
          first_sample: number of the first sample of each prompt, [num_prompts]. A single number is
            for the first occurrence of each prompt; later occurrences continue its samples.
          temperature: of each prompt, [num_prompts]; None: that of `sampling`.
          constants: inputs of the logits processor, for all prompts.
          soft_prompt: vectors before the prompts, [num_prompts, E, D].
          stop_state: state of `sampling.stops` at the end of each prompt, [num_prompts]; None: 0.
        """
        first = np.asarray(first_sample, np.int32)
        if first.ndim == 0:
            first = (first + self.samples * occurrences(numbers)).astype(np.int32)
        prompts, samples = self.sampling_batch
        places = np.arange(self.num_prompts * self.samples).reshape(-1, self.samples)
        sampled, order = [], []
        for start in range(0, self.num_prompts, prompts):
            part = slice(start, start + prompts)
            for number in range(0, self.samples, samples):
                asked = Prompts(
                    tokens[part],
                    length[part],
                    numbers[part].astype(np.int32),
                    first[part] + np.int32(number),
                    temperature=None if temperature is None else temperature[part],
                    soft_prompt=None if soft_prompt is None else soft_prompt[part],
                    stop_state=None if stop_state is None else stop_state[part],
                )
                sampling_batch = sample(
                    self.model,
                    params,
                    asked,
                    key,
                    samples=samples,
                    response_tokens=self.response_tokens,
                    sampling=self.sampling,
                    stop_tokens=self.stop_tokens,
                    opening=self.opening,
                    at_once=self.at_once,
                    record_top=self.record_top,
                    record_routes=self.record_routes,
                    weight_version=np.asarray(weight_version, np.int32),
                    constants=constants,
                    # Prompts and budgets are checked at the start of a run; tokens beyond the
                    # budget of rows with given tokens are truncated.
                    beyond=True,
                )
                order.append(places[part, number : number + samples].reshape(-1))
                sampled.append(fetch(sampling_batch))
        return _one_batch(sampled, np.concatenate(order), self.samples)


def _one_batch(sampled: list[Rollouts], places: np.ndarray, samples: int) -> Rollouts:
    """The rollouts of all sampling batches, group by group.

    Args:
      places: row in the whole batch of each sampled row, [B].
      samples: per group.
    """
    if len(sampled) == 1:
        return sampled[0]
    order = np.argsort(places)
    rollouts = jax.tree.map(lambda *leaves: np.concatenate(leaves)[order], *sampled)
    numbers = np.arange(len(places), dtype=np.int32)
    return rollouts.replace(group=numbers // np.int32(samples), rollout_id=numbers)


def occurrences(numbers: np.ndarray) -> np.ndarray:
    """Number of earlier occurrences of each entry, so that repeated prompts get new samples."""
    seen: dict[int, int] = {}
    counts = np.empty(len(numbers), np.int64)
    for position, number in enumerate(np.asarray(numbers).tolist()):
        counts[position] = seen.get(number, 0)
        seen[number] = counts[position] + 1
    return counts
