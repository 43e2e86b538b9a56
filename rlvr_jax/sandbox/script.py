"""Runs a Python program in the interpreter that was forked for it, as if it were a new one."""

import _sitebuiltins
import atexit
import builtins
import contextlib
import gc
import os
import sys
import threading
import types
from typing import Any, NoReturn


def run(source: str, path: str) -> NoReturn:
    """Runs the source of a file like `python path`. Does not return."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = open(  # noqa: SIM115 - it lives as long as the process
            number,
            "w" if number else "r",
            buffering=1 if number == 2 else -1,
            encoding="utf-8",
            errors="backslashreplace" if number == 2 else "surrogateescape",
            closefd=False,
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    for name in ("exit", "quit"):  # defined by `site`, which is not imported
        setattr(builtins, name, _sitebuiltins.Quitter(name, "Ctrl-D (i.e. EOF)"))
    builtins.help = _sitebuiltins._Helper()
    for name in [name for name in sys.modules if name.partition(".")[0] == "rlvr_jax"]:
        del sys.modules[name]
    main = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=builtins, __file__=path)
    sys.modules["__main__"] = main
    gc.unfreeze()
    gc.enable()
    sys.setrecursionlimit(sys.getrecursionlimit() + _depth())
    status = 0
    try:
        exec(compile(source, path, "exec", dont_inherit=True), main.__dict__)
    except BaseException as error:
        status = _uncaught(error)
    os._exit(_finished(status, main.__dict__))


def _depth() -> int:
    """Number of frames below the program that a direct run would not have."""
    depth, frame = 0, sys._getframe(1)
    while frame := frame.f_back:
        depth += 1
    return depth + 1


def _uncaught(error: BaseException) -> int:
    """Reports an uncaught exception like the interpreter; returns the exit status."""
    if isinstance(error, SystemExit):
        if error.code is None or isinstance(error.code, int):
            return (error.code or 0) & 0xFF
        print(error.code, file=sys.stderr)
        return 1
    trace = error.__traceback__
    with contextlib.suppress(BaseException):
        error = error.with_traceback(trace and trace.tb_next)  # without our own frame
        sys.excepthook(type(error), error, error.__traceback__)
    return 1


def _finished(status: int, names: dict[str, Any]) -> int:
    """Waits for threads, runs exit handlers and flushes; returns the exit status."""
    try:
        vars(threading)["_shutdown"]()  # the interpreter's function, which no stub declares
        atexit._run_exitfuncs()
        for name in list(names):
            names[name] = None  # closes open files
        for stream in (sys.stdout, sys.__stdout__):
            if stream is not None and not stream.closed:
                stream.flush()
    except BaseException as error:
        with contextlib.suppress(BaseException):
            print(f"Exception ignored at the end: {error!r}", file=sys.stderr)
        return 120
    return status
