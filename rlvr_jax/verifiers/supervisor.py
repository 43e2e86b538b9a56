"""The caller's handle on one supervisor process of a pool (see `pool`): start, wait, end."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from rlvr_jax.verifiers import worker

_START = 120.0  # seconds for the import of the function
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TMPDIR")  # of the environment


class Supervisor:
    """The caller's handle on one supervisor process."""

    def __init__(self, settings: dict[str, Any]):
        ours, theirs = socket.socketpair()
        self.owner: int = os.getpid()
        self.isolation: frozenset[str] | None = None
        self.channel: worker.Channel = worker.Channel(ours, limit=settings["reply_bytes"] + 1024)
        self.function: str = settings["function"]
        environment = {key: os.environ[key] for key in _PASSED_ON if key in os.environ}
        # The hash seed is fixed, as symbolic results may depend on the order of sets.
        environment |= {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
        with theirs:
            self.process: subprocess.Popen[bytes] = subprocess.Popen(
                [sys.executable, "-P", str(Path(worker.__file__).resolve())],
                stdin=theirs,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
                start_new_session=True,
            )
        ours.settimeout(_START)
        path = [str(Path(entry).absolute()) for entry in sys.path]
        with contextlib.suppress(OSError):
            self.channel.send(json.dumps({**settings, "path": path}).encode())

    def ready(self) -> frozenset[str]:
        """Waits for the imports; returns which kinds of isolation the system granted.

        Raises:
          OSError, EOFError: the process died or hangs.
          RuntimeError: the function cannot be imported.
        """
        if self.isolation is None:
            hello = json.loads(self.channel.receive())
            if "error" in hello:
                raise RuntimeError(
                    f"WorkerPool: function must be importable, got {self.function!r}:"
                    f" {hello['error']}"
                )
            self.isolation = frozenset(hello["isolation"])
            self.channel.socket.settimeout(worker.GRACE)
        return self.isolation

    def ended(self) -> bool:
        """Whether the process is gone after it was ready."""
        return self.isolation is not None and self.process.poll() is not None


def stop(supervisors: list[Supervisor]) -> None:
    """Ends supervisors: they kill their trees when their channel closes; else we do."""
    # A fork of the caller inherits the handles, and must not end processes that are not its own.
    ended = [supervisor for supervisor in supervisors if supervisor.owner == os.getpid()]
    for supervisor in ended:
        with contextlib.suppress(OSError):
            supervisor.channel.socket.shutdown(socket.SHUT_RDWR)
        if supervisor.isolation is None:  # still importing: it has no tree and does not listen
            supervisor.process.kill()
    for supervisor in ended:
        try:
            supervisor.process.wait(timeout=worker.GRACE)
        except subprocess.TimeoutExpired:
            for pid in [supervisor.process.pid, *worker.descendants(supervisor.process.pid)]:
                worker.kill(pid)
            supervisor.process.wait(timeout=worker.GRACE)
        supervisor.channel.socket.close()
