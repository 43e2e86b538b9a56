"""Puts hostile programs to the sandbox: the host that they want to get at, and who got there.

    python tests/sandbox/suite.py                    all programs, all layers
    python tests/sandbox/suite.py first              the first program of each kind, all layers
    python tests/sandbox/suite.py off                every program without the layers that stop it
    python tests/sandbox/suite.py alone              with each layer that stops it as the only one
    python tests/sandbox/suite.py table              what is stopped with fewer layers

Prints a line of JSON for each program that is not where it should be, and one for all.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from hostile import HOSTILE, LIMITS, MARK, PRELUDE, SECRET, WON, Hostile

from rlvr_jax.sandbox import Limits, Sandbox
from rlvr_jax.sandbox.layers import LAYERS, NAMESPACES

__all__ = ["FIRST", "Host", "alone", "escapes", "host", "off", "seen"]

ROOT = os.geteuid() == 0
# They stop what they stop only where the sandbox is started as root.
OF_ROOT = {"uid", "capabilities"}
# Limits stand for layers that cannot be left out.
WIDE = {"wall": {"wall_seconds": 12.0}, "output": {"output_bytes": 2**23}}
# What a machine may have; the output and the wall time are limited everywhere.
BACKENDS = {
    "all layers": set(),
    "no namespaces": set(NAMESPACES),
    "limits only": set(LAYERS) - {"rlimits"},
}
FIRST = list({program.kind: program for program in reversed(HOSTILE)}.values())[::-1]
VICTIM = """
import ctypes, sys, time
secret = ctypes.create_string_buffer(sys.argv[1].encode())
print(ctypes.addressof(secret), flush=True)
time.sleep(600)
"""
SHOWN = 500  # characters of an outcome that went wrong
PATIENCE = 60.0  # seconds to succeed in, on a machine with other work
MOMENT = 0.05  # seconds until what was sent or killed shows


class Host:
    """What a program wants to get at; files lie in a folder that everybody may write."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.target = folder / "target"
        self.target.mkdir()
        self.precious = self.target / "precious"
        self.sockets = []
        self.told = {
            "port": self.listen(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))[1],
            "udp": self.listen(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))[1],
            "unix": self.listen(socket.AF_UNIX, socket.SOCK_STREAM, str(folder / "stream")),
            "datagrams": self.listen(socket.AF_UNIX, socket.SOCK_DGRAM, str(folder / "datagrams")),
            "abstract": f"hostile-{os.getpid()}",
            "secret": str(folder / "secret.txt"),
            "package": str(self.a_package()),
            "target": str(self.target),
            "mark": MARK,
        }
        self.listen(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{self.told['abstract']}")
        self.listen(socket.AF_UNIX, socket.SOCK_DGRAM, f"\0{self.told['abstract']}-datagrams")
        Path(self.told["secret"]).write_text(SECRET)
        for path in (folder, *folder.iterdir()):
            path.chmod(0o777)
        self.victim = None
        self.reset()

    def listen(self, family, kind, address):
        listener = socket.socket(family, kind)
        self.sockets.append(listener)
        listener.bind(address)
        listener.setblocking(False)
        if kind == socket.SOCK_STREAM:
            listener.listen(100)
        return listener.getsockname()

    def a_package(self) -> Path:
        """A file of the packages that are installed with the resolved interpreter."""
        for entry in (Path(os.__file__).parent, Path("/usr/lib/python3")):
            for folder in ("site-packages", "dist-packages"):
                found = sorted((entry / folder).rglob("*.py"))
                if found:
                    return found[0]
        raise RuntimeError("the interpreter has no packages to hide")

    def reset(self) -> None:
        """Makes everything as it was."""
        if self.victim is None or self.victim.poll() is not None:
            if self.victim is not None:
                self.victim.stdout.close()
            self.victim = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", VICTIM, SECRET, MARK],
                stdout=subprocess.PIPE,
                env={"SECRET": SECRET},
            )
            self.told |= {
                "victim": self.victim.pid,
                "address": int(self.victim.stdout.readline()),
            }
        for path in self.target.iterdir():
            path.unlink()
        self.precious.write_text("precious")
        self.precious.chmod(0o666)
        self.before = self.state()
        for listener in self.sockets:
            with contextlib.suppress(BlockingIOError, OSError):
                while listener.recv(100):
                    pass
        for pid in orphans():
            os.kill(pid, signal.SIGKILL)

    def state(self):
        there = self.precious.stat()
        names = sorted(path.name for path in self.target.iterdir())
        return names, there.st_size, there.st_mode, there.st_mtime_ns, there.st_ino

    def heard(self) -> bool:
        for listener in self.sockets:
            if listener.type == socket.SOCK_DGRAM:
                with contextlib.suppress(BlockingIOError):
                    return bool(listener.recv(100))
        return False

    def close(self) -> None:
        self.reset()
        self.victim.kill()
        self.victim.wait()
        self.victim.stdout.close()
        for listener in self.sockets:
            listener.close()


