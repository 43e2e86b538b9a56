"""Time of a training step and of its parts, against the limit of the machine.

    python -m experiments.bench                        # all workloads, one after the other
    python -m experiments.bench --size S --json        # one workload, a JSON object as last line
    python -m experiments.bench --size M --compute-dtype float32 bfloat16
    python -m experiments.bench --size S --micro-batches 1 2 4 8
    python -m experiments.bench --size Qwen2.5-0.5B --profile 20       # its longest operations

The workloads are the first steps of the quickstart and of SmolLM2, and some of fixed size
(`experiments.bench_work`). A step is that of the training loop, with verification and metrics.
Times are medians of warm steps.

The roofline bound is the time of the matrix products at the rate of a large product in the same
dtype. If reading the weights at the speed of memory takes longer, it is that time. Both rates are
measured in the same run. `mfu` is the fraction of the first one. The bound counts:

  - sampled tokens, without padding
  - the prompt of every rollout in the update, and once per group in the sampler
  - no pass for old log-probs

`least_s` counts less. The prompt counts once per group also in the update, and the common beginning
of all prompts once. The last token of a response has no pass.
"""

import dataclasses
import json
import math
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from rlvr_jax import parallel
from rlvr_jax.experiments.bench_profile import Operation, profiled
from rlvr_jax.experiments.bench_work import ACCELERATED, STEPS, prepared
from rlvr_jax.policy import products, shipped_weights
from rlvr_jax.runs import described, guarded
from rlvr_jax.runs.run import Run
from rlvr_jax.runs.step import take_step
from rlvr_jax.types import Rollouts


@dataclass(frozen=True)
class Config:
    """Workloads and output; each column of numbers comes from a separate process."""

    size: tuple[str, ...] = ()
    """Workloads: quickstart, SmolLM2, S, M, L, Qwen2.5-0.5B; empty: all, but SmolLM2 only with
    its weights and the last one only on an accelerator."""
    compute_dtype: tuple[Literal["float32", "bfloat16"], ...] = ()
    """Dtypes of the matrix products, a column each; empty: that of the workload."""
    bitwise: bool = False
    """A second column with --bitwise for each workload."""
    micro_batches: tuple[int, ...] = ()
    """Numbers of micro-batches; times the update of Clip-Cov with each, with old log-probs of
    the same pass and of a scoring pass."""
    json: bool = False
    """Print one JSON object per workload as the last lines."""
    profile: int = 0
    """Number of the longest operations of one more step to print; 0: none."""


def main(arguments: Sequence[str]) -> None:
    """Measures and prints."""
    config = tyro.cli(Config, args=list(arguments), description=described(__doc__))
    unknown = [size for size in config.size if size not in STEPS]
    if unknown:
        raise ValueError(f"--size must be among {', '.join(STEPS)}, got {unknown[0]!r}")
    console = Console()
    sizes = config.size or _all_sizes(console)
    pairs = [(size, dtype) for size in sizes for dtype in config.compute_dtype or ("",)]
    forms = (False, True) if config.bitwise else (False,)
    work = [partial(_measure_step, *pair, bits, config.profile) for pair in pairs for bits in forms]
    if config.micro_batches:
        work = [
            partial(_measure_update, *pair, chunks)
            for pair in pairs
            for chunks in config.micro_batches
        ]
    rows = []
    spawn = multiprocessing.get_context("spawn")
    for measure in work:
        # The devices are the processes' own: this one has none.
        with ProcessPoolExecutor(1, spawn, _start) as pool:
            try:
                rows.append(pool.submit(measure).result())
            except BrokenProcessPool:
                raise ValueError(
                    f"--size {measure.args[0]}: the process was killed, probably as memory ran out"
                ) from None
    profiles = [row.pop("profile", ()) for row in rows]
    console.print(f"{rows[0]['device']}, jax {jax.__version__}")
    console.print(_table(rows))
    for row, operations in zip(rows, profiles, strict=True):
        if operations:
            console.print(_profile_table(row["size"], operations))
    if config.json:
        for row in rows:
            print(json.dumps(row))


def _start() -> None:
    """Prepares a measuring process; the compilation cache is off, so that compilation is
    measured."""
    parallel.start()
    jax.config.update("jax_enable_compilation_cache", False)


def _all_sizes(console: Console) -> list[str]:
    left_out = set() if parallel.has_accelerator() else set(ACCELERATED)
    try:
        shipped_weights()
    except ValueError as missing:
        console.print(f"SmolLM2 is left out: {missing}", markup=False, highlight=False)
        left_out.add("SmolLM2")
    return [size for size in STEPS if size not in left_out]


