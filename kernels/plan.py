"""Settings that are fixed when `token_stats` is traced, and the arrays that its loops read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import jax
from jaxtyping import Array, Bool, Float, Int

_Result = TypeVar("Result")

Statistics = dict[str, Array]
"""Statistics of tokens by name, [n] or [n, k] each; those that are not requested are absent."""

# Statistics that need the largest logit, the normalizer or an order of the whole row first. They
# are computed on chunks of tokens with the whole vocabulary.
ROWS = (
    "min_p_mass",
    "topk_logp",
    "topk_ids",
    "nucleus_entropy",
    "kl",
    "reverse_kl",
    "js",
)


class Policy(NamedTuple):
    """Inputs of the logits, which receive gradients."""

    hidden: Float[Array, "N D"]
    unembedding: Float[Array, "V D"]
    bias: Float[Array, "V"] | None = None


class OtherPolicy(NamedTuple):
    """A second policy; it shares bias, cap and temperature with the first, and not its width."""

    hidden: Float[Array, "N E"]
    unembedding: Float[Array, "V E"]


class Tokens(NamedTuple):
    """Further inputs per token; each comment defines None."""

    targets: Int[Array, "N"]
    active: Bool[Array, "N"] | None = None  # all
    inverse_temperature: Float[Array, "N"] | None = None  # 1
    second_ratio: Float[Array, "N"] | None = None  # no second temperature
    nucleus: Bool[Array, "N"] | None = None  # all active ones


class Tiles(NamedTuple):
    """Sizes of loops on one platform.

    Fields:
      platform: "cpu", "gpu" or "tpu".
      forward, backward: (tokens, vocabulary entries) of a tile.
      wave: (logits of a chunk of whole rows, vocabulary entries of one product of the chunk).
      search: rows whose nucleus is searched at a time, a divisor of 8; None is the whole chunk.
    """

    platform: str
    forward: tuple[int, int]
    backward: tuple[int, int]
    wave: tuple[int, int]
    search: int | None


# CPU: a float32 tile of 512 x 2048 logits is 4 MiB and stays in the cache; wider ones lose. So do
# eight rows of 150 000 logits, over which a search goes thirty times.
# TPU: a float32 tile of 2048 x 2048 logits (16 MiB) and one of the unembedding's gradient stay in
# VMEM. More tokens would not save traffic of the accumulated gradient, and would skip fewer.
# GPU: matrix products have to be large. Forward, chunks of tokens over any vocabulary at once;
# backward, tiles, as the gradient of the unembedding would otherwise be carried in float32; on an
# H200 these take 0.92 to 0.96 of the time of 2048 x 16384.
_WHOLE = 2**30
TILES = (
    Tiles("cpu", forward=(512, 2048), backward=(512, 2048), wave=(2**24, 2048), search=8),
    Tiles("gpu", forward=(1024, _WHOLE), backward=(4096, 32768), wave=(2**27, _WHOLE), search=None),
    Tiles("tpu", forward=(2048, 2048), backward=(2048, 2048), wave=(2**27, _WHOLE), search=None),
)
# Up to so many logits (32 MiB in float32) a vocabulary of one tile is done at once. The choice of
# the vocabulary's tiles depends only on V: no sum's order depends on N (small products may).
AT_ONCE_VOCABULARY = 2048
_AT_ONCE_LOGITS = 2**23


@dataclass(frozen=True)
class Plan:
    """Statistics to compute and the settings of the computation.

    Fields:
      needs: names of the statistics.
      dtype: of logits and sums.
      softcap, top_k, top_p, include_crossing, min_p: arguments of `token_stats`.
      mesh: None on one device.
      token_axes, vocabulary_axis: axes of the mesh that split tokens and vocabulary, if any.
      implementation: of the streaming sums; None leaves the choice to `dispatch`.
    """

    needs: tuple[str, ...]
    dtype: Any
    softcap: float | None = None
    top_k: int = 0
    top_p: float | None = None
    include_crossing: bool = True
    min_p: float | None = None
    mesh: jax.sharding.Mesh | None = None
    token_axes: tuple[str, ...] = ()
    vocabulary_axis: str | None = None
    implementation: str | None = None


def token_axes(mesh: jax.sharding.Mesh) -> tuple[str, ...]:
    """The axes of a mesh that split tokens."""
    return tuple(axis for axis in ("data", "fsdp") if mesh.shape.get(axis, 1) > 1)


def is_at_once(tokens: int, vocabulary_size: int) -> bool:
    """Whether all logits of a device are so few that loops over tiles cost more than they save."""
    is_small = vocabulary_size <= AT_ONCE_VOCABULARY
    return tokens == 0 or (is_small and tokens * vocabulary_size <= _AT_ONCE_LOGITS)


def by_platform(function: Callable[..., _Result], *operands: Any) -> _Result:
    """function(tiles, *operands) with the tiles of the platform that it is compiled for."""
    cpu, gpu, tpu = (lambda *args, tiles=tiles: function(tiles, *args) for tiles in TILES)
    return jax.lax.platform_dependent(*operands, cpu=cpu, cuda=gpu, rocm=gpu, default=tpu)
