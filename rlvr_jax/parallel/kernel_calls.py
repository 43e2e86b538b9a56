"""Work of Pallas kernels, from the arrays that a compiled function passes to them.

The compiler has no estimate for them. They count with their own roofline: products at the chip's
peak, or their arrays, moved once, at its bandwidth.
"""

import math

from rlvr_jax.parallel.hlo import KernelCall, Typed
from rlvr_jax.parallel.roofline import Work, fraction_of_experts
from rlvr_jax.policy import ModelConfig
from rlvr_jax.policy.flash import flash_pairs

_PRODUCTS = {"splash_mqa_fwd": 2, "splash_mqa_dq": 3, "splash_mqa_dkv": 4}
"""Of queries and keys with the entries of a head; scores are made anew for a gradient."""


def kernel_work(call: KernelCall, config: ModelConfig) -> Work:
    """The work of one call.

    Products with experts count the token-expert assignments to the device's experts. Weights count
    for experts with an assignment: the mean number if all experts are equally likely. The kernels
    receive the sizes of groups and are assumed to skip empty groups.

    Args:
      call: its name begins with the kernel's.
      config: of the model.
    """
    floats = [array for array in call.operands if array.kind in ("bf16", "f32")]
    moved = sum(array.bytes for array in (*call.operands, *call.results))
    for kernel, products in _PRODUCTS.items():
        if call.name.startswith(kernel):
            query, key = (array.shape for array in floats[:2])
            *heads, queries, size = query
            pairs = math.prod(heads) * flash_pairs(queries, key[-2])
            return Work(2.0 * products * pairs * size, moved)
    if call.name.startswith("token_stats"):
        (tokens, width), (vocabulary, _) = (array.shape for array in floats[:2])
        return Work(2.0 * tokens * vocabulary * width, moved)
    # `gmm` and `tgmm` are the gradients of the first, of rows and of matrices.
    if call.name.startswith(("ragged-dot", "gmm")) and floats:
        return _experts(floats[0], floats[1], call.results[0], config)
    if call.name.startswith("tgmm"):
        return _experts(floats[0], call.results[0], floats[1], config)
    # Those that pass over arrays and multiply nothing.
    return Work(0.0, moved)


def _experts(assignments: Typed, matrices: Typed, given: Typed, config: ModelConfig) -> Work:
    """Work of assignments [N, D], also those to experts of other devices, by [own, D, E]."""
    own, *matrix = matrices.shape
    tokens = assignments.shape[0] / (config.experts_per_token or 1)
    here = own / (config.num_experts or own)
    moved = (
        here * (assignments.bytes + given.bytes)
        + fraction_of_experts(config, tokens) * matrices.bytes
    )
    return Work(2.0 * here * assignments.shape[0] * math.prod(matrix), moved)
