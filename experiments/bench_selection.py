"""Time of selections over a batch: covariance, selections made from it, a quantile.

    python -m experiments.bench_selection
    python -m experiments.bench_selection --rows 128 --tokens 1024 --repeats 9 --json

Every operation is timed next to a plain version: means of floats, and a sort of the whole batch.
Programs take turns in every round, so other load slows all of them. `processor` is the least
processor time over the rounds, of all threads, in milliseconds; other programs affect it less.
`to_plain` is the median over rounds of its ratio. Three quarters of the tokens are on the mask, and
0.2 % of these are selected. For TPUs see `experiments.selection_schedule`.
"""

import argparse
import contextlib
import json
import statistics
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from rich.console import Console

from rlvr_jax.experiments.bench_kernels import PROCESSOR, WALL, filled, ratio, timed_rounds
from rlvr_jax.kernels import selection

_CHOSEN = 0.002  # fraction of the tokens on the mask
_QUANTILE = 0.8

Values = Float[Array, "B T"]
_Mask = Bool[Array, "B T"]


def _plain_covariance(advantage: Values, logp: Values, mask: _Mask) -> Values:
    """With sums of floats."""
    count = jnp.sum(mask, dtype=jnp.int32).astype(logp.dtype)
    left, right = (x - jnp.sum(jnp.where(mask, x, 0)) / count for x in (advantage, logp))
    return jnp.where(mask, left * right, 0)


def _sorted_top_k(values: Values, eligible: _Mask, k: int | Int[Array, ""]) -> _Mask:
    """The k largest of a stable sort; ties go by place in the array."""
    order = jnp.argsort(jnp.where(eligible, -values, jnp.inf).ravel(), stable=True)
    rank = jnp.zeros(order.shape, jnp.int32).at[order].set(jnp.arange(order.size, dtype=jnp.int32))
    return eligible & (rank.reshape(values.shape) < k)


def _sorted_quantile(values: Values, mask: _Mask) -> Float[Array, ""]:
    """With linear interpolation, from a sort."""
    ordered = jnp.sort(jnp.where(mask, values, jnp.inf).ravel())
    position = _QUANTILE * (jnp.sum(mask, dtype=jnp.int32) - 1).astype(values.dtype)
    below = jnp.floor(position)
    low, high = (ordered[below.astype(jnp.int32) + i] for i in (0, 1))
    return low + (position - below) * (high - low)


class _Inputs(NamedTuple):
    """What the contestants read; arrays are [B, T] and [B]."""

    advantage: Values
    logp: Values
    mask: _Mask
    k: jax.Array
    rollout_id: jax.Array
    key: jax.Array


PLAIN: dict[str, Callable[[_Inputs], Array]] = {
    "covariance": lambda x: _plain_covariance(x.advantage, x.logp, x.mask),
    "top_k": lambda x: _sorted_top_k(x.logp, x.mask, x.k),
    "top_covariance": lambda x: _sorted_top_k(
        _plain_covariance(x.advantage, x.logp, x.mask), x.mask, x.k
    ),
    "random_subset": lambda x: _sorted_top_k(
        jax.random.uniform(x.key, x.mask.shape, jnp.float32), x.mask, x.k
    ),
    "quantile": lambda x: _sorted_quantile(x.logp, x.mask),
}
ARGUMENTS: dict[str, Callable[[_Inputs], tuple[Any, ...]]] = {
    "covariance": lambda x: (x.advantage, x.logp, x.mask),
    "top_k": lambda x: (x.logp, x.mask, x.k, x.rollout_id),
    "top_covariance": lambda x: (x.advantage, x.logp, x.mask, x.k, x.rollout_id),
    "random_subset": lambda x: (x.mask, x.k, x.key, x.rollout_id),
    "quantile": lambda x: (x.logp, x.mask, _QUANTILE),
}


def ours(name: str, implementation: str) -> Callable[[_Inputs], jax.Array]:
    """An operation as a function to be timed."""
    operation = partial(getattr(selection, name), implementation=implementation)
    return lambda inputs: operation(*ARGUMENTS[name](inputs))


def random_inputs(rows: int, tokens: int) -> _Inputs:
    """Arrays of float32, a row of advantages being one number."""
    random = np.random.default_rng(0)
    length = random.integers(tokens // 2, tokens + 1, rows)
    mask = np.arange(tokens) < length[:, None]
    advantage = np.repeat(random.normal(size=(rows, 1)), tokens, axis=1).astype(np.float32)
    logp = -random.exponential(size=mask.shape).astype(np.float32)
    k = np.int32(max(_CHOSEN * mask.sum(), 1))
    arrays = advantage, logp, mask, k, np.arange(rows, dtype=np.int32)
    return _Inputs(*map(jnp.asarray, arrays), jax.random.key(0))


def measure(rows: int, tokens: int, repeats: int) -> list[dict[str, Any]]:
    """Rows of the table, of what runs here."""
    inputs = random_inputs(rows, tokens)
    functions = {(name, "plain"): function for name, function in PLAIN.items()}
    for name in ARGUMENTS:
        functions |= {(name, form): ours(name, form) for form in selection.IMPLEMENTATIONS}
    programs = {}
    for place, function in functions.items():
        # A kernel that cannot run here says so with a ValueError.
        with contextlib.suppress(ValueError):
            programs[place] = jax.jit(function).lower(inputs).compile()
    rounds = timed_rounds(programs, (inputs,), repeats)
    return [
        {
            "operation": name,
            "implementation": form,
            "milliseconds": 1e3 * statistics.median(times[WALL] for times in rounds[name, form]),
            "processor": 1e3 * min(times[PROCESSOR] for times in rounds[name, form]),
            "to_plain": ratio(rounds, (name, form), (name, "plain"), PROCESSOR),
            "temporary_mib": program.memory_analysis().temp_size_in_bytes / 2**20,
        }
        for (name, form), program in sorted(programs.items())
    ]


def main(arguments: Iterable[str] | None = None) -> None:
    """Prints the table, or its rows as one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--rows", type=int, default=512, help="number of responses of the batch (512)"
    )
    parser.add_argument(
        "--tokens", type=int, default=2048, help="number of tokens of a response (2048)"
    )
    parser.add_argument("--repeats", type=int, default=5, help="rounds (5)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    device = jax.devices()[0].device_kind
    rows = measure(options.rows, options.tokens, options.repeats)
    if options.json:
        print(json.dumps({"device": device, "programs": rows}, indent=1))
        return
    Console().print(filled(f"{options.rows} x {options.tokens} tokens, {device}", rows))


if __name__ == "__main__":
    main()
