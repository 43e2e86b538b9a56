"""The frame of every command: connects processes, and prints an error in one sentence."""

import contextlib
import errno
import os
import re
import shutil
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

import jax

from rlvr_jax import parallel
from rlvr_jax.pipes import quiet_pipe
from rlvr_jax.runs.command import RunsFailed
from rlvr_jax.runs.loop import Stopped
from rlvr_jax.tools.slips import own_place, sentence
from rlvr_jax.training.memory import lacks_memory


def guarded(main: Callable[[Sequence[str]], None], join: bool = True) -> None:
    """Runs a command. It prints errors that a user can fix in one sentence, without a traceback.

    The processes of a job are connected, and only the first one prints.

    Args:
      join: False for a command that starts processes on one host and leaves the devices to them: a
        process that connects to others uses its TPU.
    """
    try:
        if join:
            parallel.start()
        else:
            parallel.check_alone()
        with contextlib.ExitStack() as silenced:
            if jax.distributed.is_initialized() and not parallel.is_first():
                nothing = silenced.enter_context(Path(os.devnull).open("w"))
                silenced.enter_context(contextlib.redirect_stdout(nothing))
            with quiet_pipe():
                sys.argv[0] = _called()
                # A shell leaves `--run-dir=~/runs` as it is.
                main([re.sub(r"^(--[\w-]+=)~(?=/|$)", _at_home, each) for each in sys.argv[1:]])
    except (ValueError, FloatingPointError, RunsFailed) as error:
        _end(sentence(error), error)
    except Stopped as stopped:
        print(f"{stopped}; continue with --resume", file=sys.stderr)
        sys.exit(130)
    except KeyboardInterrupt:
        print("stopped; finished steps are saved up to the last checkpoint", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            _end(_full(error), error)
        if lacks_memory(error):  # and not even the reserve was enough
            _end("memory ran out; finished steps are saved up to the last checkpoint", error)
        if own_place(error) is None:  # an error of the library, which the traceback locates
            raise
        _end(sentence(error), error)


def _full(error: OSError) -> str:
    """A message with the folder of the full disk."""
    place = Path(error.filename or ".")
    there = next((p for p in (place, *place.parents) if p.is_dir()), Path())
    free = shutil.disk_usage(there).free // 2**20
    where = f" at {error.filename}" if error.filename else ""
    return f"the disk is full{where} ({free} MiB free); free space and use --resume"


def _end(message: str, error: Exception) -> NoReturn:
    """Ends in one sentence; with --verbose the traceback is printed before it."""
    if "--verbose" in sys.argv:
        traceback.print_exception(error)
    notes = [note for note in getattr(error, "__notes__", ()) if "JAX has removed" not in note]
    sys.exit("\n".join([f"error: {message}", *notes]))


def _at_home(option: re.Match[str]) -> str:
    return f"{option[1]}{Path.home()}"


def _called() -> str:
    """The command as it was typed, for its usage line."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is None:
        return sys.argv[0]
    return f"python -m {spec.name}".replace("rlvr_jax.experiments.", "rlvr_jax ")