def _measure_step(size: str, dtype: str, bitwise: bool, profile: int) -> dict[str, Any]:
    """Times of warm steps, memory, the roofline bound, and the longest operations of one more
    step."""
    with tempfile.TemporaryDirectory() as folder:
        run = prepared(size, folder, compute_dtype=dtype, bitwise=bitwise)
        state = run.initial_state()
        timings, sampled = [], []
        for step in range(1 + STEPS[size]):
            started = time.perf_counter()
            taken = take_step(run, state, step)
            seconds = time.perf_counter() - started
            state = taken.state
            if step:
                timings.append(taken.timings | {"step_s": seconds})
                sampled.append(taken.batch.rollouts)
            else:
                first = seconds
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        on_device = jax.devices()[0].memory_stats() or {}
        step = partial(take_step, run, state, 1 + STEPS[size])
        operations = profiled(step) if profile else []
    warm = {name: _middle(part[name] for part in timings) for name in timings[0]}
    tokens = _middle(rollouts.length.sum() for rollouts in sampled)
    machine = Machine(_matmul_rate(run.config.policy.compute_dtype), _bandwidth())
    least = _middle(sum(_floor(machine, run, rollouts, shared=True)) for rollouts in sampled)
    floors = [_floor(machine, run, rollouts) for rollouts in sampled]
    sampling, updating = (_middle(part) for part in zip(*floors, strict=True))
    without_memory = dataclasses.replace(machine, bandwidth=math.inf)
    products = [_floor(without_memory, run, rollouts) for rollouts in sampled]
    drawing, learning = (_middle(part) for part in zip(*products, strict=True))
    parts = ("sample", "verify", "update")
    return {
        "size": size,
        "compute_dtype": run.config.policy.compute_dtype,
        **({"forms": "--bitwise"} if bitwise else {}),
        "prompts": run.config.sampling.prompts_per_step,
        "rollouts": run.config.sampling.samples_per_prompt,
        "prompt_len": _middle(rollouts.prompt_length.mean() for rollouts in sampled),
        "new_tokens": _middle(rollouts.length.mean() for rollouts in sampled),
        **{f"{part}_s": warm[f"{part}_s"] for part in parts},
        "step_s": warm["step_s"],
        **{f"{part}_fraction": warm[f"{part}_s"] / warm["step_s"] for part in parts},
        "sample_tokens_per_s": tokens / warm["sample_s"],
        "update_tokens_per_s": tokens / warm["update_s"],
        "compile_s": first - warm["step_s"],
        "sample_mfu": drawing / warm["sample_s"],
        "update_mfu": learning / warm["update_s"],
        "mfu": (drawing + learning) / warm["step_s"],
        "peak_rss_mb": peak,
        "peak_device_mb": on_device.get("peak_bytes_in_use", 0) / 2**20,
        "matmul_gflops": machine.rate / 1e9,
        "memory_gb_per_s": machine.bandwidth / 1e9,
        "sample_floor_s": sampling,
        "update_floor_s": updating,
        "floor_s": sampling + updating,
        "times_floor": warm["step_s"] / (sampling + updating),
        "least_s": least,
        "times_least": warm["step_s"] / least,
        "device": _device(),
        "profile": operations[:profile],
    }


def _measure_update(size: str, dtype: str, micro_batches: int) -> dict[str, Any]:
    """Times of an update in micro-batches, with and without reuse of its pass for old log-probs."""
    with tempfile.TemporaryDirectory() as folder:
        run = prepared(size, folder, "clip_cov", micro_batches, dtype)
        taken = take_step(run, run.initial_state(), 0)
        state, rows = taken.state, len(taken.batch.grades) // run.config.update.minibatches
        rollouts = jax.tree.map(lambda x: x[:rows], taken.batch.rollouts)
        key = run.key("objective", 0, 0)

        def update(fresh):
            nonlocal state
            scored = rollouts
            if not fresh:
                old = run.programs.score(run.policy_params(state.device), rollouts)
                scored = rollouts.replace(**jax.device_get(old))
            state, metrics, _ = run.programs.update(state, scored, key, fresh)
            jax.block_until_ready(metrics)

        reused, scored = (_median(partial(update, f), STEPS[size]) for f in (True, False))
    return {
        "size": size,
        "compute_dtype": run.config.policy.compute_dtype,
        "micro_batches": micro_batches,
        "update_s": reused,
        "scored_first_s": scored,
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "device": _device(),
    }


def _device() -> str:
    return f"{len(jax.devices())} x {jax.devices()[0].device_kind}"


@dataclass(frozen=True)
class Machine:
    """FLOP/s of a large matrix product, and bytes/s to and from memory."""

    rate: float
    bandwidth: float


