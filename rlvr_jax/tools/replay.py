"""Inside the sandbox: repeats the previous calls of an episode without output, then runs a call.

A repeated call reads the random numbers and the clock of its first run. This file is the program
that `python` runs in the sandbox; it needs only the standard library.
"""

import ast
import atexit
import contextlib
import datetime
import json
import os
import random
import sys
import time
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

__all__ = ["JOB", "main"]

JOB = "calls.json"  # `before` and `now`, each with `code` and `clock`; `seed`; `mark`
_MICROSECOND = 1000  # nanoseconds, the unit of all times here
_RESOLUTION = 200  # a reading is recorded if it is later by 1/200 of the time since the first one
_STREAMS = ("stdin", "stdout", "stderr")


class Exit(SystemExit):
    """An `os._exit` in a call that is repeated."""


class Clock:
    """Reads the time, or repeats recorded readings.

    A record is [[time, readings], …]: `readings` readings returned this time, each 1 ns more.
    """

    def __init__(self) -> None:
        self.record: list[list[int]] = []
        self.start: int | None = None  # of the first call
        self._known: list[list[int]] | None = None
        self._sleep = time.sleep
        self._real = time.time_ns

    def begin(self, known: list[list[int]] | None) -> None:
        """Begins a call: a repeated one whose record is known, or a new one."""
        self.record = []
        self._known = None if known is None else [list(entry) for entry in known]
        now = self.read()
        self.start = now if self.start is None else self.start

    def read(self) -> int:
        """Nanoseconds since the epoch."""
        if self._known:
            entry = self._known[0]
            entry[0], entry[1] = entry[0] + 1, entry[1] - 1
            if entry[1] < 1:
                self._known.pop(0)
            return entry[0] - 1
        now = self._real()
        if self._known is None:
            if self.record:
                start, readings = self.record[-1]
                if now - start < max(_MICROSECOND, (start - self.record[0][0]) // _RESOLUTION):
                    self.record[-1][1] += 1
                    return start + readings
            self.record.append([now, 1])
        return now

    def elapsed(self) -> int:
        """Nanoseconds since the first call began."""
        now = self.read()
        assert self.start is not None
        return now - self.start

    def sleep(self, seconds: float) -> None:
        """Sleeps, unless the call is repeated."""
        if self._known is None:
            self._sleep(seconds)


def repeat_random(seed: str) -> None:
    """Makes a seed determine all random numbers of this process."""
    stream = random.Random(seed)
    original = random.Random.seed

    def seeded(self: random.Random, a: Any = None, version: int = 2) -> None:
        original(self, stream.getrandbits(256) if a is None else a, version)

    def urandom(size: int, flags: int = 0) -> bytes:
        return stream.randbytes(size)

    os.urandom = os.getrandom = urandom
    random.__dict__["_urandom"] = urandom  # of `SystemRandom`, which `secrets` reads
    random.Random.seed = seeded
    random.seed = types.MethodType(seeded, random.seed.__self__)
    random.seed()


def repeat_time(clock: Clock) -> None:
    """Makes all clocks of this process read one clock."""
    for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time"):
        read = clock.read if name == "time" else clock.elapsed
        setattr(time, f"{name}_ns", read)
        setattr(time, name, lambda read=read: read() / 1e9)
    time.clock_gettime_ns = lambda which: clock.read() if which == 0 else clock.elapsed()
    time.clock_gettime = lambda which: time.clock_gettime_ns(which) / 1e9
    time.sleep = clock.sleep
    for name in ("localtime", "gmtime", "ctime"):
        setattr(time, name, _now_by_default(getattr(time, name)))
    strftime, asctime = time.strftime, time.asctime
    time.strftime = lambda form, moment=None: strftime(form, moment or time.localtime())
    time.asctime = lambda moment=None: asctime(moment or time.localtime())
    datetime.date = _Kind("date", (_Today, datetime.date), {})
    datetime.datetime = _Kind("datetime", (_Now, datetime.datetime), {})


def _now_by_default(convert: Callable[..., Any]) -> Callable[..., Any]:
    return lambda seconds=None: convert(time.time() if seconds is None else seconds)


class _Kind(type):
    """Type of our replacement of a class of `datetime`, whose instances also count as ours."""

    def __new__(cls, name: str, bases: tuple[type, ...], names: dict[str, Any]) -> type:
        ours = bases[0] in (_Today, _Now)
        return super().__new__(
            cls, name, bases, names | {"__module__": "datetime"} if ours else names
        )

    def __instancecheck__(cls, value: Any) -> bool:
        return issubclass(type(value), cls)

    def __subclasscheck__(cls, kind: type) -> bool:
        ours = cls.__bases__[0] in (_Today, _Now)
        return type.__subclasscheck__(cls.__bases__[1] if ours else cls, kind)


class _Today:
    """The methods of `date` that read the clock."""

    def __repr__(self) -> str:
        text = super().__repr__()
        return f"datetime.{text}" if type(self).__module__ == "datetime" else text

    @classmethod
    def today(cls: type[Any]) -> Any:
        return cls.fromtimestamp(time.time())


class _Now(_Today):
    """The methods of `datetime` that read the clock."""

    @classmethod
    def now(cls: type[Any], tz: datetime.tzinfo | None = None) -> Any:
        return cls.fromtimestamp(time.time(), tz)

    @classmethod
    def utcnow(cls: type[Any]) -> Any:
        return cls.fromtimestamp(time.time(), datetime.UTC).replace(tzinfo=None)


class Session:
    """Runs the calls of `JOB` in the names of one module, and ends the process."""

    def __init__(self, job: dict[str, Any]):
        self._job = job
        self._clock = Clock()
        self._module = types.ModuleType("__main__")
        self._process = os.getpid()
        self._handles = [os.dup(number) for number in range(3)]
        self._replaying = True
        self._end = os._exit

    def run(self) -> NoReturn:
        """Runs all calls; the output of the last one is the output of this process."""
        repeat_random(self._job["seed"])
        repeat_time(self._clock)
        os._exit = self._exit
        sys.modules["__main__"] = self._module
        null = os.open(os.devnull, os.O_RDWR)
        for call in self._job["before"]:
            self._open([null] * 3)
            self._clock.begin(call["clock"])
            with contextlib.suppress(BaseException):
                exec(compile(call["code"], "<call>", "exec", dont_inherit=True), vars(self._module))
            self._flush()
        self._replaying = False
        atexit._clear()  # exit handlers of previous calls ran when these ended
        self._open(self._handles)
        self._clock.begin(None)
        status = self._now(self._job["now"])
        self._record()
        self._open(self._handles)
        os._exit = self._end
        sys.exit(status)

    def _open(self, handles: list[int]) -> None:
        """Opens the streams, which a call may have closed or replaced."""
        for number, handle in enumerate(handles):
            os.dup2(handle, number)
        for number, name in enumerate(_STREAMS):
            stream = getattr(sys, f"__{name}__")
            if stream is None or stream.closed:
                mode = "w" if number else "r"
                stream = os.fdopen(number, mode, encoding="utf-8", closefd=False)
                setattr(sys, f"__{name}__", stream)
            setattr(sys, name, stream)

    def _flush(self) -> None:
        for stream in (sys.stdout, sys.__stdout__, sys.stderr, sys.__stderr__):
            with contextlib.suppress(Exception):
                if stream is not None:
                    stream.flush()

    def _now(self, source: str) -> int:
        """Runs a call, which shows the value of its last expression like a notebook; returns the
        exit status."""
        names = vars(self._module)
        try:
            tree = ast.parse(source, "<call>")
            last = None
            if tree.body and isinstance(tree.body[-1], ast.Expr):
                last = ast.Expression(tree.body[-1].value)
                tree.body.pop()
            exec(compile(tree, "<call>", "exec"), names)
            if last is not None:
                value = eval(compile(last, "<call>", "eval"), names)
                if value is not None:
                    print(repr(value))
        except SystemExit as error:
            if error.code is None or isinstance(error.code, int):
                return (error.code or 0) & 0xFF
            print(error.code, file=sys.stderr)
            return 1
        except BaseException as error:
            print("".join(traceback.format_exception_only(error)).strip(), file=sys.stderr)
            return 1
        return 0

    def _exit(self, status: int = 0) -> None:
        """In the place of `os._exit`."""
        if os.getpid() == self._process:  # no child of the program
            if self._replaying:
                raise Exit(status)
            self._record()
        self._end(status)

    def _record(self) -> None:
        """Prints the clock readings of the call, for its repetitions."""
        self._flush()
        os.write(
            self._handles[1], f"\n{self._job['mark']} {json.dumps(self._clock.record)}\n".encode()
        )


def main() -> NoReturn:
    """Runs the calls of the file `JOB`."""
    file = Path(JOB)
    job = json.loads(file.read_text(encoding="utf-8"))
    file.unlink()
    Session(job).run()
