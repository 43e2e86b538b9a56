"""JAX as tests have it: float64, strict promotion, eight host devices, haste in compiling.

Tests compile thousands of small functions and run each a few times: time that a compiler spends on
optimizations is lost. A test whose subject is rounding asks for `compiling.OPTIMIZED`; processes
that tests start have LLVM's optimizations, as users do.
"""

import jax
from compiling import COMPILES, compile_in_haste

compile_in_haste("--xla_force_host_platform_device_count=8")
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
# Some tests count what is compiled, and some have a disk that is full.
jax.config.update("jax_enable_compilation_cache", False)

COMPILED = []
"""Events of this process's compilations, for the summary of the session."""


def _note(event, seconds, **details):
    if event == COMPILES:
        COMPILED.append(event)


jax.monitoring.register_event_duration_secs_listener(_note)