def _floor(
    machine: Machine, run: Run, rollouts: Rollouts, shared: bool = False
) -> tuple[float, float]:
    """Seconds of sampling these rollouts and training on them at the machine's speeds.

    Args:
      shared: count common beginnings of rollouts once, and leave out positions whose results are
        not read.
    """
    config = run.start.model.config
    asked, responses = rollouts.prompt_length.astype(float), rollouts.length.astype(float)
    prompts = asked[:: run.config.sampling.samples_per_prompt]
    unembedding = config.vocab_size * config.width
    queries, keys = (n * config.head_size for n in (config.num_heads, config.num_kv_heads))
    layer = config.width * (2 * queries + 2 * keys + 3 * config.mlp_width)
    layers = config.num_layers * layer
    weights = layers + unembedding

    def attention(seen):
        """FLOPs of one token's scores and values over `seen` positions, all layers."""
        return 4 * config.num_layers * queries * seen

    def read(tokens, before=0.0):
        """FLOPs of the layers for rows of tokens behind others."""
        return tokens * (2 * layers + attention(before + tokens / 2))

    opening = float(run.start.sampler.opening) if shared else 0.0
    heads = read(opening) + np.sum(read(prompts - opening, opening))
    prefill = heads / machine.rate
    token = 2 * (layers + unembedding) + attention(np.mean(asked + responses / 2))
    drawing = [np.sum(responses > place) for place in range(rollouts.length.max())]
    # They are read in the dtype of the products, and updated as they are stored, in float32.
    least = jnp.dtype(config.compute_dtype).itemsize * weights / machine.bandwidth
    decode = sum(max(rows * token / machine.rate, least) for rows in drawing[int(shared) :])
    if shared:
        # The token before the first one stands in the prompt; behind the last one nothing is asked.
        tails = np.sum(read(np.maximum(responses - 1, 0), asked))
    else:
        heads, tails = 0.0, np.sum(read(asked + responses))
    forward = heads + tails + np.sum(responses) * 2 * unembedding
    # Adam reads a gradient, a parameter and two moments, and writes three of them.
    adam = run.config.plan.updates * 7 * 4 * weights / machine.bandwidth
    return float(prefill + decode), float(
        3 * run.config.update.epochs * forward / machine.rate + adam
    )


def _matmul_rate(dtype: str) -> float:
    """FLOP/s of a large matrix product that keeps the digits of its operands, as a policy's do."""
    size = 8192 if parallel.has_accelerator() else 4096
    # Zeros and ones let some chips run faster than anybody's numbers do.
    x = jax.random.normal(jax.random.key(0), (size, size), dtype)
    return 2 * size**3 / _best(jax.jit(lambda x: products.matmul(x, x)), x)


def _bandwidth() -> float:
    """Bytes/s that are read and written by adding to a large array in its place."""
    size = 2**30 if parallel.has_accelerator() else 2**26
    add = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = add(jnp.ones(size, jnp.float32))

    def step():
        # In its place: the pages of a new array would be what takes the time.
        nonlocal x
        x = jax.block_until_ready(add(x))

    return 2 * 4 * size / min(_seconds(step) for _ in range(5))


def _best(function: Callable, x: jax.Array, repeats: int = 5) -> float:
    jax.block_until_ready(function(x))
    return min(_seconds(lambda: jax.block_until_ready(function(x))) for _ in range(repeats))


def _median(function: Callable[[], None], repeats: int) -> float:
    function()
    return _middle(_seconds(function) for _ in range(repeats))


def _middle(values: Iterable[float]) -> float:
    """The median."""
    return float(np.median(list(values)))


def _seconds(function: Callable[[], Any]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def _profile_table(size: str, operations: Sequence[Operation]) -> Table:
    """The longest operations of a step."""
    table = Table("program", "operation", "ms", "calls", title=f"{size}: one step")
    for each in operations:
        table.add_row(each.program, each.name, f"{1e3 * each.seconds:.1f}", str(each.calls))
    return table


def _table(rows: Sequence[dict[str, Any]]) -> Table:
    """The rows as columns, one per size or number of micro-batches."""
    table = Table()
    named = ("size", "compute_dtype", "forms", "micro_batches")
    heads = [", ".join(str(row[name]) for name in named if name in row) for row in rows]
    for head in ("", *heads):
        table.add_column(head, justify="right")
    for name in [name for name in rows[0] if name not in (*named, "device")]:
        table.add_row(
            name, *(f"{row[name]:,.3g}" if row[name] < 100 else f"{row[name]:,.0f}" for row in rows)
        )
    return table


if __name__ == "__main__":
    guarded(main, join=False)
