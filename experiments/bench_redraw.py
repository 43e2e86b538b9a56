"""Cost of sampling some groups again, by the fraction of the groups.

    python -m experiments.bench_redraw

Groups of the first batch of `hinted_brackets` are sampled again with a hint. `again` is the whole
call with all work of the host. `program` is the sampler's compiled function of that size, called
directly on the same prompts. `batch` samples all groups. Medians of alternating calls.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import jax
import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from rlvr_jax import tasks
from rlvr_jax.experience import RunActor, SampleRequest
from rlvr_jax.experience.views import hint
from rlvr_jax.runs import described, guarded
from rlvr_jax.runs.presets import preset
from rlvr_jax.runs.resolved import resolve
from rlvr_jax.runs.run import make_run

TASK = "hinted_brackets:train=512"


@dataclass(frozen=True)
class Config:
    """Number of measurements."""

    rounds: int = 15
    """Calls of each function."""


def main(arguments: Sequence[str]) -> None:
    """Measures and prints the table."""
    config = tyro.cli(Config, args=list(arguments), description=described(__doc__))
    actor, requests = _actor()
    size, samples = len(requests), requests[0].samples
    key = jax.random.key(1)
    table = Table("groups", "program", "again, s", "program, s", "again / program", "/ batch")
    numbers = sorted({1, *(max(1, size * part // 16) for part in (1, 2, 3, 4, 6, 8, 12, 16))})
    whole = _seconds(
        [lambda: actor.draw([replace(a, view=requests[0].view) for a in requests], key)], 3
    )[0]
    for number in numbers:
        own = requests[:number]
        # In calls of whole programs: so many prompts each.
        programs = [size for _, _, size in actor.sampler.calls(number, samples)]
        again, alone = _seconds(
            [
                lambda own=own: actor.draw(own, key),
                lambda own=own, programs=programs: _programs(actor, own, programs, key),
            ],
            config.rounds,
        )
        table.add_row(
            f"{number} of {size}",
            " + ".join(map(str, programs)),
            f"{again:.3f}",
            f"{alone:.3f}",
            f"{again / alone:.2f}",
            f"{again / whole:.2f}",
        )
    Console().print(table)


def _actor() -> tuple[RunActor, list[SampleRequest]]:
    """The actor of a run of GHPO at its start, and the asks of a batch with a hint."""
    task = tasks.load(TASK)
    config = preset(TASK, "ghpo")
    run = make_run(resolve(config, task))
    state = run.initial_state()
    start = run.start
    params = run.sampler_params(state.device)
    actor = RunActor(start.sampler, params, start.tables, 0, run.scorer(state.device))
    view = hint(0.25)
    prompts = list(enumerate(task.train))[: config.sampling.prompts_per_step]
    samples = config.sampling.samples_per_prompt
    return actor, [SampleRequest(prompt, number, samples, view) for number, prompt in prompts]


def _programs(
    actor: RunActor, requests: Sequence[SampleRequest], sizes: Sequence[int], key: jax.Array
) -> None:
    """The programs of these sizes on the prompts of the requests, one after the other."""
    tokens, length = actor.prompts(requests)
    samples, start = requests[0].samples, 0
    for size in sizes:
        rows = np.arange(start, start + size) % len(requests)
        own = replace(actor.sampler, num_prompts=size, sampling_batch=(size, samples))
        numbers = np.array([requests[row].number for row in rows], np.int32)
        own.draw(actor.params, tokens[rows], length[rows], numbers, key)
        start += size


def _seconds(calls: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Median wall seconds of each, called in turns; the first round compiles and is left out."""
    found = []
    for _ in range(rounds + 1):
        taken = []
        for call in calls:
            started = time.perf_counter()
            call()
            taken.append(time.perf_counter() - started)
        found.append(taken)
    return np.median(np.array(found[1:]), axis=0).tolist()


if __name__ == "__main__":
    guarded(main)
