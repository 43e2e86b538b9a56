"""For tests in which something is done to a program while it runs."""

import contextlib
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def again_and_again(action: Callable[[], object]) -> Iterator[None]:
    """Within it, a thread acts every five milliseconds."""
    over = threading.Event()

    def work():
        while not over.wait(0.005):
            action()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