def orphans() -> list[int]:
    """Processes anywhere that have the name which hostile programs give to what they leave."""
    found = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if path.read_bytes().strip() == MARK.encode():
                found.append(int(path.parent.name))
    return found


@contextlib.contextmanager
def host() -> Iterator[Host]:
    """A host in a folder of its own, which is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="hostile-"))
    try:
        there = Host(folder)
        try:
            yield there
        finally:
            there.close()
    finally:
        shutil.rmtree(folder)


def seen(there: Host, sandbox: Sandbox, program: Hostile, off: frozenset[str] = frozenset()):
    """Whether a program succeeds, and its outcome; `off` widens limits."""
    there.reset()
    limits = dict(LIMITS)
    if off and "wall" not in program.layers:
        limits["wall_seconds"] = PATIENCE
    for layer in off & WIDE.keys():
        limits |= WIDE[layer]
    source = PRELUDE + program.source
    outcome = sandbox.run(source, argv=[json.dumps(there.told)], limits=Limits(**limits))
    if program.sign == "said":
        won = WON in outcome.stdout
    elif program.sign == "heard":
        time.sleep(MOMENT)
        won = there.heard()
    elif program.sign == "wrote":
        won = there.state() != there.before
    elif program.sign == "killed":
        time.sleep(MOMENT)
        won = there.victim.poll() is not None
    elif program.sign == "outlived":
        won = bool(orphans())
    elif program.sign == "flooded":
        won = max(len(outcome.stdout), len(outcome.stderr)) > LIMITS["output_bytes"]
    else:
        won = outcome.status == 0 or outcome.reason == "lost"
    return won, outcome


def escapes(programs: list[Hostile], without: set[str]) -> list[Hostile]:
    """Those that get out with some layers left out."""
    with host() as there, Sandbox(_without=without, unsafe_local=True) as sandbox:
        return [program for program in programs if seen(there, sandbox, program)[0]]


def open_wide(there: Host, program: Hostile):
    """A program without any of the layers that stop it."""
    off = frozenset(program.layers)
    with Sandbox(_without=off - WIDE.keys(), unsafe_local=True) as sandbox:
        return seen(there, sandbox, program, off)


def off() -> dict[str, str]:
    """Those that fail without the layers that are said to stop them."""
    failed = {}
    with host() as there:
        for program in HOSTILE:
            if ROOT or not program.root:
                won, outcome = open_wide(there, program)
                if not won:
                    failed[program.name] = str(outcome)[:SHOWN]
    return failed


def alone() -> dict[str, str]:
    """Those that get out with one of the layers that are said to stop them."""
    failed = {}
    with host() as there:
        for program in HOSTILE:
            for layer in program.layers:
                if layer in WIDE or (layer in OF_ROOT and not ROOT):
                    continue
                others = set(program.layers) - {layer}
                with Sandbox(_without=others - WIDE.keys(), unsafe_local=True) as sandbox:
                    if layer in sandbox.missing:
                        continue
                    won, outcome = seen(there, sandbox, program, frozenset(others))
                    if won:
                        failed[f"{program.name}: {layer}"] = str(outcome)[:SHOWN]
    return failed


def table() -> None:
    """Prints how many programs of each kind are stopped by what a machine may have."""
    out = {name: escapes(HOSTILE, without) for name, without in BACKENDS.items()}
    print(f"{'stopped of':16}{'':>4}", *(f"{name:>14}" for name in BACKENDS))
    for kind in [*(program.kind for program in FIRST), ""]:
        all_of = [program for program in HOSTILE if kind in ("", program.kind)]
        stopped = [len(set(all_of) - set(found)) for found in out.values()]
        print(f"{kind or 'all':16}{len(all_of):4}", *(f"{count:14}" for count in stopped))


def main(arguments: list[str]) -> None:
    """Prints what is wrong."""
    if arguments == ["table"]:
        return table()
    if arguments in ([], ["first"]):
        found = escapes(FIRST if arguments else HOSTILE, set())
        result = {program.name: "got out" for program in found}
    else:
        result = {"off": off, "alone": alone}[arguments[0]]()
    for name, why in result.items():
        print(json.dumps([name, why]))
    print(json.dumps({"programs": len(HOSTILE), "wrong": len(result)}))


if __name__ == "__main__":
    main(sys.argv[1:])
