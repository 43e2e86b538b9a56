"""Sampling batches: equal parts of a batch of rollouts, sampled one after the other."""

from collections.abc import Iterator


def sampling_batches(prompts: int, samples: int, shards: int) -> Iterator[tuple[int, int]]:
    """Ways to split a batch into equal sampling batches, fewest first: (prompts, samples) of one.

    Its prompts are a multiple of `shards` if possible, so that no device computes the prompts of
    another one. Groups are split only after prompts.

    Args:
      prompts, samples: of the batch; `samples` responses to each prompt.
      shards: number of parts of the rows over the devices.
    """
    divisors = [n for n in range(prompts, 0, -1) if prompts % n == 0]
    counts = [n for n in divisors if n % shards == 0] or [prompts]
    for count in counts:
        yield count, samples
    for part in range(samples - 1, 0, -1):
        if samples % part == 0 and counts[-1] * part % shards == 0:
            yield counts[-1], part
