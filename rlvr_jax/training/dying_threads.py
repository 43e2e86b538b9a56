"""Ends the run if a thread cannot start for lack of memory. Without this module it hangs."""

import queue
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def threads_must_start() -> Iterator[None]:
    """Raises MemoryError in the main thread if another thread fails with it before it runs.

    CPython waits in `Thread.start` for such a thread forever. The thread has too little memory for
    a hook in Python, so its report goes into a queue, which is a call in C. A thread with allocated
    memory reads the queue and interrupts the wait by SIGUSR2. It repeats the signal, since one that
    arrives just before the wait does not end it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reports: queue.SimpleQueue[sys.UnraisableHookArgs | None] = queue.SimpleQueue()
    other = sys.unraisablehook

    interrupted = threading.Event()

    def read() -> None:
        while (report := reports.get()) is not None:
            if report.exc_type is not MemoryError:
                other(report)
                continue
            interrupted.clear()
            while not interrupted.is_set():
                signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR2)
                interrupted.wait(0.1)

    def interrupt(number, frame):
        if not interrupted.is_set():
            interrupted.set()
            raise MemoryError("a thread could not start")

    reader = threading.Thread(target=read, name="dying_threads", daemon=True)
    reader.start()
    before = signal.signal(signal.SIGUSR2, interrupt)
    sys.unraisablehook = reports.put
    try:
        yield
    finally:
        sys.unraisablehook = other
        reports.put(None)
        reader.join()
        signal.signal(signal.SIGUSR2, before)
