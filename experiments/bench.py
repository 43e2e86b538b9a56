"""What a training step costs, part by part, and how far it is from what the machine could do.

    python -m experiments.bench                        # the three sizes, one after the other
    python -m experiments.bench --size S --json        # one size, one JSON object as the last line
    python -m experiments.bench --size S --micro-batches 1 2 4 8

The work is fixed: a random policy of Qwen2's shape in float32, prompts of 32 tokens, exactly 64 new
ones (there is no stop token), temperature 1, reward the share of even token ids, GRPO, Adam, one
update on the whole batch. A step is the training loop's own, verification and metrics included;
times are medians of warm steps. The floor is the time that the matrix products take at the rate
of a large one, or the weights at the speed of memory where that is slower, both measured in the
same run; it counts the prompt of every rollout in the update and once per group in the sampler.
"""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from rich.console import Console
from rich.table import Table
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import PreTrainedTokenizerFast

from rlvr_jax import methods, parallel, policy
from rlvr_jax.policy import ModelConfig
from rlvr_jax.tasks import Prompt, Task, graded_one_by_one
from rlvr_jax.training import TrainConfig, guarded
from rlvr_jax.training.run import Run, make_run
from rlvr_jax.training.step import take_step

PROMPT_TOKENS, NEW_TOKENS, SAMPLES = 32, 64, 8


@dataclass(frozen=True)
class Work:
    """One size: the policy's shape, the prompts of a step, and how many steps are timed."""

    model: ModelConfig
    prompts: int
    steps: int


def _work(vocabulary, prompts, steps, width, layers, heads, kv_heads, head_size, mlp) -> Work:
    config = ModelConfig(
        vocabulary, width, layers, heads, kv_heads, head_size, mlp, qkv_bias=True, max_positions=256
    )
    return Work(config, prompts, steps)


WORK = {
    "S": _work(64, 16, 7, width=128, layers=4, heads=4, kv_heads=2, head_size=32, mlp=512),
    "M": _work(8192, 4, 5, width=512, layers=8, heads=8, kv_heads=4, head_size=64, mlp=1536),
    "L": _work(49152, 2, 3, width=576, layers=30, heads=9, kv_heads=3, head_size=64, mlp=1536),
}
"""L has the shape of SmolLM2-135M."""


@dataclass(frozen=True)
class Config:
    """Which sizes, and what is printed; each row of numbers comes from a process of its own."""

    size: tuple[str, ...] = tuple(WORK)
    """Of S, M and L."""
    micro_batches: tuple[int, ...] = ()
    """Time the update of Clip-Cov in so many pieces, with old log-probs of its own pass and with
    a scoring pass for them."""
    json: bool = False
    """One JSON object per size as the last lines."""


def main(arguments: Sequence[str]) -> None:
    """Measures and prints."""
    config = tyro.cli(Config, args=list(arguments), description=__doc__)
    unknown = [size for size in config.size if size not in WORK]
    if unknown:
        raise ValueError(f"size must be among {', '.join(WORK)}, got {unknown[0]!r}")
    console = Console()
    console.print(
        f"{jax.devices()[0].device_kind}, {len(jax.devices())} device, jax {jax.__version__}"
    )
    work = [partial(_measure_step, size) for size in config.size]
    if config.micro_batches:
        work = [
            partial(_measure_update, size, pieces)
            for size in config.size
            for pieces in config.micro_batches
        ]
    rows = []
    for measure in work:
        with multiprocessing.get_context("spawn").Pool(1, parallel.start) as pool:
            rows.append(pool.apply(measure))
    console.print(_table(rows))
    if config.json:
        for row in rows:
            print(json.dumps(row))


def _measure_step(size: str) -> dict[str, Any]:
    """Times of warm steps, memory, and the floor."""
    work = WORK[size]
    with tempfile.TemporaryDirectory() as folder:
        run = _prepared(work, folder)
        state = run.initial_state()
        parts = []
        for step in range(1 + work.steps):
            started = time.perf_counter()
            taken = take_step(run, state, step)
            state = taken.state
            taken.timings["step_s"] = time.perf_counter() - started
            parts.append(taken.timings)
        warm = {name: float(np.median([p[name] for p in parts[1:]])) for name in parts[0]}
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows, first = work.prompts * SAMPLES, parts[0]["step_s"]
    sampling, updating = _floor(work)
    return {
        "size": size,
        "prompts": work.prompts,
        "rollouts": SAMPLES,
        "prompt_len": PROMPT_TOKENS,
        "new_tokens": NEW_TOKENS,
        "sample_s": warm["sample_s"],
        "verify_s": warm["verify_s"],
        "update_s": warm["update_s"],
        "step_s": warm["step_s"],
        "sample_tokens_per_s": rows * NEW_TOKENS / warm["sample_s"],
        "update_tokens_per_s": rows * NEW_TOKENS / warm["update_s"],
        "compile_s": first - warm["step_s"],
        "peak_rss_mb": peak,
        "sample_floor_s": sampling,
        "update_floor_s": updating,
        "floor_s": sampling + updating,
        "times_floor": warm["step_s"] / (sampling + updating),
    }


