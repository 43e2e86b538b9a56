"""Time of rollouts in turns, of uneven lengths, and as trees.

    python -m experiments.bench_rollouts

  - `plain`: tokens per second of whole responses.
  - `turns`: responses with a tool that takes 50 ms. Half of the prompts are sampled while the other
    half waits for the tool, next to lockstep, where all wait. idle: fraction of the time without
    sampling.
  - `tail`: one prompt in eight has a response ten times as long as the others. Decode steps and
    seconds in lockstep, and with slots that a new row takes when a row ends.
  - `fork`: half of the rows become copies of the others.
  - `tree`: the host's part of tree operations.

The policy has random weights, so its texts have no meaning.
"""

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from rlvr_jax import policy
from rlvr_jax.experience import RunActor, SampleRequest, StepContext, turns
from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.draws.trees import Segments
from rlvr_jax.rollout import (
    Processor,
    Prompts,
    Sampling,
    decode,
    empty,
    fork_into,
    prefill,
    sample,
)
from rlvr_jax.runs import TrainConfig, described, guarded
from rlvr_jax.runs.resolved import resolve
from rlvr_jax.runs.run import Run, make_run
from rlvr_jax.tasks.sums.calculations import BASE_MODEL, VOCABULARY, calculations
from rlvr_jax.tools import Reply

STOP = VOCABULARY.index(".")
LONG, SHORT = 160, 16  # mean lengths of the tail and of the others
TAIL = 8  # one prompt in so many is of the tail


@dataclass(frozen=True)
class Config:
    """Sizes and measurements."""

    size: str = "small"
    """Size of the policy (`rlvr_jax.policy.SIZES`)."""
    rows: int = 64
    """Responses sampled together."""
    replies: int = 4
    """Replies of the tool to each response."""
    tool_seconds: float = 0.05
    """Seconds until a reply of the tool."""
    rounds: int = 3
    """Measurements; medians are printed."""


@dataclass(frozen=True)
class SlowTool:
    """Answers everything, after a while."""

    seconds: float
    stops: tuple[str, ...] = ("]",)
    label: str = "slow tool"
    judges: bool = False

    def start(self, prompt: Any) -> tuple[None, list[Any]]:
        del prompt
        return None, []

    def reply(self, state: Any, text: str) -> Reply:
        del text
        time.sleep(self.seconds)
        return Reply(state, "1;")


@dataclass(frozen=True)
class Timed(RunActor):
    """An actor, and the seconds of each of its draws."""

    seconds: list[float] = field(default_factory=list)

    def draw(
        self,
        requests: Sequence[SampleRequest],
        key: jax.Array,
        sampling: Mapping[str, Any] | None = None,
        constants: Any = None,
    ) -> Batch:
        started = time.perf_counter()
        sampled = super().draw(requests, key, sampling, constants)
        self.seconds.append(time.perf_counter() - started)
        return sampled


def main(arguments: Sequence[str]) -> None:
    """Measures and prints the table."""
    config = tyro.cli(Config, args=list(arguments), description=described(__doc__))
    table = Table("what", "measured")
    with tempfile.TemporaryDirectory() as folder:
        run = _run(config, folder)
        for part in (_plain, _turns, _tail, _fork, _tree):
            for row in part(config, run):
                table.add_row(*row)
    Console(width=160).print(table)


def _run(config: Config, folder: str) -> Run:
    """A run of a policy with random weights, which draws `rows` responses at a time."""
    shape = policy.named_config(config.size, len(VOCABULARY), max_positions=512)
    model = policy.Model(shape)
    params = jax.jit(model.init)(jax.random.key(0))
    policy.save(folder, model, params, policy.tokenizer(BASE_MODEL))
    settings = TrainConfig.of(
        task="calculations",
        model=folder,
        prompts_per_step=2,
        samples_per_prompt=config.rows // 2,
        response_tokens=192,
        micro_batches=1,
    )
    return make_run(resolve(settings, calculations()))


