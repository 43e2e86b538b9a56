"""What a program may use, and what became of it."""

from dataclasses import dataclass, fields
from pathlib import Path

_MOST, _MOST_SECONDS = 2**31 - 1, 1e6
_LEAST = {"memory_mb": 16, "processes": 1, "disk_mb": 1, "file_mb": 0, "open_files": 16}


@dataclass(frozen=True)
class Limits:
    """What a program may use.

    Fields:
      wall_seconds: from its start to its end.
      cpu_seconds: of all its processes together.
      memory_mb: of all its processes together, and of the address space of each beyond what an
        interpreter has at its start.
      processes: processes and threads at a time, itself included.
      disk_mb: of its work folder, a file system in memory that is gone afterwards.
      file_mb: of one file.
      open_files: of one process.
      output_bytes: of standard output, and of standard error.
      packages: installed Python packages that it may import, by the name that is imported; the
        standard library is always there.
      read: further files and folders that it may read and execute, absolute.
    Raises:
      ValueError: a field out of range; a path that does not exist.
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
            value = getattr(self, field.name)
            if field.name in ("packages", "read"):
                if isinstance(value, str) or not all(isinstance(name, str) for name in value):
                    raise ValueError(
                        f"Limits: {field.name} must be a tuple of names, got {value!r}"
                    )
                object.__setattr__(self, field.name, tuple(value))
            elif field.name.endswith("seconds"):
                if type(value) not in (int, float) or not 0 < value < _MOST_SECONDS:
                    raise ValueError(
                        f"Limits: {field.name} must be a number in (0, {_MOST_SECONDS:g}),"
                        f" got {value!r}"
                    )
            elif type(value) is not int or not _LEAST.get(field.name, 1) <= value <= _MOST:
                raise ValueError(
                    f"Limits: {field.name} must be an integer from {_LEAST.get(field.name, 1)} to"
                    f" {_MOST}, got {value!r}"
                )
        for name in self.packages:
            if not name.isidentifier():
                raise ValueError(f"Limits: packages must be names of modules, got {name!r}")
        for path in self.read:
            if not (Path(path).is_absolute() and Path(path).exists()):
                raise ValueError(
                    f"Limits: read must be absolute paths of files that exist, got {path!r}"
                )
            if Path(path) == Path("/") or Path(path).is_relative_to("/proc"):
                raise ValueError(
                    f"Limits: read must not be the root itself or in /proc, got {path!r}"
                )


@dataclass(frozen=True)
class Outcome:
    """What became of a program.

    Fields:
      status: its exit status, 128 + n if signal n ended it; None if the sandbox did.
      stdout, stderr: what it wrote, up to the limit; bytes that are no text become U+FFFD.
      seconds: from its start to its end.
      reason: why the sandbox ended it: "wall", "cpu", "memory", "processes", "disk" or "output", a
        limit; "lost", the sandbox itself was ended from outside or could not start the program,
        which tells nothing about the program (`stderr` says more); "", it ended by itself.
    """

    status: int | None
    stdout: str
    stderr: str
    seconds: float
    reason: str = ""
