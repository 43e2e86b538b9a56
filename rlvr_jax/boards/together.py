"""Several runs in parallel, each in a process with one thread.

Two runs on a core each finish earlier than one after the other on both cores. A run with one thread
has the same bytes on machines with different numbers of cores. A sum that is split over threads is
rounded in another order.
"""

import concurrent.futures
import contextlib
import errno
import functools
import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from rlvr_jax import tasks
from rlvr_jax.analysis.run_directory import load_run
from rlvr_jax.console import RunProgress, progress_bar
from rlvr_jax.parallel import has_accelerator, keep_programs, num_cores
from rlvr_jax.runs.command import RunsFailed, train
from rlvr_jax.runs.config import TrainConfig
from rlvr_jax.runs.loop import Stopped, handled
from rlvr_jax.runs.resolved import resolve
from rlvr_jax.runs.run import make_run
from rlvr_jax.runs.settings import check_same_run, check_settings
from rlvr_jax.runs.task import Load

_MOST_JOBS = 8


def default_jobs() -> int:
    """Number of parallel runs: one per core, at most eight; one on an accelerator."""
    if has_accelerator():
        return 1
    return min(num_cores(), _MOST_JOBS)


def train_together(
    configs: Sequence[TrainConfig],
    console: Console,
    jobs: int = 0,
    work: Callable[..., dict[str, Any]] = train,
    ended: Callable[[TrainConfig, dict[str, Any] | BaseException], None] = lambda *_: None,
) -> list[dict[str, Any]]:
    """Runs configurations to their ends, `jobs` at a time, in the given order.

    A finished run is not repeated, and an interrupted run is resumed, if its settings are equal.
    Ctrl-C or SIGTERM stops all runs; each saves its state. A run that fails does not end the
    others; failures are reported at the end.

    Args:
      configs: settings of the runs; `resume` is set here.
      console: console of the progress lines.
      jobs: parallel runs; 0: `default_jobs`.
      work: (config, console, watch) -> summary, the function of each process.
      ended: called with (config, summary or error) at the end of each run, and at once for runs
        that are already finished. Not called for a run that was stopped or killed from outside or
        found the disk full: these errors are not caused by the run.
    Returns:
      The summaries, in the order of the configurations.
    Raises:
      ValueError: jobs is negative, or a finished run had other settings.
      Stopped: by a signal.
      RunsFailed: names the failed runs and the reasons; also for a process that died silently.
    """
    if jobs < 0:
        raise ValueError(f"--jobs must be at least 0, got {jobs}")
    jobs = jobs or default_jobs()
    running: dict[Connection, _Run] = {}
    summaries: dict[int, dict[str, Any]] = {}
    waiting = []
    load = functools.cache(tasks.load_as_written)
    for number, config in enumerate(configs):
        finished = _summary(config, load)
        if finished:
            summaries[number] = finished
            ended(config, finished)
        else:
            begun = (config.run_dir / "config.json").is_file()
            waiting.insert(0, (number, config.replace(resume=begun)))
    failures: dict[Path, BaseException] = {}

    def stop_all() -> None:
        for run in running.values():
            run.process.terminate()

    with progress_bar(console) as bar, _on_signals(stop_all) as asked:
        while running or (waiting and not asked):
            while waiting and len(running) < jobs and not asked:
                run = _Run(*waiting.pop(), console, bar, work)
                running[run.connection] = run
                if asked:  # while it was started, when it was not yet among those to be stopped
                    run.process.terminate()
            for connection in wait(list(running)):
                run = running[connection]
                result: dict[str, Any] | BaseException | None
                try:
                    result = run.receive()
                except Exception as error:
                    result = failures[run.config.run_dir] = error
                if result is None:
                    continue
                run.process.join()
                del running[connection]
                if isinstance(result, dict):
                    summaries[run.number] = result
                if not _from_outside(result):
                    ended(run.config, result)
    if asked:
        raise Stopped("stopped; the runs are saved")
    if failures:
        raise RunsFailed(failures)
    return [summaries[number] for number in range(len(configs))]


def check_together(configs: Sequence[TrainConfig]) -> None:
    """Builds the task, the recipe, the policy and the compiled functions of each run.

    Works in a separate process, which releases the devices. Of runs that differ only in seed and
    directory, one is built.

    Raises:
      ValueError: a line for each run that cannot start, with the reason.
    """
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        refused = pool.submit(_refusals, list(configs)).result()
    if refused:
        raise ValueError("\n".join(refused))