def _actor(run: Run) -> Timed:
    """On one device, so that a call of one prompt has as much of the machine as one of several."""
    state, sampler = run.initial_state(), run.start.sampler
    params = jax.device_put(jax.device_get(run.sampler_params(state.device)), jax.devices()[0])
    sampler = replace(sampler, model=replace(sampler.model, mesh=None))
    return Timed(sampler, params, run.start.tables, 0, run.scorer(state.device))


def _requests(run: Run, prompts: int, rows: int) -> list[SampleRequest]:
    every = enumerate(run.task.train[:prompts])
    return [SampleRequest(prompt, number, rows // prompts) for number, prompt in every]


def _plain(config: Config, run: Run):
    actor, requests = _actor(run), _requests(run, 2, config.rows)
    key = jax.random.key(1)
    seconds, sampled = _timed(lambda: actor.draw(requests, key), config.rounds)
    tokens = int(sampled.rollouts.length.sum())
    longest = int(sampled.rollouts.length.max())
    yield (
        "plain",
        (
            f"{tokens / seconds:,.0f} tokens/s: {config.rows} rows, {tokens:,} tokens,"
            f" {longest} steps of {1000 * seconds / longest:.1f} ms"
        ),
    )


def _turns(config: Config, run: Run):
    draw = turns(SlowTool(config.tool_seconds), limit=config.replies)
    for name, prompts in (("turns, two halves", 2), ("turns, lockstep", 1)):
        actor, requests = _actor(run), _requests(run, prompts, config.rows)
        turn = StepContext(0, jax.random.key(1), run.setting, lambda count: [])
        times = []

        def sampled(actor=actor, requests=requests, turn=turn, times=times):
            actor.seconds.clear()
            started = time.perf_counter()
            _, _, metrics = draw.apply(requests, actor, (), turn)
            times.append((sum(actor.seconds), time.perf_counter() - started))
            return metrics

        seconds, metrics = _timed(sampled, config.rounds)
        idle = np.median([1 - busy / wall for busy, wall in times[1:]])
        turn_seconds = np.median([busy for busy, _ in times[1:]]) / (config.replies + 1)
        yield (
            name,
            (
                f"{seconds:.2f} s for {metrics['turns']:.0f} turns, a turn of all rows computes"
                f" {1000 * turn_seconds:.0f} ms; tool {1000 * config.tool_seconds:.0f} ms; idle"
                f" {idle:.0%}"
            ),
        )


def _tail(config: Config, run: Run):
    """Prompts whose chance to end a response differs, each answered by two rows."""
    ends = Processor(lambda rows: None, _ending)
    prompts = 2 * config.rows
    chance = np.where(np.arange(prompts) % TAIL == 0, 1 / LONG, 1 / SHORT)
    actor, budget = _actor(run), 3 * LONG
    table, numbers = actor.tables["plain"], np.arange(prompts, dtype=np.int32)

    def sampled(part, at_once=None):
        return jax.block_until_ready(
            sample(
                actor.sampler.model,
                actor.params,
                Prompts(
                    table.tokens[part],
                    table.length[part],
                    numbers[part],
                    np.zeros(len(part), np.int32),
                ),
                jax.random.key(2),
                samples=2,
                response_tokens=budget,
                sampling=Sampling(processor=ends),
                stop_tokens=(STOP,),
                at_once=at_once,
                constants=np.log(chance[part] / (1 - chance[part])).astype(np.float32),
            )
        ).length

    whole = np.asarray(sampled(numbers))
    for sampling_batches in (1, 2, 4):
        parts = np.split(numbers, sampling_batches)
        rows = 2 * prompts // sampling_batches
        lockstep, _ = _timed(lambda parts=parts: [sampled(part) for part in parts], config.rounds)
        in_turn, lengths = _timed(lambda rows=rows: sampled(numbers, rows), config.rounds)
        if not np.array_equal(np.asarray(lengths), whole):
            raise RuntimeError("bench_rollouts: rows in turn must be those of lockstep")
        steps = sum(
            int(sampling_batch.max()) for sampling_batch in np.split(whole, sampling_batches)
        )
        yield (
            f"tail, {rows} rows at a time",
            (
                f"{len(whole)} responses of {whole.mean():.0f} tokens, the longest {whole.max()}:"
                f" lockstep in {sampling_batches} batches {steps} steps, {lockstep:.2f} s; a row"
                f" that ends makes room: {_scheduled(whole, rows)} steps, {in_turn:.2f} s"
            ),
        )


def _ending(logits, carry, context):
    """Ends a response with the chance whose log-odds the constants are."""
    others = jax.nn.logsumexp(logits.at[:, STOP].set(-jnp.inf), axis=-1)
    return logits.at[:, STOP].set(others + context.constants), carry


def _scheduled(lengths: np.ndarray, slots: int) -> int:
    """Steps until all rows have ended, each slot taking the next one when its row ends."""
    free = np.zeros(slots, int)
    for length in lengths.tolist():
        first = int(free.argmin())
        free[first] += length
    return int(free.max())


def _fork(config: Config, run: Run):
    actor, half = _actor(run), config.rows // 2
    model, params = actor.sampler.model, actor.params
    table = actor.tables["plain"]
    tokens, length = table.tokens[: config.rows], table.length[: config.rows]
    columns = tokens.shape[1] + 192
    pool = empty(model, config.rows, columns)
    pool = replace(pool, key=jax.random.split(jax.random.key(3), config.rows))
    pool = jax.jit(partial(prefill, model))(params, pool, tokens, length)
    pool = replace(pool, limit=jnp.full(config.rows, columns, jnp.int32))
    step = jax.jit(partial(decode, model, sampling=Sampling(), stop_tokens=()), static_argnums=2)
    pool = step(params, pool, 64)
    source, into = np.arange(half, dtype=np.int32), np.arange(half, 2 * half, dtype=np.int32)
    branch = jax.jit(fork_into)
    keys = jax.random.split(jax.random.key(4), half)
    ready = jax.block_until_ready
    forked, _ = _timed(
        lambda: ready(branch(pool, source, pool.length[:half], into, keys)), config.rounds
    )
    sampled, _ = _timed(lambda: ready(step(params, pool, 64)), config.rounds)
    copied = sum(leaf.nbytes for leaf in jax.tree.leaves(pool.caches)) // 2
    yield (
        "fork",
        (
            f"{half} of {config.rows} rows with {columns} slots, {copied / 1e6:.1f} MB of caches:"
            f" {1000 * forked:.1f} ms, {forked / (sampled / 64):.1f} decode steps"
        ),
    )


def _tree(config: Config, run: Run):
    half = config.rows // 2
    actor, requests = _actor(run), _requests(run, 1, half)
    segments = Segments(actor, jax.random.key(5))
    first = segments.draw(requests * half, range(half), [-1] * half, [0] * half, 64)
    cut = segments.batch.rollouts.length[first]
    segments.draw(requests * half, range(half, 2 * half), first, cut, 64)
    leaves = jax.tree.leaves(segments.batch.rollouts)
    held = sum(np.asarray(leaf).nbytes for leaf in leaves) + segments.source.nbytes
    width = segments.batch.rollouts.tokens.shape[1]
    yield (
        "tree",
        (
            f"{len(segments)} pieces of {width} places: {held / 1e3:,.0f} kB on the host,"
            f" {held / len(segments) / width:.0f} bytes a place"
        ),
    )


def _timed(call: Callable[[], object], rounds: int) -> tuple[float, object]:
    """Median seconds, and what it gave; the first call compiles and is left out."""
    found, taken = None, []
    for _ in range(rounds + 1):
        started = time.perf_counter()
        found = call()
        taken.append(time.perf_counter() - started)
    return float(np.median(taken[1:])), found


if __name__ == "__main__":
    guarded(main)
