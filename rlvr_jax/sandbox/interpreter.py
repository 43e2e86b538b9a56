"""Files that a Python program needs: interpreter, standard library, shared libraries.

They are derived from the running process. The system stores libraries in the folders of the
libraries that the process has mapped; further libraries for its modules are next to them.
"""

import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

_FOREIGN = ("site-packages", "dist-packages")  # installed packages: unused unless named
_LOADER = re.compile(rb"/lib[\w./-]*/ld[\w.-]+\.so\.\d+")
_LOADER_WITHIN = 4096  # first bytes of a program, which contain the path of its loader
_CACHE = "/etc/ld.so.cache"  # where the loader looks libraries up


def resolved() -> str:
    """The path of the interpreter, without links and virtual environments."""
    return str(Path(getattr(sys, "_base_executable", None) or sys.executable).resolve())


def shown() -> list[str]:
    """Files and folders that a program reads; none is inside another."""
    standard = [entry for entry in map(os.path.realpath, sys.path) if Path(entry).exists()]
    return without_nested(
        [sys.executable, *_loader(sys.executable), _CACHE, *standard, *_library_folders()]
    )


def hidden(paths: Iterable[str]) -> list[str]:
    """Folders of installed packages below the shown ones."""
    found = []
    for path in map(Path, paths):
        for name in _FOREIGN:
            found += [path / name, *path.glob(f"*/{name}"), *path.glob(f"*/*/{name}")]
    return sorted({str(path) for path in found if path.is_dir()})


def singly(paths: Iterable[str], left_out: Sequence[str]) -> list[str]:
    """The same files without some inner folders, for rules that can only allow."""
    found = []
    for path in paths:
        below = [folder for folder in left_out if Path(folder).is_relative_to(path)]
        if path in below:
            continue
        if below:
            found += singly((entry.path for entry in os.scandir(path)), below)
        else:
            found.append(path)
    return found


def find_package(name: str, search: Sequence[str]) -> list[str]:
    """Files and folders of an installed package: its modules, its libraries and its metadata; none
    if it is not installed.

    Args:
      name: name for import, such as "numpy".
      search: folders in which it is searched, such as `sys.path`.
    """
    for folder in (Path(entry).absolute() for entry in search):
        modules = [folder / name, folder / f"{name}.py", *folder.glob(f"{name}.*.so")]
        found = [path for path in modules if path.exists()]
        if found:
            beside = [folder / f"{name}.libs", *folder.glob(f"{name}-*.dist-info")]
            return [str(path) for path in [*found, *beside] if path.exists()]
    return []


def without_nested(paths: Iterable[str]) -> list[str]:
    """Distinct paths in order, without those inside another."""
    selected: list[str] = []
    for path in sorted(set(paths)):
        if not any(Path(path).is_relative_to(other) for other in selected):
            selected.append(path)
    return selected


def _loader(program: str) -> list[str]:
    with Path(program).open("rb") as file:
        found = _LOADER.search(file.read(_LOADER_WITHIN))
    return [os.fsdecode(found[0])] if found else []


def _library_folders() -> set[str]:
    try:
        maps = Path("/proc/self/maps").read_text(errors="replace")
    except OSError:
        return set()
    files = {line.split(maxsplit=5)[5] for line in maps.splitlines() if line.count("/") > 0}
    return {str(Path(name).parent) for name in files if ".so" in Path(name).name}
