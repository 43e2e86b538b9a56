"""A work folder on disk, for programs that cannot have a separate file system."""

import contextlib
import os
import tempfile
from pathlib import Path

_MOST_ENTRIES = 2048  # entries that are counted for a size; more count as too large


def make() -> str:
    """A new folder that other users may pass through but not list."""
    path = tempfile.mkdtemp(prefix="rlvr_jax_sandbox_")
    Path(path).chmod(0o711)
    return path


def size(path: str) -> float:
    """Bytes on the disk below a folder; infinite beyond `_MOST_ENTRIES` files."""
    total, entries, todo = 0, 0, [path]
    while todo:
        with contextlib.suppress(OSError), os.scandir(todo.pop()) as found:
            for entry in found:
                entries += 1
                if entries > _MOST_ENTRIES:
                    return float("inf")
                with contextlib.suppress(OSError):
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
    return total


def remove(path: str) -> None:
    """Removes a folder of any depth and modes, to which no process writes any more.

    A folder in it is moved up before its entries are removed. A path of a million names is too long
    for the system, and a million open handles are too many.
    """
    count = 0
    unheard = os.urandom(8).hex()  # no other folder has this name
    Path(path).chmod(0o700)
    top = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        while folders := _unlink(top):
            for name in folders:
                os.chmod(name, 0o700, dir_fd=top)
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
                for deeper in _unlink(inner):
                    os.chmod(deeper, 0o700, dir_fd=inner)
                    count += 1
                    os.rename(deeper, f"{unheard}{count}", src_dir_fd=inner, dst_dir_fd=top)
                os.close(inner)
                os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    Path(path).rmdir()


def _unlink(handle: int) -> list[str]:
    """Removes the files of a folder; returns the names of its folders."""
    with os.scandir(handle) as found:
        entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
    for name, is_folder in entries:
        if not is_folder:
            os.unlink(name, dir_fd=handle)
    return [name for name, is_folder in entries if is_folder]
