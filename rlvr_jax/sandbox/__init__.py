"""The sandbox: untrusted programs run, and nothing of theirs gets out.

    with Sandbox(workers=2) as sandbox:
        outcome = sandbox.run("print(int(input()) + 1)", stdin="41")

`shared` is the sandbox of all callers with equal limits. `python -m rlvr_jax.sandbox` prints the
layers that this machine has. The subpackage needs Linux and the standard library.

  `client`: `Sandbox`, the caller's side, with a `connection` to each server; `limits`: `Limits` and
    `Outcome`; `task`: the task of a program.
  `jobs`: trusted functions that are called with hostile values, for `verifiers.WorkerPool`.
  `server`: the process that forks programs and watches them; `layers`: those that it has;
    `inside`: from the fork to the program, which `script` runs if it is Python.
  `root`, `rights`, `landlock`, `seccomp` (with `syscalls`), `cgroup`: one layer each; `linux`: the
    calls that Python lacks.
  `interpreter`: files that a Python program reads; `folder`: its work folder; `watch`: its
    processes.
  `soak`, `timing`: commands that try it for long and measure it, with `programs` to try.
"""

from rlvr_jax.sandbox.client import Sandbox, allow_unsafe_local, shared
from rlvr_jax.sandbox.limits import Limits, Outcome

__all__ = ["Limits", "Outcome", "Sandbox", "allow_unsafe_local", "shared"]
