"""The dtype in which this machine multiplies matrices faster."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import jax

from rlvr_jax.parallel.processes import first_says, has_accelerator
from rlvr_jax.policy import products

Dtype = Literal["float32", "bfloat16"]
_LEAST_GAIN = 1.3
"""Chosen: a product must be faster by this factor, since a step also rounds and transposes."""
_ROWS, _WIDTH, _OUTPUTS = 512, 576, 1536
_REPEATS = 7


def faster_dtype() -> Dtype:
    """Returns the dtype of a run with `--compute-dtype auto`: bfloat16 on an accelerator.

    Only some CPUs have instructions for bfloat16. A CPU is measured once, in 0.9 s with compiling
    (two cores of an EPYC). The result stays in the cache of compiled functions, one file for each
    version of JAX. All processes of a job get that of the first one.
    """
    if has_accelerator():
        return "bfloat16"
    return "bfloat16" if first_says(_kept(_bfloat16_is_faster)) else "float32"


def _kept(measure: Callable[[], bool]) -> bool:
    """The result of an earlier process, or a new one."""
    folder = jax.config.values["jax_compilation_cache_dir"]
    if not folder:
        return measure()
    file = Path(folder) / f"bfloat16_is_faster-{jax.__version__}.txt"
    known = {"True": True, "False": False}
    if file.is_file() and (text := file.read_text()) in known:
        return known[text]
    found = measure()
    try:
        written = file.with_suffix(f".{os.getpid()}")
        written.write_text(str(found))
        written.replace(file)
    except OSError:  # a full disk: the next process measures again
        pass
    return found


def _bfloat16_is_faster() -> bool:
    return _seconds("float32") > _LEAST_GAIN * _seconds("bfloat16")


def _seconds(dtype: str) -> float:
    left, right = (
        jax.random.normal(jax.random.key(0), shape, dtype)
        for shape in ((_ROWS, _WIDTH), (_WIDTH, _OUTPUTS))
    )
    multiply = jax.jit(products.matmul, compiler_options=products.compiler_options(dtype))
    jax.block_until_ready(multiply(left, right))

    def once() -> float:
        started = time.perf_counter()
        jax.block_until_ready(multiply(left, right))
        return time.perf_counter() - started

    return min(once() for _ in range(_REPEATS))
