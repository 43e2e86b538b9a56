"""Disk cache of compiled functions, so that a second start does not compile them again."""

import hashlib
import os
import platform
from pathlib import Path

import jax

_SECONDS = 0.2
"""Functions that compile faster are not cached: reading them takes as long."""
_BYTES = 2**31
"""Size of the cache; the least recently used function goes first."""


def keep_programs() -> None:
    """Turns on JAX's disk cache of compiled functions. Call it before anything is compiled.

    JAX's environment variables (such as JAX_COMPILATION_CACHE_DIR) have priority, and
    JAX_ENABLE_COMPILATION_CACHE=false turns the cache off. An unwritable directory has no cache.
    """
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", _SECONDS)
    if os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        return
    directory = programs_directory()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _remove_halves(directory)
    except OSError:
        return
    if os.access(directory, os.W_OK):
        jax.config.update("jax_compilation_cache_dir", str(directory))
        jax.config.update("jax_compilation_cache_max_size", _BYTES)


def _remove_halves(directory: Path) -> None:
    """Removes programs that a killed process left without the time of their last use, at which JAX
    would stumble whenever it stores another one."""
    for path in directory.glob("*-cache"):
        if not path.with_name(path.name.removesuffix("-cache") + "-atime").exists():
            path.unlink(missing_ok=True)


def programs_directory() -> Path:
    """Directory of the user's cache for this kind of processor.

    Machines of several kinds can share a home directory. A function that was compiled for one of
    them can need instructions that another does not have, and JAX does not distinguish them.
    """
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    digest = hashlib.sha256(_processor().encode()).hexdigest()[:16]
    return Path(base) / "rlvr_jax" / f"programs-{digest}"


def _processor() -> str:
    """The instructions of this machine's processor, as far as the system lists them."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    wanted = ("flags", "Features", "cpu family", "model", "CPU part")
    found = [line for line in lines if line.partition(":")[0].strip() in wanted]
    return "\n".join([platform.machine(), platform.processor(), *dict.fromkeys(found)])
