"""A run directory belongs to one job at a time."""

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from rlvr_jax import parallel

LOCK = ".lock"
"""Name of the lock file in a run directory; it is not a part of the run."""


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Makes a run directory and locks it against other jobs until the end.

    The operating system removes the lock with its process, so no stale lock remains. The first of
    several processes holds it for all. A directory that stays empty is removed.

    Raises:
      ValueError: another job has the directory, or it cannot be written; before anything is loaded.
    """
    file, made, error = None, False, ""
    if parallel.is_first():
        made = not directory.exists()
        try:
            directory.mkdir(parents=True, exist_ok=True)
            file = _held(directory / LOCK)
        except BlockingIOError:
            user = (directory / LOCK).read_text()
            error = f"--run-dir must be free, got {str(directory)!r}, which {user} is using"
        except OSError as problem:
            reason = problem.strerror or str(problem)
            error = f"--run-dir must be a directory to write in, got {str(directory)!r}: {reason}"
    refused = next(filter(None, parallel.gather(error)), "")
    try:
        if refused:
            raise ValueError(refused)
        yield
    finally:
        if file is not None:
            (directory / LOCK).unlink(missing_ok=True)
            file.close()
            if made and not any(directory.iterdir()):
                directory.rmdir()


def _held(path: Path) -> TextIO:
    """The lock file, locked and signed.

    Raises:
      BlockingIOError: another process has it.
    """
    while True:
        file = path.open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The earlier owner may have removed the file since it was opened.
            if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
                break
        except BaseException:
            file.close()
            raise
        file.close()
    file.truncate(0)
    file.write(f"process {os.getpid()} on {socket.gethostname()}")
    file.flush()
    return file
