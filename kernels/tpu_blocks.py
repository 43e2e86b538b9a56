"""Block sizes of the TPU kernel: a table by chip generation, fitted to the width of the model.

A block of tokens stays in VMEM while the vocabulary streams past it, so the unembedding is read
N / tokens times. A block of bfloat16 is bound by the matrix units, and not by HBM, if it has at
least peak rate / bandwidth tokens (FLOP per byte). This is 240 on v5e, 170 on v5p, 220 on v4, 560
on v6e, 310 on tpu7x.
"""

from typing import NamedTuple

import jax

MEBIBYTE = 1 << 20
# A lane holds a token; the matrix unit takes operands of 128 rows (v6e and later: 256).
SMALLEST = 128
# What the compiler adds to the blocks (spilled registers, running sums): 1.8 MiB was the most seen.
RESERVE = 2 * MEBIBYTE


class Blocks(NamedTuple):
    """Block sizes of a call.

    Fields:
      tokens: token block.
      vocabulary: tile of the vocabulary; a grid step handles two.
      vmem_limit: bytes of VMEM that the compiler may use.
    """

    tokens: int
    vocabulary: int
    vmem_limit: int


# By `device_kind`. 16 MiB is all the VMEM of a v4 core; the others have 64 (v5p, tpu7x) or 128 MiB,
# which XLA keeps for the arrays between kernels, so a kernel takes no more than 40.
TABLE = {
    "TPU v4": Blocks(512, 512, 16 * MEBIBYTE),
    "TPU v5 lite": Blocks(512, 512, 40 * MEBIBYTE),
    "TPU v5": Blocks(512, 512, 40 * MEBIBYTE),
    "TPU v6 lite": Blocks(1024, 256, 40 * MEBIBYTE),
    "TPU7x": Blocks(1024, 256, 40 * MEBIBYTE),
}
# Other names of the same chips.
ALIASES = {"TPU v5e": "TPU v5 lite", "TPU v5p": "TPU v5", "TPU v6e": "TPU v6 lite"}


def device() -> tuple[str, str]:
    """Platform and kind of the device that is traced for: the current mesh's, or the default one.

    Inside `shard_map` it is the mesh's, so that a program can be compiled for a chip that is not
    there.
    """
    described = jax.sharding.get_abstract_mesh().abstract_device
    if described is None:
        described = jax.devices()[0]
    return described.platform, described.device_kind


def fit(device_kind: str, width: int, itemsize: int) -> Blocks | None:
    """The table's blocks, halved until they fit into VMEM; None if the smallest do not.

    Args:
      device_kind: as JAX names it; a kind that is not in the table gets the smallest blocks of it.
      width: D.
      itemsize: bytes of an element of the hidden states and the unembedding.
    """
    tokens, vocabulary, limit = TABLE.get(ALIASES.get(device_kind, device_kind), TABLE["TPU v4"])
    while _bytes(tokens, vocabulary, width, itemsize) > limit - RESERVE:
        if max(tokens, vocabulary) == SMALLEST:
            return None
        # The larger one: square blocks get the most arithmetic out of a byte.
        if tokens >= vocabulary:
            tokens //= 2
        else:
            vocabulary //= 2
    return Blocks(tokens, vocabulary, limit)


def _bytes(tokens: int, vocabulary: int, width: int, itemsize: int) -> int:
    """VMEM of a block of tokens and two tiles, all fetched ahead, and of two tiles of logits."""
    fetched = 2 * (tokens + 2 * vocabulary) * width * itemsize
    # A product of float32 splits its operands into parts; those of an entry are stored, in 8 bytes
    # for each of its numbers, if more tokens come than the matrix unit takes at a time.
    parts = 2 * vocabulary * width * 8 if itemsize == 4 and tokens > SMALLEST else 0
    return fetched + parts + 2 * tokens * vocabulary * 4
