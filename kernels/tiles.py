"""Loops over tiles of tokens and of the vocabulary, and the matrix products inside them."""

import itertools
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int, UInt

from rlvr_jax.kernels import algebra
from rlvr_jax.kernels.plan import Plan, Tokens

_Tree = TypeVar("Tree")
_Carry = TypeVar("Carry")
_First = int | Int[Array, ""]


# Terms that a bfloat16 product on a CPU adds up at once. Of 4096 terms, the error of a logit is
# 2e-5 in one sum, 1e-5 in sums of 1024, and 5e-6 in float32. All take the same time.
_LONGEST_SUM = 1024


class Rows(NamedTuple):
    """An order of tokens that has the active ones in front, so that a loop can stop after them.

    Fields:
      order: [M], the token of each row, M being N rounded up to tiles; N where there is none.
        None if all tokens are active: they are taken as they come, and hidden states not copied.
      place: [N], the row of each token; M if it has none. None with `order`.
      num_tiles: how many tiles hold active tokens; a traced number.
      num_tokens, num_rows: N and M.
      most_tiles: of M rows.
    """

    order: Int[Array, "M"] | None
    place: Int[Array, "N"] | None
    num_tiles: Int[Array, ""]
    num_tokens: int
    num_rows: int
    most_tiles: int


