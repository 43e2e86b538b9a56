"""The server of an engine as a process of the run."""

import contextlib
import os
import shlex
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rlvr_jax.connections import address_parts
from rlvr_jax.rollout.engines.engine import EngineError

_PAUSE = 0.2
"""Time between two looks whether the server answers (seconds)."""

_GRACE = 10.0
"""Time that a server has to end before it is killed (seconds)."""


@contextlib.contextmanager
def started(command: str, address: str, seconds: float) -> Iterator[None]:
    """Runs the command of a server for as long as the context lasts.

    Args:
      command: words as in a shell, without its other rules; NAME=value may come first.
      address: of the server, which accepts connections when it is ready.
      seconds: longest time until then (seconds).
    Raises:
      ValueError: the command cannot be run.
      EngineError: the server ends, or does not answer in time; with the end of its output.
    """
    words = shlex.split(command)
    own = {}
    while words and "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        own[name] = value
    with tempfile.NamedTemporaryFile(prefix="engine_", suffix=".log") as log:
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | own,
                start_new_session=True,
            )
        except (OSError, IndexError) as error:
            raise ValueError(
                f"--engine-command must be a command that can be run, got {command!r} ({error})"
            ) from error
        try:
            _wait(process, address, seconds, Path(log.name))
            yield
        finally:
            _end(process)


def _wait(process: subprocess.Popen, address: str, seconds: float, log: Path) -> None:
    parts, until = address_parts(address), time.monotonic() + seconds
    if parts is None:
        raise ValueError(f"--engine-address must be like http://127.0.0.1:8000, got {address!r}")
    while process.poll() is None and time.monotonic() < until:
        place = parts.hostname, parts.port
        with contextlib.suppress(OSError), socket.create_connection(place, 1):
            return
        time.sleep(_PAUSE)
    how = f"is not ready within {seconds:g} s (--engine-seconds)"
    if process.poll() is not None:
        how = f"ended with exit code {process.returncode}"
    told = " | ".join(log.read_text(errors="replace").split("\n")[-4:]).strip(" |")
    raise EngineError(
        f"the server of --engine-command must accept connections at {address}, but it"
        f" {how}: {told[-500:] or 'no output'}"
    )


def _end(process: subprocess.Popen) -> None:
    """Ends the server and its children."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
