"""Time and memory of each method's loss and gradient, relative to GRPO.

    python -m experiments.bench_objectives --methods clip_cov siren

Arrays are random, of 512 × 2048 tokens by default. A ratio is the median over repeats. Each repeat
divides the time of the method by that of GRPO just before it, so other load affects both.
"""

import argparse
import json
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.methods import names, recipe
from rlvr_jax.objectives.algebra.core import Objective
from rlvr_jax.objectives.algebra.parts import Spec
from rlvr_jax.types import STATISTICS, Rollouts, TokenStats
from rlvr_jax.types.rollouts import kind_and_axes

__all__ = ["main", "random_batch"]

BASELINE = "grpo"
GROUP_SIZE, PROMPT, OTHER = 8, 16, 4


def random_batch(
    objective: Objective, rows: int, tokens: int, seed: int = 0
) -> tuple[TokenStats, Rollouts]:
    """Arrays of float32 with everything an objective needs, three quarters of the tokens sampled.

    Args:
      rows: B, a multiple of 8, the group size.
      tokens: T.
    """
    random = np.random.default_rng(seed)
    length = random.integers(tokens // 2, tokens + 1, rows)
    options = dict(objective.options)
    sizes = {"B": rows, "T": tokens, "P": PROMPT, "k": int(options.get("top_k", OTHER))}
    sizes["K"] = sizes["k"]

    def values(name, kind, axes):
        shape = tuple(sizes.get(axis, OTHER) for axis in axes)
        if kind == "Bool":
            return random.random(shape) < 0.5
        if kind == "Int":
            return random.integers(0, OTHER, shape).astype(np.int32)
        if name.endswith("logp"):
            return -random.exponential(1.0, shape).astype(np.float32)
        return random.random(shape, np.float32)

    entries = [STATISTICS[name] for name in objective.reads & STATISTICS.keys()]
    stats = {entry.name: values(entry.name, entry.kind, entry.axes) for entry in entries}
    names = objective.reads - {*STATISTICS, "batch_statistics", "behaviour_logp", "sampled_entropy"}
    records = {name: values(name, *kind_and_axes(name)) for name in names}
    for name in {"step", "turn"} & records.keys():
        records[name] = np.broadcast_to(np.arange(tokens, dtype=np.int32) // 64, (rows, tokens))
    batch = Rollouts.of_responses(
        random.integers(0, 100, (rows, tokens)),
        np.arange(tokens)[None] < length[:, None],
        (random.random(rows) < 0.5).astype(np.float32),
        np.arange(rows) // GROUP_SIZE,
        old_logp=-random.exponential(1.0, (rows, tokens)).astype(np.float32),
        behaviour_logp=-random.exponential(1.0, (rows, tokens)).astype(np.float32),
        entropy=random.random((rows, tokens), np.float32),
        **records,
    )
    return jax.tree.map(jnp.asarray, TokenStats.of_arrays(stats)), batch


def _program(name: str, rows: int, tokens: int) -> tuple[Any, tuple, int]:
    """The compiled loss and gradient of a method, its arguments, and its temporary bytes."""
    objective = recipe(name).objective
    stats, batch = random_batch(objective, rows, tokens)
    state = objective.init(Spec(rows // GROUP_SIZE, rows, tokens))
    gradient = jax.value_and_grad(objective.loss, has_aux=True, allow_int=True)
    arguments = (stats, batch, state, jax.random.key(0))
    compiled = jax.jit(gradient).lower(*arguments).compile()
    return compiled, arguments, compiled.memory_analysis().temp_size_in_bytes


def _seconds(compiled: Any, arguments: tuple) -> float:
    started = time.perf_counter()
    jax.block_until_ready(compiled(*arguments))
    return time.perf_counter() - started


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.bench_objectives", description=__doc__
    )
    parser.add_argument("--methods", nargs="*", default=names(), help="all by default")
    parser.add_argument(
        "--rows", type=int, default=512, help="number of responses of the batch (512)"
    )
    parser.add_argument(
        "--tokens", type=int, default=2048, help="number of tokens of a response (2048)"
    )
    parser.add_argument(
        "--repeat", type=int, default=5, help="number of timed calls of each method (5)"
    )
    parser.add_argument("--json", action="store_true", help="one object per line")
    options = parser.parse_args(arguments)
    baseline, own, memory = _program(BASELINE, options.rows, options.tokens)
    _seconds(baseline, own)
    if not options.json:
        print(f"{jax.devices()[0].device_kind}, jax {jax.__version__}")
        print(f"{options.rows} × {options.tokens} tokens, float32, loss and gradient")
        print(f"{'method':26}{'ms':>8}{'× ' + BASELINE:>9}{'MiB':>8}{'× ' + BASELINE:>9}")
    for name in options.methods:
        compiled, theirs, temporary = _program(name, options.rows, options.tokens)
        _seconds(compiled, theirs)
        pairs = [
            (_seconds(baseline, own), _seconds(compiled, theirs)) for _ in range(options.repeat)
        ]
        row = {
            "method": name,
            "ms": 1e3 * float(np.median([mine for _, mine in pairs])),
            "time_ratio": float(np.median([mine / base for base, mine in pairs])),
            "mib": temporary / 2**20,
            "memory_ratio": temporary / memory,
        }
        if options.json:
            print(json.dumps(row), flush=True)
        else:
            print(
                f"{name:26}{row['ms']:8.1f}{row['time_ratio']:9.2f}{row['mib']:8.0f}"
                f"{row['memory_ratio']:9.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
