"""Time and memory of `token_stats` next to naive implementations.

    python -m experiments.bench_kernels
    python -m experiments.bench_kernels --shapes 4096x512x8192 --dtypes bfloat16 --repeats 5 --json
    python -m experiments.bench_kernels --shapes 2048x896x151936 --programs naive xla

For each shape (tokens x width x vocabulary) and dtype it times, in turns, so that other load slows
all of them:

  - one product of the hidden states and the unembedding
  - the naive version: float32 logits, log_softmax, autodiff
  - optax's cross entropy (log-prob only)
  - every implementation of `token_stats` that runs here

A ratio is the median over rounds of two times of one round. The roofline bound is 2·N·D·V
operations forward and 6·N·D·V more backward (a recomputation, two products), at the rate of that
one product. Memory is that of the compiler besides arguments and results. `xla nucleus` is the
entropy of the nucleus, which naive does not have. `processor_to_naive` compares the processor time
of all threads, which depends less on other load; it is not meaningful on an accelerator.

A second table has the fraction of the time if only some tokens count. If `libtpu` is installed, a
third table has the TPU kernel compiled ahead of time, which needs no TPU and measures nothing:
temporary memory, the fraction of the matrix units' slots in use by the static schedule, and
milliseconds at the chip's peak and at that fraction (`tpu_schedule`). With `--programs` both tables
are omitted; `--chips` requests the third.
"""

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import optax
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int
from rich.console import Console
from rich.table import Table

from rlvr_jax.experiments.tpu_schedule import TOPOLOGIES
from rlvr_jax.kernels.token_stats import IMPLEMENTATIONS, token_stats

_SHAPES = ("4096x256x512", "4096x512x8192", "2048x896x151936")
_LITE = ("logp", "entropy")
_FULL = (*_LITE, "p_squared", "p_squared_logp")
WALL, PROCESSOR = 0, 1
FRACTIONS = (1.0, 0.5, 0.2, 0.1)
_CHIPS = ("v5e", "v5p", "v6e")
_TPU_SHAPES = ((8192, 3584, 152064), (8192, 896, 151936))  # of Qwen2.5 7B and 0.5B

_Hidden = Float[Array, "N D"]
_Unembedding = Float[Array, "V D"]
Targets = Int[Array, "N"]
_Statistics = tuple[Float[Array, "N"], ...]
_Contestant = Callable[[_Hidden, _Unembedding, Targets], _Statistics]
_Name = TypeVar("Name", bound=Hashable)
Seconds = tuple[float, float]
"""Wall and processor."""


def _wide_logits(hidden: _Hidden, unembedding: _Unembedding) -> Float[Array, "N V"]:
    return hidden.astype(jnp.float32) @ unembedding.astype(jnp.float32).T


def _own_logits(hidden: _Hidden, unembedding: _Unembedding) -> Float[Array, "N V"]:
    """Products in the operands' own dtype, summed in float32."""
    dimensions = (((1,), (1,)), ((), ()))
    return jax.lax.dot_general(hidden, unembedding, dimensions, preferred_element_type=jnp.float32)


def _from_logits(logits: Float[Array, "N V"], targets: Targets) -> tuple[Array, Array]:
    """Log-probs of the targets, [N], and of all entries, [N, V]."""
    logp = jax.nn.log_softmax(logits, axis=-1)
    return jnp.take_along_axis(logp, targets[:, None], axis=-1)[:, 0], logp


def naive(hidden: _Hidden, unembedding: _Unembedding, targets: Targets) -> _Statistics:
    """Log-prob and entropy from a full array of float32 logits."""
    target, logp = _from_logits(_wide_logits(hidden, unembedding), targets)
    return target, -jnp.sum(jnp.exp(logp) * logp, axis=-1)


def _naive_full(hidden: _Hidden, unembedding: _Unembedding, targets: Targets) -> _Statistics:
    """`naive`, with Σ p² and Σ p² log p."""
    target, logp = _from_logits(_wide_logits(hidden, unembedding), targets)
    p = jnp.exp(logp)
    entropy, *sums = (jnp.sum(x, axis=-1) for x in (p * logp, p * p, p * p * logp))
    return target, -entropy, *sums


def plain(hidden: _Hidden, unembedding: _Unembedding, targets: Targets) -> _Statistics:
    """`naive` with `_own_logits`: an accelerator's best without tiles."""
    target, logp = _from_logits(_own_logits(hidden, unembedding), targets)
    return target, -jnp.sum(jnp.exp(logp) * logp, axis=-1)


def _cross_entropy(hidden: _Hidden, unembedding: _Unembedding, targets: Targets) -> _Statistics:
    """optax's cross entropy: only the log-prob."""
    logits = _wide_logits(hidden, unembedding)
    return (-optax.softmax_cross_entropy_with_integer_labels(logits, targets),)


def product(hidden: _Hidden, unembedding: _Unembedding, targets: Targets) -> _Statistics:
    """One matrix product, reduced so that it is not stored for the caller."""
    del targets
    return (jnp.max(_own_logits(hidden, unembedding), axis=-1),)


