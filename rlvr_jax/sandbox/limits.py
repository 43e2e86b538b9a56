"""Limits of a program, and its outcome."""

from dataclasses import dataclass, fields
from pathlib import Path

_MOST, _MOST_SECONDS = 2**31 - 1, 1e6
_LEAST = {"memory_mb": 16, "processes": 1, "disk_mb": 1, "file_mb": 0, "open_files": 16}


@dataclass(frozen=True)
class Limits:
    """Limits of a program.

    Fields:
      wall_seconds: wall time from its start to its end.
      cpu_seconds: CPU time of all its processes together.
      memory_mb: of all its processes together, and of the address space of each beyond that of an
        interpreter at its start.
      processes: simultaneous processes and threads, itself included.
      disk_mb: size of its work folder, a file system in memory that is removed afterwards.
      file_mb: size of one file.
      open_files: file handles of one process.
      output_bytes: size of standard output, and of standard error.
      packages: installed Python packages that it may import, by import name. The standard library
        is always available.
      read: further files and folders that it may read and execute, as absolute paths.
    Raises:
      ValueError: a field is out of range, or a path does not exist.
    """

    wall_seconds: float = 4.0
    cpu_seconds: float = 3.0
    memory_mb: int = 512
    processes: int = 16
    disk_mb: int = 64
    file_mb: int = 16
    open_files: int = 64
    output_bytes: int = 2**20
    packages: tuple[str, ...] = ()
    read: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            if name in ("packages", "read"):
                texts = not isinstance(value, str) and all(isinstance(text, str) for text in value)
                _require(texts, name, "a tuple of names", value)
                object.__setattr__(self, name, tuple(value))
            elif name.endswith("seconds"):
                fits = type(value) in (int, float) and 0 < value < _MOST_SECONDS
                _require(fits, name, f"a number in (0, {_MOST_SECONDS:g})", value)
            else:
                least = _LEAST.get(name, 1)
                fits = type(value) is int and least <= value <= _MOST
                _require(fits, name, f"an integer from {least} to {_MOST}", value)
        for package in self.packages:
            _require(package.isidentifier(), "packages", "names of modules", package)
        for path in map(Path, self.read):
            exists = path.is_absolute() and path.exists()
            _require(exists, "read", "absolute paths of files that exist", str(path))
            allowed = path != Path("/") and not path.is_relative_to("/proc")
            _require(allowed, "read", "neither the root itself nor in /proc", str(path))


def _require(holds: bool, name: str, wanted: str, value: object) -> None:
    if not holds:
        raise ValueError(f"Limits: {name} must be {wanted}, got {value!r}")


@dataclass(frozen=True)
class Outcome:
    """The outcome of a program.

    Fields:
      status: its exit status, or 128 + n if signal n ended it; None if the sandbox ended it.
      stdout, stderr: its output, up to the limit; bytes that are not text become U+FFFD.
      seconds: wall time from its start to its end.
      reason: why the sandbox ended it. "": it ended by itself. "wall", "cpu", "memory",
        "processes", "disk", "output": it exceeded that limit. "lost": the sandbox was ended from
        outside or could not start it; the program is not the cause (`stderr` has details).
    """

    status: int | None
    stdout: str
    stderr: str
    seconds: float
    reason: str = ""