def _measure_update(size: str, micro_batches: int) -> dict[str, Any]:
    """Times of an update in pieces, with and without the reuse of its pass for old log-probs."""
    work = WORK[size]
    with tempfile.TemporaryDirectory() as folder:
        run = _prepared(work, folder, "clip_cov", micro_batches)
        taken = take_step(run, run.initial_state(), 0)
        state, rollouts = taken.state, taken.batch.rollouts
        key = run.key("objective", 0, 0)

        def update(fresh):
            nonlocal state
            scored = rollouts
            if not fresh:
                old = run.programs.score(run.policy_params(state), rollouts)
                scored = dataclasses.replace(rollouts, **jax.device_get(old))
            state, metrics, _ = run.programs.update(state, scored, key, fresh)
            jax.block_until_ready(metrics)

        reused, scored = (_median(partial(update, f), work.steps) for f in (True, False))
    return {
        "size": size,
        "micro_batches": micro_batches,
        "update_s": reused,
        "scored_first_s": scored,
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _prepared(work: Work, folder: str, method: str = "grpo", micro_batches: int = 0) -> Run:
    """The run whose steps are timed; its random policy is written into `folder`."""
    words = {_word(number): number for number in range(work.model.vocab_size)}
    plain = Tokenizer(WordLevel(words, unk_token=_word(0)))
    plain.pre_tokenizer = WhitespaceSplit()
    model = policy.Model(work.model)
    params = jax.jit(model.init)(jax.random.key(0))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=plain, eos_token=_word(0))
    policy.save(folder, model, params, tokenizer)
    config = TrainConfig(
        method=method,
        task="bench",
        model=folder,
        run_dir=Path(folder) / "run",
        prompts_per_step=work.prompts,
        samples_per_prompt=SAMPLES,
        micro_batches=micro_batches,
        learning_rate=1e-5,
        warmup_updates=0,
    )
    hyperparameters = {"kl_coefficient": 0.0} if method == "grpo" else {}
    recipe = methods.recipe(method, **hyperparameters)
    run = make_run(config, _task(work), recipe, folder)
    sampler = dataclasses.replace(run.start.sampler, stop_tokens=())
    return dataclasses.replace(run, start=dataclasses.replace(run.start, sampler=sampler))


def _task(work: Work) -> Task:
    """Prompts of random tokens, and even token ids as the reward."""
    random = np.random.default_rng(0)
    numbers = random.integers(0, work.model.vocab_size, (work.prompts * 16, PROMPT_TOKENS))
    prompts = [Prompt(" ".join(map(_word, row))) for row in numbers.tolist()]

    def share_of_even_ids(prompt, response):
        del prompt
        ids = [int(word[1:]) for word in response.text.split()]
        return sum(number % 2 == 0 for number in ids) / len(ids)

    verify = graded_one_by_one(share_of_even_ids)
    return Task("bench", prompts[:-1], prompts[-1:], verify, NEW_TOKENS)


def _word(number: int) -> str:
    """Token `number` as text; none is part of another, as the special token may not be."""
    return f"w{number}"


def _floor(work: Work) -> tuple[float, float]:
    """Seconds that sampling and the update take at the machine's measured speeds."""
    rate, bandwidth = _matmul_rate(), _bandwidth()
    config, rows = work.model, work.prompts * SAMPLES
    unembedding = config.vocab_size * config.width
    queries, keys = (n * config.head_size for n in (config.num_heads, config.num_kv_heads))
    layer = config.width * (2 * queries + 2 * keys + 3 * config.mlp_width)
    layers = config.num_layers * layer
    length = PROMPT_TOKENS + NEW_TOKENS

    def attention(seen):
        """FLOPs of one token's scores and values over `seen` positions, all layers."""
        return 4 * config.num_layers * queries * seen

    prefill = work.prompts * PROMPT_TOKENS * (2 * layers + attention(PROMPT_TOKENS / 2)) / rate
    token = 2 * (layers + unembedding) + attention(PROMPT_TOKENS + NEW_TOKENS / 2)
    decode = NEW_TOKENS * max(rows * token / rate, 4 * (layers + unembedding) / bandwidth)
    forward = rows * length * (2 * layers + attention(length / 2))
    forward += rows * NEW_TOKENS * 2 * unembedding
    # Adam reads a gradient, a parameter and two moments, and writes three of them.
    update = 3 * forward / rate + 7 * 4 * (layers + unembedding) / bandwidth
    return prefill + decode, update


def _matmul_rate(size: int = 4096) -> float:
    """FLOP/s of a large float32 matrix product."""
    x = jnp.ones((size, size), jnp.float32)
    return 2 * size**3 / _best(jax.jit(lambda x: x @ x), x)


def _bandwidth(size: int = 2**26) -> float:
    """Bytes/s that are read and written by adding to a large array in its place."""
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
    return float(np.median([_seconds(function) for _ in range(repeats)]))


def _seconds(function: Callable[[], Any]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def _table(rows: Sequence[dict[str, Any]]) -> Table:
    """The rows as columns, one per size or number of micro-batches."""
    table = Table()
    heads = [
        f"{row['size']}, {row['micro_batches']}" if "micro_batches" in row else row["size"]
        for row in rows
    ]
    for head in ("", *heads):
        table.add_column(head, justify="right")
    for name in [name for name in rows[0] if name not in ("size", "micro_batches")]:
        table.add_row(
            name, *(f"{row[name]:,.3g}" if row[name] < 100 else f"{row[name]:,.0f}" for row in rows)
        )
    return table


if __name__ == "__main__":
    guarded(main)