def _refusals(configs: Sequence[TrainConfig]) -> list[str]:
    plain = {config.replace(seed=0, run_dir=Path(), resume=False): config for config in configs}
    load = functools.cache(tasks.load_as_written)
    found = []
    for config in plain.values():
        try:
            make_run(resolve(config, load=load))
        except ValueError as error:
            found.append(f"{config.run_dir}: {error}")
    return found


class _Killed(RuntimeError):
    """The process of a run was killed from outside, for example because memory ran out."""


def _from_outside(result: Any) -> bool:
    """Whether the cause of a run's end was outside of the run."""
    full = isinstance(result, OSError) and result.errno in (errno.ENOSPC, errno.EDQUOT)
    return full or isinstance(result, Stopped | _Killed)


class _Run:
    """One process, seen from the parent."""

    def __init__(self, number, config, console: Console, bar: Progress, work):
        self.number = number
        self.config = config
        self._console = console
        self._bar = bar
        self._progress: RunProgress | None = None
        self.connection, theirs = multiprocessing.Pipe(duplex=False)
        self.process = multiprocessing.get_context("spawn").Process(
            target=_work, args=(work, config, theirs, console.width)
        )
        with _one_thread():
            self.process.start()
        theirs.close()

    def receive(self) -> dict[str, Any] | None:
        """Reads one message; returns the summary if it is the last one.

        Raises:
          Exception: the error that ended the run.
        """
        try:
            kind, *content = self.connection.recv()
        except EOFError:
            self.process.join()
            code = self.process.exitcode
            if code is not None and code < 0:
                memory = " (memory may have run out)" if -code == signal.SIGKILL else ""
                raise _Killed(
                    f"the process was ended by signal {-code}{memory}; continue with --resume"
                ) from None
            raise RuntimeError(
                f"the process ended with exit code {code}; continue with --resume"
            ) from None
        if kind == "text":
            self._console.out(*content, end="", highlight=False)
        elif kind == "begin":
            self._progress = RunProgress(self._console, self._bar, *content)
        elif kind == "step":
            self._progress(*content)
        elif kind == "failed":
            raise content[0]
        else:
            return content[0]
        return None


def _work(work, config: TrainConfig, connection: Connection, width: int) -> None:
    """What the process does: the run, with everything it shows sent to the parent."""
    keep_programs()
    os.setpgrp()  # Ctrl-C goes only to the parent, which requests every run to stop
    console = Console(file=_Sender(connection), width=width)

    def watch(*begin):
        connection.send(("begin", *begin))
        return lambda *step: connection.send(("step", *step))

    try:
        connection.send(("done", work(config, console, watch)))
    except BrokenPipeError:  # the parent is gone, and with it whoever would read
        return
    except (ValueError, FloatingPointError, Stopped, OSError) as error:
        connection.send(("failed", error))


class _Sender:
    """A text file whose lines go to the parent."""

    def __init__(self, connection: Connection):
        self._connection = connection

    def write(self, text: str) -> None:
        if text:
            self._connection.send(("text", text))

    def flush(self) -> None:
        """Does nothing: no output is buffered."""


def _summary(config: TrainConfig, load: Load) -> dict[str, Any] | None:
    """The summary of a finished run; None if it has not taken the requested steps."""
    card, summary = (config.run_dir / name for name in ("config.json", "summary.json"))
    if not (card.is_file() and summary.is_file()):
        return None
    stored = load_run(config.run_dir).config
    # Settings first, which need no task to be loaded.
    check_settings(stored.get("settings", {}), config.to_json())
    check_same_run(stored, resolve(config, load=load).card())
    found = json.loads(summary.read_text())
    if found["steps"] > config.steps:
        raise ValueError(
            f"--resume: --steps must be at least the {found['steps']} that the run in"
            f" {str(config.run_dir)!r} has taken, got {config.steps}"
        )
    spent = 0 < config.sampled_tokens <= found.get("sampled_tokens", 0)
    return found if found["steps"] == config.steps or spent else None


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Processes that start within it compute on one thread, unless an accelerator does."""
    before = os.environ.get("NPROC")
    if not has_accelerator():
        os.environ["NPROC"] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("NPROC", None)
        else:
            os.environ["NPROC"] = before


@contextlib.contextmanager
def _on_signals(action: Callable[[], None]) -> Iterator[list[int]]:
    """Within it SIGINT and SIGTERM call `action` and are noted; others than the main thread
    never see a signal."""
    asked: list[int] = []

    def handle(number, frame):
        del frame
        asked.append(number)
        action()

    main = threading.current_thread() is threading.main_thread()
    with handled(handle) if main else contextlib.nullcontext():
        yield asked
