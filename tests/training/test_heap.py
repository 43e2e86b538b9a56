"""Memory that a copy of the weights took goes back to the system."""

import subprocess
import sys

import pytest

# Blocks of 3 MiB, kept once the first freed ones have told the library that they come again.
PROGRAM = """
import resource
import numpy as np
from rlvr_jax.training.heap import trim_heap

def resident():
    pages = int(open("/proc/self/statm").read().split()[1])
    return pages * resource.getpagesize() / 2**20

before = resident()
for _ in range(2):
    blocks = [np.ones(3 * 2**20, np.uint8) for _ in range(100)]
    last = blocks[-1]
    full = resident()
    del blocks
kept = resident()
trim_heap()
print(full - before, kept - before, resident() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_freed_blocks_are_given_back():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    full, kept, left = map(float, done.stdout.split())
    assert full > 290
    assert kept > 150  # else there is nothing to give back, and nothing is tested
    assert left < 30