def ours(implementation: str, needs: tuple[str, ...], **options: Any) -> _Contestant:
    """`token_stats` as a function to be timed."""

    def run(hidden, unembedding, targets):
        stats = token_stats(
            hidden, unembedding, targets, needs=needs, implementation=implementation, **options
        )
        return tuple(stats.get(need) for need in needs)

    return run


def _with_gradient(
    function: _Contestant,
) -> Callable[[_Hidden, _Unembedding, Targets], tuple[_Hidden, _Unembedding]]:
    """The function's gradients to hidden states and unembedding."""

    def run(hidden, unembedding, targets):
        def total(hidden, unembedding):
            return sum(jnp.sum(x) for x in function(hidden, unembedding, targets))

        return jax.grad(total, (0, 1))(hidden, unembedding)

    return run


def _make_inputs(
    shape: tuple[int, int, int], dtype: DTypeLike
) -> tuple[_Hidden, _Unembedding, Targets]:
    """Hidden states, an unembedding that gives logits of spread 1, and targets."""
    tokens, width, vocabulary = shape
    keys = jax.random.split(jax.random.key(0), 3)
    hidden = jax.random.normal(keys[0], (tokens, width), dtype)
    unembedding = jax.random.normal(keys[1], (vocabulary, width), dtype) / width**0.5
    return hidden, unembedding.astype(dtype), jax.random.randint(keys[2], (tokens,), 0, vocabulary)


def contestants() -> dict[str, tuple[_Contestant, str]]:
    """Functions to be timed, each with the naive version that computes the same."""
    table: dict[str, tuple[_Contestant, str]] = {
        "naive": (naive, "naive"),
        "naive full": (_naive_full, "naive full"),
        "plain": (plain, "naive"),
        "optax": (_cross_entropy, "naive"),
    }
    for name in IMPLEMENTATIONS:
        if name != "reference":
            table[name] = ours(name, _LITE), "naive"
            table[f"{name} full"] = ours(name, _FULL), "naive full"
    table["xla nucleus"] = ours("xla", ("nucleus_entropy",), top_p=0.9), "naive"
    return table


def timed_rounds(
    programs: Mapping[_Name, Callable[..., Any]], inputs: tuple[Any, ...], repeats: int
) -> dict[_Name, list[Seconds]]:
    """(Wall, processor) seconds of each program, round by round; programs take turns in a round."""
    rounds: dict[_Name, list[Seconds]] = {name: [] for name in programs}
    for program in programs.values():
        jax.block_until_ready(program(*inputs))
    for _ in range(repeats):
        for name, program in programs.items():
            begun = time.perf_counter(), time.process_time()
            jax.block_until_ready(program(*inputs))
            ended = time.perf_counter(), time.process_time()
            rounds[name].append((ended[0] - begun[0], ended[1] - begun[1]))
    return rounds


def ratio(
    rounds: Mapping[_Name, Sequence[Seconds]], name: _Name, beside: _Name, clock: int = WALL
) -> float | None:
    """Median over rounds of the time of one program over that of another, if both were run."""
    if beside not in rounds:
        return None
    pairs = zip(rounds[name], rounds[beside], strict=True)
    return statistics.median(mine[clock] / yours[clock] for mine, yours in pairs)


def measure(
    shape: tuple[int, int, int], dtype: DTypeLike, repeats: int, names: Collection[str] = ()
) -> list[dict[str, Any]]:
    """Rows of the first table for one shape and dtype, of the contestants `names` or all."""
    inputs = _make_inputs(shape, dtype)
    chosen = {name: entry for name, entry in contestants().items() if not names or name in names}
    functions: dict[tuple[str, str], Callable[..., Any]] = {("product", "forward"): product}
    for name, (function, _) in chosen.items():
        functions[name, "forward"] = function
        functions[name, "forward + backward"] = _with_gradient(function)
    about = {"shape": "x".join(map(str, shape)), "dtype": jnp.dtype(dtype).name}
    programs, rows = {}, []
    for key, function in functions.items():
        try:
            programs[key] = jax.jit(function).lower(*inputs).compile()
        except ValueError as error:  # an implementation that was named and cannot run here
            rows.append(
                about | dict(zip(("program", "pass"), key, strict=True), skipped=str(error))
            )
    rounds = timed_rounds(programs, inputs, repeats)
    operations = 2 * shape[0] * shape[1] * shape[2]
    for (name, which), program in programs.items():
        products = 1 if which == "forward" else 4
        to_product = ratio(rounds, (name, which), ("product", "forward"))
        beside = chosen[name][1] if name in chosen else "naive"
        median = statistics.median(wall for wall, _ in rounds[name, which])
        row = {
            "program": name,
            "pass": which,
            "seconds": median,
            "to_naive": ratio(rounds, (name, which), (beside, which)),
            "processor_to_naive": ratio(rounds, (name, which), (beside, which), PROCESSOR),
            "to_product": to_product,
            "floor_fraction": products / to_product,
            "gflops": products * operations / median / 1e9,
            "temporary_mib": program.memory_analysis().temp_size_in_bytes / 2**20,
        }
        rows.append(about | row)
    return rows


