"""Counts the programs that JAX compiles of a function."""

import contextlib

from jax import monitoring

_EVENT = "/jax/core/compile/backend_compile_duration"


@contextlib.contextmanager
def compilations(name):
    """Within it, the list that is given grows by one for every program of jit(name)."""
    seen = []

    def listen(event, seconds, **details):
        del seconds
        if event == _EVENT and details["fun_name"] == f"jit({name})":
            seen.append(details)

    monitoring.register_event_duration_secs_listener(listen)
    try:
        yield seen
    finally:
        monitoring.unregister_event_duration_listener(listen)
