"""The task of a program: checked, and stored behind handles that cannot change."""

import fcntl
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from rlvr_jax.sandbox.inside import MAIN

_SHOWN = 80  # characters of a value that an error shows


def written(
    *,
    stdin: str,
    files: Mapping[str, str],
    source: str | None = None,
    argv: Sequence[str] = (),
    command: Sequence[str] = (),
) -> tuple[bytes, bytes]:
    """The bytes of a program's task, and of its standard input. Raises ValueError if a value is not
    text, or a file is not below the folder.

    Args:
      stdin: standard input of the program.
      files: texts by path below the work folder.
      source: Python program; None: `command` is run.
      argv: arguments of the program.
      command: program and arguments, if `source` is None.
    """
    task = {"files": {}, "argv": _words("argv", argv), "command": _words("command", command)}
    if source is None and not task["command"]:
        raise ValueError(f"sandbox: command must name a program, got {command!r}")
    for name, text in files.items():
        path = PurePosixPath(_text("files", name))
        parts = path.parts
        if not parts or path.is_absolute() or ".." in parts or "\0" in str(path):
            raise ValueError(f"sandbox: files must be named below the folder, got {name!r}")
        if source is not None and str(path) == MAIN:
            raise ValueError(f"sandbox: files must not hold the program itself, got {name!r}")
        task["files"][str(path)] = _text(f"files[{name!r}]", text)
    if source is not None:
        task["files"][MAIN] = _text("source", source)
    return json.dumps(task).encode(), _text("stdin", stdin).encode()


def sealed(content: bytes) -> int:
    """A handle that reads the content from its beginning and cannot change it."""
    if not hasattr(os, "memfd_create"):
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            return os.open(file.name, os.O_RDONLY)
    handle = os.memfd_create("task", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with open(handle, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(handle, 0, os.SEEK_SET)
    seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
    fcntl.fcntl(handle, fcntl.F_ADD_SEALS, seals)
    return handle


def _words(name: str, words: Sequence[str]) -> list[str]:
    if isinstance(words, str | bytes):
        raise ValueError(f"sandbox: {name} must be a sequence of texts, got {words[:_SHOWN]!r}")
    found = [_text(f"{name}[{at}]", word) for at, word in enumerate(words)]
    for at, word in enumerate(found):
        if "\0" in word:
            raise ValueError(f"sandbox: {name}[{at}] must not hold a NUL, got {word[:_SHOWN]!r}")
    return found


def _text(name: str, value: str | bytes) -> str:
    """A text, also from bytes that are UTF-8."""
    try:
        if isinstance(value, bytes):
            return value.decode("utf-8")
        if isinstance(value, str):
            value.encode("utf-8")
            return value
    except UnicodeError:
        pass
    raise ValueError(f"sandbox: {name} must be text (UTF-8), got {repr(value)[:_SHOWN]}")