def selection(shape: tuple[int, int, int], dtype: DTypeLike, repeats: int) -> list[dict[str, Any]]:
    """Rows of the second table: time at each fraction of selected tokens over that of all."""
    inputs = _make_inputs(shape, dtype)
    chosen = jax.random.permutation(jax.random.key(1), shape[0])
    function = ours("xla", _LITE)
    forward, backward = {}, {}
    for fraction in FRACTIONS:
        mask = chosen < round(fraction * shape[0])
        forward[f"{fraction}"] = jax.jit(ours("xla", _LITE, mask=mask))
        weight = mask.astype(jnp.float32)
        # With linearization outside the timed call, only the backward pass is timed.
        pullback = jax.jit(jax.vjp(lambda h, w: function(h, w, inputs[2]), *inputs[:2])[1])
        backward[f"{fraction}"] = lambda *_, pull=pullback, c=weight: pull((c, c))
    rows = []
    for title, programs in (("masked forward", forward), ("backward alone", backward)):
        rounds = timed_rounds(programs, inputs, repeats)
        rows += [
            {
                "shape": "x".join(map(str, shape)),
                "dtype": jnp.dtype(dtype).name,
                "pass": title,
                "selected": float(fraction),
                "to_all": ratio(rounds, fraction, "1.0"),
                "processor_to_all": ratio(rounds, fraction, "1.0", PROCESSOR),
            }
            for fraction in programs
        ]
    return rows


def compiled(chips: Iterable[str]) -> list[dict[str, Any]]:
    """Rows of the third table: the result of `tpu_schedule` for each chip and shape, in bfloat16.

    A process per row, because libtpu reads the output folder when it is loaded.

    Raises:
      subprocess.CalledProcessError: a kernel does not compile.
    """
    rows = []
    for chip in chips:
        for shape in _TPU_SHAPES:
            sizes = zip(("--tokens", "--width", "--vocabulary"), map(str, shape), strict=True)
            options = [word for pair in sizes for word in pair]
            command = [sys.executable, "-m", "experiments.tpu_schedule", chip, *options]
            ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            rows.append(json.loads(ended.stdout))
    return rows


def main(arguments: Iterable[str] | None = None) -> None:
    """Prints the tables, or their rows as one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shapes", nargs="+", default=_SHAPES, help="tokens x width x vocabulary")
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"], help="of inputs")
    parser.add_argument(
        "--programs", nargs="+", default=(), help="names of the contestants to run (default: all)"
    )
    parser.add_argument("--repeats", type=int, default=3, help="rounds (3)")
    parser.add_argument(
        "--chips",
        nargs="*",
        choices=TOPOLOGIES,
        help=f"TPUs to compile for, with libtpu; {', '.join(_CHIPS)} if not given",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args(arguments)
    for name in options.programs:
        if name not in contestants():
            parser.error(
                f"argument --programs: must be of {', '.join(contestants())}, got {name!r}"
            )
    compiles = importlib.util.find_spec("libtpu") is not None
    if options.chips and not compiles:
        parser.error("argument --chips: needs libtpu (pip install libtpu==0.0.51)")
    if options.chips is None:
        options.chips = _CHIPS if compiles and not options.programs else ()
    found = {"device": jax.devices()[0].device_kind, "programs": [], "selection": [], "chips": []}
    for text in options.shapes:
        shape = tuple(int(size) for size in text.split("x"))
        if len(shape) != 3 or min(shape) < 1:
            parser.error(f"argument --shapes: must be tokens x width x vocabulary, got {text!r}")
        for dtype in options.dtypes:
            found["programs"] += measure(shape, jnp.dtype(dtype), options.repeats, options.programs)
            if not options.programs:
                found["selection"] += selection(shape, jnp.dtype(dtype), options.repeats)
    found["chips"] = compiled(options.chips)
    if options.json:
        print(json.dumps(found, indent=1))
        return
    # Narrower, the headings would be cut; what is piped has 80 columns.
    console = Console(width=max(Console().width, 120))
    console.print(f"device: {found['device']}")
    for rows in (found["programs"], found["selection"]):
        for shape, dtype in dict.fromkeys((row["shape"], row["dtype"]) for row in rows):
            console.print(_table(f"{shape} {dtype}", rows, shape, dtype))
    if found["chips"]:
        console.print(filled("compiled ahead of time, bfloat16", found["chips"]))
    for row in found["programs"]:
        if "skipped" in row:
            console.print(f"skipped: {row['program']}, {row['pass']}: {row['skipped']}")


def _table(title, rows, shape, dtype):
    """The rows of one shape and dtype that were measured."""
    mine = [row for row in rows if (row["shape"], row["dtype"]) == (shape, dtype)]
    mine = [row for row in mine if "skipped" not in row]
    return filled(
        title, [{k: v for k, v in row.items() if k not in ("shape", "dtype")} for row in mine]
    )


def filled(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """A table of rows, numbers to three digits, empty cells for None."""
    table = Table(*rows[0], title=title)
    for row in rows:
        table.add_row(*map(_cell, row.values()))
    return table


def _cell(value):
    if value is None:
        return ""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
