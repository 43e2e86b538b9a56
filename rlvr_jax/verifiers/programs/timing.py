"""How many programs are graded in a second: `python -m rlvr_jax.verifiers.programs.timing`.

A right program and one that never ends, for each kind of test, several at a time.
"""

import argparse
import os
import time
from concurrent.futures import ThreadPoolExecutor

from rlvr_jax.verifiers.programs.code import check

_FUNCTION = "def add(a, b):\n    return a + b\n"
_CALLS = [{"kind": "call", "function": "add", "args": [1, n], "value": 1 + n} for n in range(8)]
_LOOP = "for n in range(8):\n    assert add(1, n) == 1 + n"
_ASSERTS = [{"kind": "assert", "code": f"assert add(1, {n}) == {1 + n}"} for n in range(8)]
_CASES = {
    "io, 1 test": ("print(int(input()) + 1)", [{"kind": "io", "in": "2\n", "out": "3\n"}]),
    "call, 1 test": (_FUNCTION, _CALLS[:1]),
    "call, 8 tests": (_FUNCTION, _CALLS),
    "assert, 1 test of 8": (_FUNCTION, [{"kind": "assert", "code": _LOOP}]),
    "assert, 8 tests": (_FUNCTION, _ASSERTS),
}
_ENDLESS = "while True: pass"


def main() -> None:
    """Prints a line for each kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--grades", type=int, default=200, help="of each kind")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    given = parser.parse_args()
    with ThreadPoolExecutor(given.threads) as executor:
        list(executor.map(lambda _: check(*_CASES["io, 1 test"]), range(given.threads)))  # start
        for name, (program, tests) in _CASES.items():
            start = time.perf_counter()
            found = list(
                executor.map(lambda _, p=program, t=tests: check(p, t), range(given.grades))
            )
            seconds = time.perf_counter() - start
            right = sum(finding.value == 1 for finding in found)
            print(f"{name:20} {given.grades / seconds:7.1f} grades a second, {right} right")
    start = time.perf_counter()
    check(_ENDLESS, _CASES["io, 1 test"][1])
    print(f"{'an endless program':20} {time.perf_counter() - start:7.1f} seconds")


if __name__ == "__main__":
    main()
