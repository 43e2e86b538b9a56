"""Choice of the implementation of the streaming sums, with its fallback."""

import functools
import warnings

import jax

from rlvr_jax.kernels import algebra, pallas_gpu, pallas_tpu, tpu_blocks, xla
from rlvr_jax.kernels.plan import Plan, Policy, Tokens

# Functions (plan, policy, tokens) -> Sums of a device's tokens over its part of the vocabulary.
SUMS = {"xla": xla.sums, "pallas_tpu": pallas_tpu.sums, "pallas_gpu": pallas_gpu.sums}
# Functions (plan, policy) -> why the kernel cannot run, or None.
OBSTACLES = {"pallas_tpu": pallas_tpu.obstacle, "pallas_gpu": pallas_gpu.obstacle}
# What runs if nothing was named; elsewhere it is "xla".
_PREFERRED = {"tpu": "pallas_tpu"}


def check_named(plan: Plan, policy: Policy) -> None:
    """Refuses a named implementation that cannot run here, for any statistics.

    Args:
      policy: of this device: its tokens and its part of the vocabulary.
    """
    named = plan.implementation
    if named is not None and (reason := _obstacle(named, plan, policy)):
        raise ValueError(f"token_stats: implementation {named!r} cannot run: {reason}")


def sums(plan: Plan, policy: Policy, tokens: Tokens) -> algebra.Sums:
    """Sums of the active tokens by `plan.implementation`, or by the platform's default.

    Args:
      policy: of this device: its tokens and its part of the vocabulary.
      tokens: of this device, with targets as indices into its part of the vocabulary.
    """
    if plan.implementation is not None:
        return SUMS[plan.implementation](plan, policy, tokens)
    platform, _ = tpu_blocks.device()
    preferred = _PREFERRED.get(platform)
    if preferred is None:
        return xla.sums(plan, policy, tokens)
    if reason := _obstacle(preferred, plan, policy):
        warn_once(f"token_stats: 'xla' runs instead of {preferred!r}: {reason}")
        return xla.sums(plan, policy, tokens)
    # A function traced on a machine with a TPU may still be compiled for the host.
    kernel, plain = (functools.partial(SUMS[name], plan) for name in (preferred, "xla"))
    return jax.lax.platform_dependent(policy, tokens, default=plain, **{platform: kernel})


def _obstacle(name, plan, policy):
    return OBSTACLES[name](plan, policy) if name in OBSTACLES else None


@functools.cache
def warn_once(message: str) -> None:
    """Warns once per message in a process."""
    warnings.warn(message, stacklevel=2)
