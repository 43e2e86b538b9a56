"""Settings of the compiler, and a count of the programs that JAX compiles of a function."""

import contextlib
import os

import jax
from jax import monitoring

# XLA's fusions by way of MLIR; versions without this setting have no other way than that.
FUSION_EMITTERS = ["xla_cpu_use_fusion_emitters"] if jax.__version_info__ < (0, 11) else []

# Programs as users have them, where the tests' own are compiled in haste.
OPTIMIZED = {
    "xla_backend_optimization_level": 3,
    "xla_llvm_disable_expensive_passes": False,
    **dict.fromkeys(FUSION_EMITTERS, True),
}


def compile_in_haste(*flags):
    """Sets JAX and XLA, with further flags of XLA, before JAX is used for the first time.

    LLVM's optimizations are off, and so are XLA's fusions by way of MLIR, which take a third of the
    time.
    """
    jax.config.update("jax_disable_most_optimizations", True)
    lasting = " ".join([os.environ.get("XLA_FLAGS", ""), *flags])
    os.environ["XLA_FLAGS"] = " ".join([lasting, *(f"--{name}=false" for name in FUSION_EMITTERS)])
    # XLA reads its flags once, here. libtpu reads them when it is loaded, and one that it does not
    # know ends the process.
    jax.devices()
    os.environ["XLA_FLAGS"] = lasting


COMPILES = "/jax/core/compile/backend_compile_duration"


@contextlib.contextmanager
def compilations(name=None):
    """Within it, the list that is given grows by one for every program, or those of jit(name)."""
    seen = []

    def listen(event, seconds, **details):
        del seconds
        if event == COMPILES and (name is None or details["fun_name"] == f"jit({name})"):
            seen.append(details)

    monitoring.register_event_duration_secs_listener(listen)
    try:
        yield seen
    finally:
        monitoring.unregister_event_duration_listener(listen)
