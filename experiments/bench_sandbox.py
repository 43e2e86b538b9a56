"""The cost of a run: `python -m experiments.bench_sandbox`.

An empty program in a warm sandbox and in a bare interpreter (`-I -S`), in turns, so that other load
of the machine meets both.
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
    parser.add_argument("--rounds", type=int, default=200)
    seconds = measured(parser.parse_args().rounds)
    for name, values in seconds.items():
        median, least = statistics.median(values), min(values)
        print(f"{name:18} {1e3 * median:6.1f} ms in the middle, {1e3 * least:6.1f} ms at best")
    warm, bare = seconds.values()
    ratios = sorted(a / b for a, b in zip(warm, bare, strict=True))
    print(
        f"ratio {statistics.median(warm) / statistics.median(bare):.2f} of the middles,"
        f" {min(warm) / min(bare):.2f} of the least, {statistics.median(ratios):.2f} in the middle"
    )


if __name__ == "__main__":
    main()
