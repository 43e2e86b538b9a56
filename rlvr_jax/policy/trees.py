"""Rollouts as trees: the common prefixes of rows are computed once, in scoring and in updates.

    rows    prompt a b c d e f       blocks of 2    [prompt a] [b c] [d e] [f]
            prompt a b c g h                                         [g h]

Turns of an agent, branches and chunks begin with tokens of other rows. On the host, `prefix_tree`
cuts rows into blocks of Q tokens. Two blocks are one if their tokens and all earlier blocks are
equal. The blocks of a batch are therefore the nodes of a trie, and each is computed once. This is
the prefix cache of inference servers, with a gradient. Rows that end early have fewer blocks.

The model reads blocks [R, S, Q]. A token attends to the blocks on its path from the root, and to
earlier tokens of its block. Its position is its depth. Up to four (`STRIP`) consecutive blocks of a
row are a strip, and the keys of a strip are gathered by its path. The queries belong to the last of
these keys. This is causal attention, for which every implementation serves.

Objectives read [B, T] arrays. The place t of a row reads the hidden state `node`, that of the token
before it. A statistic belongs to a node and a target: where branches begin, one state has several
targets. Each pair is computed at one place, the `twin` of the others. The gathers are linear, so
the gradient of a common token is the sum over its rows. Each pair has its own entropy.

S is the only shape that depends on the tokens. It is rounded up to one of few sizes (`SIZES`).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from rlvr_jax.policy.attention import STRIP
from rlvr_jax.types import Rollouts

SIZES = tuple(2.0 ** (-quarter / 4) for quarter in range(24, -1, -1))
"""Numbers of blocks that functions are compiled for, in parts of what rows without a common prefix
need: at most a sixth of the blocks is empty."""

SMALLEST, LARGEST = 8, 128
"""Bounds of the tokens of a block."""


class PrefixTree(NamedTuple):
    """The trees of the rows of R equal parts of a batch, one part after the other.

    Fields:
      tokens: of blocks.
      path: of each strip -1, then the blocks from the root to its last block.
      slot: of each block in the strips, of which each has the last ones of its path.
      node: token of the part's blocks whose state predicts the place.
      twin: place of the part with the statistics of this one: itself, or one of the same node,
        target and temperature.
    """

    tokens: Int[Array, "R S Q"]
    path: Int[Array, "R N D"]
    slot: Int[Array, "R S"]
    node: Int[Array, "B T"]
    twin: Int[Array, "B T"]


def prefix_tree(rollouts: Rollouts, parts: int, block: int) -> PrefixTree:
    """The trees of rollouts, in arrays of numpy.

    Args:
      rollouts: arrays of numpy.
      parts: parts of the rows that share nothing with each other: micro-batches of devices.
      block: tokens of a block.
    """
    lines, ends = _lines(rollouts)
    rows, width = lines.shape
    depth = -(-width // block)
    lines = np.pad(lines, ((0, 0), (0, depth * block - width)), constant_values=-1)
    own = rows // parts
    made = [
        _blocks(lines[first : first + own], ends[first : first + own], block)
        for first in range(0, rows, own)
    ]
    count = _rounded(max(len(part.tokens) for part in made), own * depth)
    strip = min(STRIP, depth)
    # As many strips as rows can need that have so many blocks together.
    strips = (count + own * (strip - 1)) // strip
    tokens = np.zeros((parts, count, block), np.int32)
    path = np.full((parts, strips, depth), -1, np.int32)
    slot = np.zeros((parts, count), np.int32)
    for number, part in enumerate(made):
        tokens[number, : len(part.tokens)] = part.tokens
        path[number, : len(part.path)] = part.path
        slot[number, : len(part.slot)] = part.slot
    ids = np.concatenate([part.ids for part in made])
    places = np.arange(rollouts.tokens.shape[1])[None] + rollouts.prompt_length[:, None] - 1
    needed = places < ends[:, None]
    places = np.where(needed, places, 0)
    node = np.take_along_axis(ids, places // block, axis=1) * block + places % block
    node = np.where(needed, node, 0).astype(np.int32)
    return PrefixTree(tokens, path, slot, node, _twins(rollouts, node, parts))


def _lines(rollouts: Rollouts) -> tuple[np.ndarray, np.ndarray]:
    """Tokens of each row that predict a token, prompt and response without a gap, then -1; and
    how many there are. A row without a scored token has none."""
    start, tokens = np.asarray(rollouts.prompt_length)[:, None], np.asarray(rollouts.tokens)
    prompts, budget = np.asarray(rollouts.prompt_tokens), tokens.shape[1]
    read = np.asarray(rollouts.mask) | np.asarray(rollouts.scored)
    last = np.where(read.any(axis=1), budget - read[:, ::-1].argmax(axis=1), 0)
    ends = np.where(last > 0, start[:, 0] + last - 1, 0)
    places = np.arange(prompts.shape[1] + budget - 1)[None]
    inside = np.clip(places - start, 0, budget - 1)
    response = np.take_along_axis(tokens, inside, axis=1)
    prompt = np.take_along_axis(prompts, np.minimum(places, prompts.shape[1] - 1), axis=1)
    lines = np.where(places < start, prompt, response)
    return np.where(places < ends[:, None], lines, -1).astype(np.int32), ends


class _Blocks(NamedTuple):
    """Blocks of rows: as in a `PrefixTree`, and the block of each row at each depth."""

    tokens: np.ndarray
    path: np.ndarray
    slot: np.ndarray
    ids: np.ndarray


def _blocks(lines: np.ndarray, ends: np.ndarray, size: int) -> _Blocks:
    """The blocks of the rows of a part.

    In the order of their tokens, rows with a common prefix are adjacent, and a row that ends
    earlier comes first. So a row shares its blocks with the next one: the whole ones that
    are equal, or all if the next row goes on where it ends.
    """
    rows, depth = len(lines), lines.shape[1] // size
    strip = min(STRIP, depth)
    # Bytes are compared from the first one on.
    order = np.argsort(np.ascontiguousarray(lines + 1, ">i4").view(f"V{4 * lines.shape[1]}")[:, 0])
    number = -(-ends // size)
    ids = np.zeros((rows, depth), np.int32)
    tokens, path, slot = [np.zeros((0, size), np.int32)], [], []
    count, after = 0, None
    for row in order[::-1]:
        common, end = 0, number[row]
        if after is not None:
            equal = lines[row] == lines[after]
            same = len(equal) if equal.all() else int(equal.argmin())
            common = end if same >= ends[row] else same // size
            ids[row, :common] = ids[after, :common]
        after = row
        ids[row, common:end] = count + np.arange(end - common)
        count += end - common
        tokens.append(lines[row, common * size : end * size].reshape(-1, size))
        for first in range(common, end, strip):
            last = min(first + strip, end)
            slot += range((len(path) + 1) * strip - (last - first), (len(path) + 1) * strip)
            path.append(np.pad(ids[row, :last], (depth - last, 0), constant_values=-1))
    tokens = np.maximum(np.concatenate(tokens), 0)
    return _Blocks(tokens, np.reshape(path, (-1, depth)), np.array(slot, np.int32), ids)


def _twins(rollouts: Rollouts, node: np.ndarray, parts: int) -> np.ndarray:
    """For each place the first of its part with its node, target and temperature."""
    scored = np.asarray(rollouts.scored).reshape(parts, -1)
    heat, place = np.asarray(rollouts.temperature), np.arange(scored.shape[1], dtype=np.int32)
    keys = np.stack([node, np.asarray(rollouts.tokens)]).astype(np.int64)
    if (heat != heat.flat[0]).any():
        keys = np.concatenate(
            [keys, np.unique(heat, return_inverse=True)[1].reshape(1, *node.shape)]
        )
    # One number of each place, by mixed radix.
    key = np.zeros(node.shape, np.int64)
    for each in keys:
        key = key * (int(each.max()) + 1) + each
    twin = np.broadcast_to(place, scored.shape).copy()
    for part, own in enumerate(scored):
        there = np.flatnonzero(own)
        _, first, which = np.unique(
            key.reshape(parts, -1)[part, there], return_index=True, return_inverse=True
        )
        twin[part, there] = there[first][which]
    return twin.reshape(node.shape)


def _rounded(count: int, most: int) -> int:
    """The smallest of `SIZES` parts of `most` blocks with at least `count`."""
    sizes = (max(int(np.ceil(part * most)), 1) for part in SIZES)
    return next(size for size in sizes if size >= count)


def block_size(prompt: int, response: int) -> int:
    """Tokens of a block: an eighth of a response, at least a 64th of a row, as a power of two.

    A row computes up to a block too much at its end, and another where it branches off. Keys are
    copied for each strip.
    """
    wanted = max(response / 8, (prompt + response) / 64, SMALLEST)
    return 2 ** int(np.log2(min(wanted, LARGEST)))


def taken(arrays: Any, index: Int[Array, "B T"], parts: int) -> Any:
    """Elements of each part's arrays [R, N, …] or [B, T, …], by their numbers in the part."""
    own = index.reshape(parts, -1)

    def take(x):
        of_part = x.reshape(parts, -1, *x.shape[2:])
        return jax.vmap(lambda x, i: x[i])(of_part, own).reshape(*index.shape, *x.shape[2:])

    return jax.tree.map(take, arrays)


def block_positions(tree: PrefixTree) -> Int[Array, "R N"]:
    """The position of each token of the blocks: its depth."""
    strip = min(STRIP, tree.path.shape[2])
    ends = jnp.sum(tree.path >= 0, axis=2, dtype=jnp.int32)
    of_block, place = tree.slot // strip, tree.slot % strip
    # Unused blocks have the slot of a block, and anything may be in them.
    depth = jnp.take_along_axis(ends, of_block, axis=1) - strip + place
    size = tree.tokens.shape[2]
    positions = depth[:, :, None] * size + jnp.arange(size, dtype=jnp.int32)[None, None]
    return positions.reshape(len(positions), -1)


def computed_places(tree: PrefixTree) -> Bool[Array, "B T"]:
    """The places whose statistics are computed there."""
    parts = tree.tokens.shape[0]
    place = jnp.arange(tree.twin.size // parts, dtype=tree.twin.dtype)
    return (tree.twin.reshape(parts, -1) == place[None]).reshape(tree.twin.shape)