def active_first(active: Bool[Array, "N"] | None, num_tokens: int, tile: int) -> Rows:
    """Rows for tiles of `tile` tokens; inactive tokens have none. None: all are active."""
    num_tiles = -(-num_tokens // tile)
    num_rows = num_tiles * tile
    if active is None:
        return Rows(None, None, jnp.int32(num_tiles), num_tokens, num_rows, num_tiles)
    count = jnp.sum(active, dtype=jnp.int32)
    index = jnp.arange(num_tokens, dtype=jnp.int32)
    order = jnp.argsort(~active, stable=True).astype(jnp.int32)
    place = jnp.zeros(num_tokens, jnp.int32).at[order].set(index)
    place = jnp.where(active, place, num_rows)
    order = jnp.where(index < count, order, num_tokens)
    order = jnp.pad(order, (0, num_rows - num_tokens), constant_values=num_tokens)
    filled = (count + tile - 1) // tile
    return Rows(order, place, filled, num_tokens, num_rows, num_tiles)


def take(rows: Rows, tree: _Tree, fill: int = 0) -> _Tree:
    """Every array's entries in the order of `rows`, with `fill` in rows without a token."""

    def taken(x):
        if rows.order is not None:
            return x.at[rows.order].get(mode="fill", fill_value=fill)
        if rows.num_rows == rows.num_tokens:
            return x
        padding = ((0, rows.num_rows - rows.num_tokens), *[(0, 0)] * (x.ndim - 1))
        return jnp.pad(x, padding, constant_values=fill)

    return jax.tree.map(taken, tree)


def take_tokens(rows: Rows, tokens: Tokens) -> Tokens:
    """`take` with 1 for factors of logits: a logit may be -inf."""
    scales = take(rows, (tokens.inverse_temperature, tokens.second_ratio), fill=1)
    inverse_temperature, second_ratio = scales
    return take(rows, tokens)._replace(
        inverse_temperature=inverse_temperature, second_ratio=second_ratio
    )


def put_back(rows: Rows, tree: _Tree) -> _Tree:
    """The inverse of `take`: every token's entry, 0 for tokens that have no row."""

    def put(x):
        if rows.place is None:
            return x[: rows.num_tokens]
        return x.at[rows.place].get(mode="fill", fill_value=0)

    return jax.tree.map(put, tree)


def tile_of(tree: _Tree, first: _First, size: int) -> _Tree:
    """Rows [first, first + size) of every array in the tree."""
    return jax.tree.map(lambda x: jax.lax.dynamic_slice_in_dim(x, first, size), tree)


def write(tree: _Tree, tile: _Tree, first: _First) -> _Tree:
    """The tree with the tile's rows put at `first`, in the tree's dtypes."""
    return jax.tree.map(
        lambda x, t: jax.lax.dynamic_update_slice_in_dim(x, t.astype(x.dtype), first, axis=0),
        tree,
        tile,
    )


def fold_tokens(step: Callable[[_First, _Carry], _Carry], carry: _Carry, rows: Rows) -> _Carry:
    """Folds step(number of the tile, carry) over the tiles that hold active tokens."""
    most = jnp.int32(rows.most_tiles)

    def holds_some(counted):
        index, _ = counted
        # The second bound is never the first to be met: it tells readers of the compiled program
        # how often the loop runs at most.
        return (index < rows.num_tiles) & (index < most)

    def one_tile(counted):
        index, carry = counted
        return index + 1, step(index, carry)

    return jax.lax.while_loop(holds_some, one_tile, (jnp.int32(0), carry))[1]


def fold_vocabulary(
    step: Callable[[_Carry, _First, int], _Carry], carry: _Carry, vocabulary_size: int, tile: int
) -> _Carry:
    """Folds step(carry, first entry, number of entries) over whole tiles and the remainder.

    The remainder is one static slice: neither masks nor a padded copy of the unembedding.
    """
    num_tiles, remainder = divmod(vocabulary_size, tile)

    def whole_tile(index, carry):
        return step(carry, index * tile, tile)

    if num_tiles == 1:
        carry = step(carry, jnp.int32(0), tile)
    elif num_tiles:
        carry = jax.lax.fori_loop(jnp.int32(0), jnp.int32(num_tiles), whole_tile, carry)
    if remainder:
        carry = step(carry, jnp.int32(num_tiles * tile), remainder)
    return carry


class Entries(NamedTuple):
    """A tile of the unembedding, as operand of products.

    Fields:
      rows: [v, D].
      columns: [D, v], transposed in memory; None if products read `rows` in that order as fast.
    """

    rows: Float[Array, "v D"]
    columns: Float[Array, "D v"] | None = None


def working_dtype(plan: Plan, *matrices: Array) -> DTypeLike:
    """The dtype of the operands of matrix products: bfloat16 where all are."""
    is_bfloat16 = all(matrix.dtype == jnp.bfloat16 for matrix in matrices)
    return jnp.bfloat16 if is_bfloat16 else plan.dtype


def viewed(matrix: Float[Array, "V D"], platform: str) -> Float[Array, "V D"] | UInt[Array, "V D"]:
    """The matrix in the form that loops slice.

    XLA on CPU widens a whole bfloat16 matrix if a loop slices it. It does not widen its bits.
    """
    if platform == "cpu" and matrix.dtype == jnp.bfloat16:
        return jax.lax.bitcast_convert_type(matrix, jnp.uint16)
    return matrix


def entries_of(
    view: Float[Array, "V D"] | UInt[Array, "V D"],
    first: _First,
    size: int,
    dtype: DTypeLike,
) -> Entries:
    """Rows [first, first + size) of the result of `viewed`, as numbers of `dtype`."""
    tile = jax.lax.dynamic_slice_in_dim(view, first, size)
    if need_columns(view, dtype):
        rows = jax.lax.bitcast_convert_type(tile, jnp.bfloat16)
        return Entries(rows, transposed(rows))
    if tile.dtype == jnp.uint16:
        bits = tile.astype(jnp.uint32) << 16
        tile = jax.lax.bitcast_convert_type(bits, jnp.float32)
    return Entries(tile.astype(dtype))


def need_columns(view: Array, dtype: DTypeLike) -> bool:
    """Whether products of a result of `viewed` need transposed copies: in bfloat16 on a CPU.

    XLA has these products only of matrices as they lie in memory.
    """
    return view.dtype == jnp.uint16 and dtype == jnp.bfloat16


def transposed(matrix: Float[Array, "N D"]) -> Float[Array, "D N"]:
    """The transposed matrix in memory: XLA does not look through the loop."""
    width = matrix.shape[1]
    half = -(-width // 2)

    def part(first):
        return jax.lax.dynamic_slice_in_dim(matrix, first, half, axis=1).T

    first, second = jax.lax.map(part, jnp.array([0, width - half]))
    return jnp.concatenate([first, second[2 * half - width :]])


def narrowed(tile: Array, view: Array) -> Array:
    """Numbers in the form in which `view` holds them."""
    if view.dtype == jnp.uint16:
        return jax.lax.bitcast_convert_type(tile.astype(jnp.bfloat16), jnp.uint16)
    return tile.astype(view.dtype)


def product(plan: Plan, left: Array, right: Array, contracted: tuple[int, int]) -> Array:
    """Matrix product over the two axes, accumulated in the plan's dtype.

    Accelerators round float32 operands to fewer bits by default.
    """
    precision = None if left.dtype == jnp.bfloat16 else jax.lax.Precision.HIGHEST
    dimensions = (((contracted[0],), (contracted[1],)), ((), ()))
    return jax.lax.dot_general(
        left, right, dimensions, precision=precision, preferred_element_type=plan.dtype
    )


def logits_of(
    plan: Plan,
    hidden: Float[Array, "n D"],
    entries: Entries,
    bias: Float[Array, "v"] | None,
    inverse_temperature: Float[Array, "n"] | None,
) -> tuple[Float[Array, "n v"], Float[Array, "n v"] | None]:
    """Logits and the slope of their cap, of operands of one dtype."""
    if entries.columns is None:
        products = product(plan, hidden, entries.rows, (1, 1))
    else:
        width = hidden.shape[1]
        parts = -(-width // _LONGEST_SUM)
        bounds = [width * part // parts for part in range(parts + 1)]
        products = sum(
            product(plan, hidden[:, first:last], entries.columns[first:last], (1, 0))
            for first, last in itertools.pairwise(bounds)
        )
    return algebra.logits_and_slope(products, bias, plan.softcap, inverse_temperature)
