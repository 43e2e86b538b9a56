"""Measures the cost of a run in the sandbox: `python -m experiments.bench_sandbox`.

An empty program runs in a warm sandbox and in a bare interpreter (`-I -S`). They take turns, so
other load of the machine slows both.
"""

import argparse
import statistics
import subprocess
import time
from collections.abc import Callable

from rlvr_jax.sandbox.client import Sandbox
from rlvr_jax.sandbox.interpreter import resolved


def measured(rounds: int) -> dict[str, list[float]]:
    """Seconds of every round, for the sandbox and the bare interpreter."""
    bare = [resolved(), "-I", "-S", "-c", "pass"]
    with Sandbox() as sandbox:
        ways: dict[str, Callable[[], object]] = {
            "warm sandbox": lambda: sandbox.run("pass"),
            "bare interpreter": lambda: subprocess.run(bare, capture_output=True, check=True),
        }
        for way in ways.values():
            way()
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, way in ways.items():
                start = time.perf_counter()
                way()
                seconds[name].append(time.perf_counter() - start)
    return seconds


def main() -> None:
    """Prints the medians, the least and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200, help="number of runs of each (200)")
    seconds = measured(parser.parse_args().rounds)
    for name, values in seconds.items():
        median, least = statistics.median(values), min(values)
        print(f"{name:18} {1e3 * median:6.1f} ms median, {1e3 * least:6.1f} ms least")
    warm, bare = seconds.values()
    ratios = sorted(a / b for a, b in zip(warm, bare, strict=True))
    print(
        f"ratio of medians {statistics.median(warm) / statistics.median(bare):.2f},"
        f" of the least {min(warm) / min(bare):.2f}, median ratio {statistics.median(ratios):.2f}"
    )


if __name__ == "__main__":
    main()
