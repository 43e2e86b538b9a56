"""A pool of worker processes for verifiers: hostile input, hard limits, results in order.

There are three kinds of processes. The *caller* (the trainer, with its threads) starts *servers*
(`rlvr_jax.sandbox.jobs`): fresh interpreters, so nothing of the caller is forked, pickled or
inherited. A server imports the function once and forks *workers* in milliseconds. It sends a worker
one job at a time, and kills its whole process tree at a time-out. Messages are JSON with a length
in front, over socket pairs. This file is the caller's side.

A worker has no standard streams, no capabilities, and limits on CPU time, memory, file size and
open files. It dies with its server, which ends when the caller does. If the system allows user
namespaces (see `WorkerPool.isolation`), a worker has no network, and can neither signal other
processes nor read their memory or environment.

Not protected:

- The file system: a job has the rights of the user.
- Names and command lines of other processes, which /proc lists.
- These processes, if `isolation` lacks "pid" and they belong to the user.
- The result, if untrusted code runs *inside* the worker's interpreter: it can write a reply and
  change the data of later jobs. A verifier that runs programs must start them as children
  (`processes`), or use `jobs_per_worker=1` and check the reply.

RLIMIT_NPROC does not bind root; a count every 20 ms replaces it. On systems other than Linux only
wall time, limits and process groups remain.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import selectors
import threading
import time
import weakref
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlvr_jax.verifiers.grade import LOST, TIMED_OUT, Grade

if TYPE_CHECKING:
    from rlvr_jax.sandbox.connection import JobServer


@dataclass(frozen=True)
class Result:
    """Result of one job: a value, or the reason why there is none.

    Fields:
      value: JSON value that the function returned; None if it did not return.
      timed_out: the wall or CPU limit ended it.
      error: the reason; None for a value.
      lost: a process of the pool was killed twice from outside, for example by the system when
        memory ran out. The job is not the cause, unless it can kill its own processes.
    """

    value: Any = None
    timed_out: bool = False
    error: str | None = None
    lost: bool = False

    def failure(self, counter: str) -> Grade | None:
        """The grade of a job without a value: ungraded if it was lost, else 0. None for a value.

        Args:
          counter: name of the number in `info` that counts errors other than time-outs.
        """
        if self.error is None:
            return None
        if self.lost:
            return Grade(None, stage=LOST)
        stage = TIMED_OUT if self.timed_out else f"error: {self.error.partition(':')[0]}"
        errors = {counter: float(not self.timed_out)}
        return Grade(0.0, timed_out=self.timed_out, info=errors, stage=stage)


class WorkerPool:
    """Runs a function of one JSON value in limited processes. Use as a context manager.

    Workers start at the first `map`. All methods may be called from any thread; calls of `map` wait
    for each other. Values and time-outs are cached, errors are not. A failed job is run once more
    in a fresh worker if its worker had served other jobs, so that they are not the cause. A job
    whose process was killed from outside is also run once more. A process that is forked from the
    caller gets a separate pool.

    Args:
      function: "module:name", importable by the workers with the caller's `sys.path`.
      workers: number of processes that grade in parallel.
      wall_seconds: wall time limit of one job (seconds).
      cpu_seconds: CPU time that every job certainly has. The system ends a worker after twice that;
        it is replaced before. None: wall_seconds + 1.
      memory_mb: of all its processes together, and of the address space of each beyond that of the
        imported function.
      processes: largest number of simultaneous children and threads of a job.
      file_mb: largest file that a job may write.
      open_files: file handles of one process.
      job_bytes, reply_bytes: largest size of the JSON text of a job and of a result.
      jobs_per_worker: jobs after which a worker is replaced; with 1, jobs share nothing.
      cache_size: number of cached results.
      warm_up: a trusted job that the server runs once, so that workers find its imports loaded.
    Raises:
      ValueError: an argument out of range.
    """

    def __init__(
        self,
        function: str,
        *,
        workers: int = 1,
        wall_seconds: float = 2.0,
        cpu_seconds: float | None = None,
        memory_mb: int = 1024,
        processes: int = 0,
        file_mb: int = 0,
        open_files: int = 64,
        job_bytes: int = 65536,
        reply_bytes: int = 65536,
        jobs_per_worker: int = 100,
        cache_size: int = 65536,
        warm_up: Any = None,
    ):
        if not all(function.partition(":")):
            raise ValueError(f"WorkerPool: function must be 'module:name', got {function!r}")
        cpu_seconds = wall_seconds + 1 if cpu_seconds is None else cpu_seconds
        arguments = {name: value for name, value in locals().items() if name != "self"}
        least = {"processes": 0, "file_mb": 0, "cache_size": 0, "open_files": 16, "memory_mb": 64}
        for key, value in arguments.items():
            if key.endswith("seconds") and not value > 0:
                raise ValueError(f"WorkerPool: {key} must be positive, got {value}")
            if isinstance(value, int) and key != "warm_up" and value < least.get(key, 1):
                raise ValueError(
                    f"WorkerPool: {key} must be at least {least.get(key, 1)}, got {value}"
                )
        self.isolation: frozenset[str] = frozenset()
        self._settings = arguments
        self._size = workers
        self._cache_size = cache_size
        self._cache: dict[bytes, Result] = {}
        self._counters = Counter(jobs=0, cached=0, timed_out=0, errors=0, restarts=0)
        self._closed = False
        self._begin()
        _POOLS.add(self)

    def map(self, jobs: Sequence[Any]) -> list[Result]:
        """Runs the jobs in parallel, and returns their results in order.

        Args:
          jobs: JSON values; equal ones are run once.
        Raises:
          ValueError: a job is not a JSON value.
          RuntimeError: the pool is closed, or the function cannot be imported.
        """
        texts = [_encode(job) for job in jobs]
        keys = [hashlib.sha256(text).digest() for text in texts]
        with self._lock:
            self._counters["jobs"] += len(keys)
            known = {key: self._cache[key] for key in keys if key in self._cache}
            todo = {k: t for k, t in zip(keys, texts, strict=True) if k not in known}
            self._counters["cached"] += len(keys) - len(todo)
            fresh = self._run(todo)
            for key, result in fresh.items():
                failed = result.error is not None and not result.timed_out
                self._counters["timed_out"] += result.timed_out
                self._counters["errors"] += failed
                if not failed:
                    self._cache[key] = result
            while len(self._cache) > self._cache_size:
                del self._cache[next(iter(self._cache))]
        results = known | fresh
        return [results[key] for key in keys]

    @property
    def counters(self) -> dict[str, int]:
        """Numbers since the start: jobs, cached, timed_out, errors, restarts (of servers)."""
        return dict(self._counters)

    def close(self) -> None:
        """Ends all workers and their processes, even while another thread is in `map`."""
        self._closed = True
        _stop(self._servers)

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _begin(self) -> None:
        """Creates the lock and an empty list of processes: at first, and in the child of a fork."""
        self._lock = threading.Lock()
        self._servers: list[JobServer] = []
        self._finalizer = weakref.finalize(self, _stop, self._servers)

    def _run(self, todo: dict[bytes, bytes]) -> dict[bytes, Result]:
        if self._closed:
            raise RuntimeError("WorkerPool.map: the pool must be open, got a call after close()")
        cap = self._settings["job_bytes"]
        large = {k: len(t) for k, t in todo.items() if len(t) > cap}
        results = {k: Result(error=f"job of {n} bytes, limit {cap}") for k, n in large.items()}
        waiting = [key for key in reversed(todo) if key not in large]
        while len(self._servers) < min(self._size, len(waiting)):  # import side by side
            self._start()
        # The latest end of two attempts at one job, plus the time to kill two trees.
        patience = 2 * self._settings["wall_seconds"]
        busy: dict[JobServer, tuple[bytes, float]] = {}
        again: set[bytes] = set()
        try:
            with selectors.DefaultSelector() as selector:
                while waiting or busy:
                    while waiting and len(busy) < self._size:
                        server = self._idle(busy)
                        key = waiting.pop()
                        busy[server] = key, time.monotonic() + patience + server.patience
                        with contextlib.suppress(OSError):  # a lost one shows as end of file
                            server.jobs.send(todo[key])
                        selector.register(server.channel, 1, server)
                    due = min(deadline for _, deadline in busy.values()) - time.monotonic()
                    ready = {item.data for item, _ in selector.select(max(due, 0))}
                    for server, (key, deadline) in list(busy.items()):
                        lost = server not in ready and time.monotonic() > deadline
                        try:
                            reply = server.reply() if server in ready else None
                        except (OSError, EOFError):
                            lost = True
                        if lost or reply is not None:
                            selector.unregister(server.channel)
                            del busy[server]
                        if lost:
                            self._discard([server])
                        if lost and key not in again:
                            again.add(key)
                            waiting.append(key)
                        elif lost:
                            results[key] = Result(error="server lost", lost=True)
                        elif reply is not None:
                            results[key] = _read(*reply)
        except BaseException:
            # An interrupt leaves replies in transit, which the next call would read as its own.
            self._discard(list(self._servers))
            raise
        return results

    def _idle(self, busy) -> JobServer:
        """Returns a server without a job, a new one if need be."""
        if self._closed:
            raise RuntimeError("WorkerPool.map: the pool must stay open, got close() during a call")
        # A server that died since its last job must not cost the next job one of two attempts.
        self._discard([s for s in self._servers if s not in busy and s.ended()])
        for second in (False, True):
            idle = [server for server in self._servers if server not in busy]
            if not idle:
                idle.append(self._start())
            try:
                self.isolation = idle[0].ready()
                break
            except RuntimeError as error:
                self._discard(idle[:1])
                if second:
                    function = self._settings["function"]
                    raise RuntimeError(
                        f"WorkerPool: function must be importable, got {function!r}: {error}"
                    ) from None
        return idle[0]

    def _start(self) -> JobServer:
        """Starts a server; the sandbox is imported where the first one is needed."""
        from rlvr_jax.sandbox.connection import JobServer

        self._servers.append(JobServer(self._settings))
        return self._servers[-1]

    def _discard(self, servers) -> None:
        self._counters["restarts"] += len(servers)
        _stop(servers)
        for server in servers:
            with contextlib.suppress(ValueError):
                self._servers.remove(server)
        if self._closed:
            raise RuntimeError("WorkerPool.map: the pool must stay open, got close() during a call")


def _stop(servers: list[JobServer]) -> None:
    for server in servers:  # side by side
        server.leave()
    for server in servers:
        server.stop()


def _encode(job) -> bytes:
    try:
        return json.dumps(job, sort_keys=True, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        got = f"{job!r:.80}"
        raise ValueError(f"WorkerPool.map: jobs must be JSON values, got {got}") from error


def _read(reason: str, text: str) -> Result:
    if reason:
        error = text or "no reason given"
        return Result(timed_out=reason == "time", error=error, lost=reason == "lost")
    try:
        return Result(value=json.loads(text))
    except (ValueError, RecursionError) as error:
        return Result(error=f"reply is not JSON ({type(error).__name__})")


_POOLS: weakref.WeakSet[WorkerPool] = weakref.WeakSet()


def _after_fork() -> None:
    # A child inherits the processes of its parent, and a lock that a thread may hold.
    for pool in list(_POOLS):
        pool._begin()


os.register_at_fork(after_in_child=_after_fork)
