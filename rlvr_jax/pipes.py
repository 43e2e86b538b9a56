"""Commands whose output goes to a reader that may leave: `python -m rlvr_jax.methods | head`."""

import contextlib
import os
import select
import sys
from collections.abc import Iterator

_LEFT = 141
"""Exit code of a program whose output has no reader: 128 plus the number of SIGPIPE."""


@contextlib.contextmanager
def quiet_pipe() -> Iterator[None]:
    """Ends the command silently once its output has no reader."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        if not _unread(sys.stdout.fileno()):
            raise  # another pipe, such as a worker's
        # Python flushes once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(_LEFT)


def _unread(descriptor: int) -> bool:
    """Whether the reader of a pipe is gone."""
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))
