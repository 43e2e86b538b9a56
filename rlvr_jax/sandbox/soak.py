"""Runs hostile and honest programs together for a chosen time.

    python -m rlvr_jax.sandbox.soak --minutes 10

Prints the number of programs, their rate, and faults: hangs, honest programs that failed, and
hostile ones that escaped. Leftover processes, descriptors, mounts and folders are also faults.
The exit code is 0 without faults.
"""

import argparse
import contextlib
import os
import random
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rlvr_jax.sandbox.client import Sandbox
from rlvr_jax.sandbox.limits import Limits
from rlvr_jax.sandbox.programs import ESCAPED, HONEST, HOSTILE
from rlvr_jax.sandbox.watch import descendants

# Small, because hostile programs reach them and eight of them must fit on two cores.
_LIMITS = Limits(wall_seconds=6.0, cpu_seconds=1.0, memory_mb=256, processes=12, disk_mb=16)
_LATE = 5.0  # seconds beyond the wall limit that count as a hang, on a busy machine
_HOSTILE_FRACTION = 0.25
_SETTLE = 2.0  # seconds for the kernel to remove ended processes


def soak(seconds: float, at_once: int) -> Counter[str]:
    """Runs programs for a while and counts them.

    Returns:
      `honest` and `hostile`: programs that ran. `failed`: honest programs that failed. `escaped`:
      hostile ones. `hung`, `lost`. Left over: `processes`, `descriptors`, `mounts`, `folders`.
    """
    found: Counter[str] = Counter()
    lock = threading.Lock()
    before = _left()
    end = time.monotonic() + seconds
    with socket.create_server(("127.0.0.1", 0)) as listener:
        arguments = [str(os.getpid()), str(listener.getsockname()[1])]

        def work(sandbox: Sandbox, seed: int) -> None:
            choice = random.Random(seed)
            while time.monotonic() < end:
                hostile = choice.random() < _HOSTILE_FRACTION
                program = choice.choice(HOSTILE if hostile else HONEST)
                start = time.monotonic()
                outcome = sandbox.run(program.source, program.stdin, arguments)
                late = time.monotonic() - start > _LIMITS.wall_seconds + _LATE
                escaped = hostile and ESCAPED in outcome.stdout
                right = hostile or (outcome.status, outcome.stdout) == (0, program.stdout)
                with lock:
                    found["hostile" if hostile else "honest"] += 1
                    found["hung"] += late
                    found["lost"] += outcome.reason == "lost"
                    found["escaped"] += escaped
                    found["failed"] += not right
                if escaped or not right:
                    print(f"{program.name}: {outcome}"[:500], file=sys.stderr)

        with Sandbox(_LIMITS, workers=at_once) as sandbox, ThreadPoolExecutor(at_once) as pool:
            for future in [pool.submit(work, sandbox, seed) for seed in range(at_once)]:
                future.result()
    time.sleep(_SETTLE)
    after = _left()
    found.update({name: max(after[name] - before[name], 0) for name in after})
    return found


def _left() -> dict[str, int]:
    """Counts of leftovers of sandboxes on this machine."""
    folders = list(Path(tempfile.gettempdir()).glob("rlvr_jax_sandbox_*"))
    for hierarchy in ("memory", "unified", "."):
        with contextlib.suppress(OSError):
            folders += Path("/sys/fs/cgroup", hierarchy).rglob("rlvr_jax_sandbox_*")
    return {
        "processes": len(descendants(os.getpid())),
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "mounts": len(Path("/proc/self/mountinfo").read_text().splitlines()),
        "folders": len(folders),
    }


def main() -> int:
    """Prints the counts; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--at-once", type=int, default=8)
    arguments = parser.parse_args()
    start = time.monotonic()
    found = soak(60 * arguments.minutes, arguments.at_once)
    seconds = time.monotonic() - start
    ran = found.pop("honest"), found.pop("hostile")
    print(f"{ran[0]} honest and {ran[1]} hostile programs in {seconds:.0f} s,", end=" ")
    print(f"{sum(ran) / seconds:.1f} a second, {arguments.at_once} at a time")
    print(", ".join(f"{count} {name}" for name, count in sorted(found.items())))
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
