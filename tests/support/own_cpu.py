"""CPU time of the code of a test alone, for bounds on what hostile texts may cost."""

import contextlib
import gc
import time


@contextlib.contextmanager
def own_cpu():
    """Gives a list to which the seconds of this thread are added.

    What other threads of the process compute is not in them, nor a collection of the garbage of the
    tests before, which takes seconds where these have left much.
    """
    spent = []
    gc.disable()
    start = time.thread_time()
    try:
        yield spent
    finally:
        spent.append(time.thread_time() - start)
        gc.enable()
