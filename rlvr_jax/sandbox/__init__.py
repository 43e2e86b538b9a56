"""The sandbox: runs untrusted programs without access to files, network and other processes.

    with Sandbox(workers=2) as sandbox:
        outcome = sandbox.run("print(int(input()) + 1)", stdin="41")

`shared` is the sandbox of all callers with equal limits. `python -m rlvr_jax.sandbox` prints the
layers that this machine has. The subpackage needs Linux and the standard library.

  `client` has `Sandbox`, the caller's side, with a `connection` to each server. `limits` has
    `Limits` and `Outcome`. `task` is the task of a program.
  `jobs` calls trusted functions with hostile values, for `verifiers.WorkerPool`.
  `server` is the process that forks programs and watches them. `layers` are its layers. `inside`
    covers the time from the fork to the program, which `script` runs if it is Python.
  `root`, `rights`, `landlock`, `seccomp` (with `syscalls`) and `cgroup` have one layer each.
  `linux`
    has the calls that Python lacks.
  `interpreter` lists the files that a Python program reads. `folder` is its work folder. `watch`
    inspects its processes. The commands `soak` and `timing` test and measure, with `programs`.
"""

from rlvr_jax.sandbox.client import Sandbox, allow_unsafe_local, shared
from rlvr_jax.sandbox.limits import Limits, Outcome

__all__ = ["Limits", "Outcome", "Sandbox", "allow_unsafe_local", "shared"]
