"""The mathematics of softmax statistics over a vocabulary that is seen tile by tile.

Every implementation of `token_stats` uses these formulas; they differ in loops and loads only.
With z the logits of a token, m the largest logit seen so far and d = z - m ≤ 0, the sums are

    s0 = Σ e^d    s1 = Σ d e^d    s2 = Σ e^2d    s3 = Σ d e^2d    second = Σ e^rd
    spread = Σ e^d (d - s1/s0)²    total = Σ z

In none of the first six do signs mix, so nothing cancels. When a larger logit m' appears, with
δ = m - m' and a = e^δ:

    s0' = a s0    s1' = a (s1 + δ s0)    s2' = a² s2    s3' = a² (s3 + δ s2)
    second' = a^r second    spread' = a spread

Two parts of a vocabulary, measured from the same logit, are added; the spread also takes the
distance of their means:

    spread = spread_1 + spread_2 + (s1_1/s0_1 - s1_2/s0_2)² s0_1 s0_2 / (s0_1 + s0_2)

At the end p = e^d / s0 and l = log p = d - log s0 give

    logp = z_y - m - log s0    logsumexp = m + log s0    entropy H = log s0 - s1 / s0
    p_squared S = s2 / s0²     p_squared_logp R = (s3 - s2 log s0) / s0²
    varentropy U = spread / s0    max_logp = -log s0    mean_logit = total / V
    second_logp = r (z_y - m) - log second,    r = T / T₂

Backward, with g_x the cotangent of statistic x, one expression serves all statistics at the
temperature T, and a second exponential the one at T₂:

    dL/dz_v = c·1[v = y] + p_v (α + β l_v + ε l_v² + p_v (γ + δ l_v)) - σ e^(r z_v) / Σ e^rz

    σ = r g_second    c = g_logp + σ    ε = g_U    γ = 2 g_S + g_R    δ = 2 g_R
    β = -g_H + 2 g_U (H + 1)
    α = g_logsumexp - g_logp - g_H H - 2 g_S S - g_R (2 R + S) + g_U (H² + 2 H - U)

The numbers c, α, β, γ, δ, ε are one per token, so a tile needs only its logits, these six and
logsumexp. A statistic that is not requested is None and costs nothing.
"""

from collections.abc import Collection
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int

from rlvr_jax.kernels.plan import Statistics

# The statistics that these sums determine: one sweep over the vocabulary, tile by tile.
STREAMING = (
    "logp",
    "logsumexp",
    "entropy",
    "p_squared",
    "p_squared_logp",
    "varentropy",
    "mean_logit",
    "max_logp",
    "max_id",
    "second_logp",
)

# e^LOWEST is 0 in float32 and float64: a clamp there changes no sum, and 0 · LOWEST is 0, not NaN.
LOWEST = -1e4


class Sums(NamedTuple):
    """Sums over the vocabulary entries seen so far; all [n], None where not needed.

    Fields:
      largest: m, the largest logit.
      s0, s1, s2, s3: Σ e^d, Σ d e^d, Σ e^2d, Σ d e^2d with d = z - m.
      target: the logit of the target, 0 as long as it was not seen.
      spread: Σ e^d (d - s1/s0)².
      total: Σ z over the entries that are in the vocabulary (z > -inf).
      max_id: int32, the first entry whose logit is `largest`; 0 as long as there is none.
      second: Σ e^rd.
      second_ratio: r, a constant that is carried along.
    """

    largest: Float[Array, "n"]
    s0: Float[Array, "n"]
    s1: Float[Array, "n"] | None = None
    s2: Float[Array, "n"] | None = None
    s3: Float[Array, "n"] | None = None
    target: Float[Array, "n"] | None = None
    spread: Float[Array, "n"] | None = None
    total: Float[Array, "n"] | None = None
    max_id: Int[Array, "n"] | None = None
    second: Float[Array, "n"] | None = None
    second_ratio: Float[Array, "n"] | None = None


class Coefficients(NamedTuple):
    """The numbers of a token in its logit gradient (see the module); [n], None where zero.

    Fields:
      logsumexp: log Σ e^z, to get log p from a recomputed logit.
      alpha, c, beta: factors of p, 1[v = y], p log p.
      gamma, delta, epsilon: factors of p², p² log p, p (log p)².
      second: factor of e^rz / Σ e^rz.
      second_ratio, second_logsumexp: r and log Σ e^rz.
    """

    logsumexp: Float[Array, "n"]
    alpha: Float[Array, "n"]
    c: Float[Array, "n"] | None = None
    beta: Float[Array, "n"] | None = None
    gamma: Float[Array, "n"] | None = None
    delta: Float[Array, "n"] | None = None
    epsilon: Float[Array, "n"] | None = None
    second: Float[Array, "n"] | None = None
    second_ratio: Float[Array, "n"] | None = None
    second_logsumexp: Float[Array, "n"] | None = None


def logits_and_slope(
    products: Float[Array, "n v"],
    bias: Float[Array, "v"] | None,
    softcap: float | None,
    inverse_temperature: Float[Array, "n"] | None,
) -> tuple[Float[Array, "n v"], Float[Array, "n v"] | None]:
    """Turns products h·w into the logits z of the policy.

        x = h·w + bias,   z = cap tanh(x / cap) / T

    A bias of -inf takes its entry out of the vocabulary, capped or not.

    Returns:
      z, and 1 - tanh²(x / cap), the slope of the cap (None without one). The full derivative is
      dz/dx = slope / T.
    """
    logits, slope = products, None
    if bias is not None:
        logits = logits + bias.astype(logits.dtype)[None, :]
    if softcap is not None:
        bent = jnp.tanh(logits / softcap)
        slope = 1 - bent * bent
        logits = jnp.where(logits == -jnp.inf, logits, softcap * bent)
    if inverse_temperature is not None:
        logits = logits * inverse_temperature[:, None]
    return logits, slope


def start(
    needs: Collection[str],
    size: int,
    dtype: DTypeLike,
    second_ratio: Float[Array, "n"] | None = None,
) -> Sums:
    """Sums of `size` tokens over no vocabulary entry, with the fields that `needs` requires.

    Args:
      needs: names of statistics; those that are not in `STREAMING` require nothing here.
      second_ratio: r = T / T₂, required if `needs` has "second_logp".
    """

    def zeros(*users, dtype=dtype):
        return jnp.zeros(size, dtype) if any(user in needs for user in users) else None

    return Sums(
        # The lowest finite number, not -inf: differences of two of them are numbers.
        largest=jnp.full(size, _lowest(dtype), dtype),
        s0=jnp.zeros(size, dtype),
        s1=zeros("entropy", "varentropy"),
        s2=zeros("p_squared", "p_squared_logp"),
        s3=zeros("p_squared_logp"),
        target=zeros("logp", "second_logp"),
        spread=zeros("varentropy"),
        total=zeros("mean_logit"),
        max_id=zeros("max_id", dtype=jnp.int32),
        second=zeros("second_logp"),
        second_ratio=second_ratio if "second_logp" in needs else None,
    )


def update(
    sums: Sums,
    logits: Float[Array, "n v"],
    target: Float[Array, "n"],
    first: int | Int[Array, ""] = 0,
    *,
    axis: int = 1,
) -> Sums:
    """Adds a tile of the vocabulary.

    Args:
      sums: of the entries before.
      logits: of the tile's entries; -inf takes an entry out. [v, n] if `axis` is 0.
      target: the target's logit, 0 where the target is not in the tile.
      first: id of the tile's first entry; tiles come in ascending order.
      axis: the axis of `logits` that is the vocabulary.
    """

    def spread_out(values):
        return jnp.expand_dims(values, axis)

    tile_largest = jnp.max(logits, axis=axis)
    largest = jnp.maximum(sums.largest, tile_largest)
    # Above 0 only where the compiler recomputed a logit with another rounding.
    shift = jnp.clip(logits - spread_out(largest), LOWEST, 0)
    exp = jnp.exp(shift)
    tile = Sums(largest, jnp.sum(exp, axis=axis), second_ratio=sums.second_ratio)
    if sums.s1 is not None:
        tile = tile._replace(s1=jnp.sum(exp * shift, axis=axis))
    if sums.s2 is not None:
        tile = tile._replace(s2=jnp.sum(exp * exp, axis=axis))
    if sums.s3 is not None:
        tile = tile._replace(s3=jnp.sum(exp * exp * shift, axis=axis))
    if sums.target is not None:
        tile = tile._replace(target=target)
    if sums.spread is not None:
        distance = shift - spread_out(_mean(tile))
        tile = tile._replace(spread=jnp.sum(exp * distance * distance, axis=axis))
    if sums.total is not None:
        inside = jnp.where(logits == -jnp.inf, 0, logits)
        tile = tile._replace(total=jnp.sum(inside, axis=axis))
    if sums.max_id is not None:
        entries = jax.lax.broadcasted_iota(jnp.int32, logits.shape, axis)
        at_largest = jnp.where(logits == spread_out(tile_largest), entries, logits.shape[axis])
        found = jnp.min(at_largest, axis=axis) + jnp.asarray(first, jnp.int32)
        tile = tile._replace(max_id=jnp.where(tile_largest > sums.largest, found, sums.max_id))
    if sums.second is not None:
        exp = _second_exp(spread_out(sums.second_ratio), logits - spread_out(largest))
        tile = tile._replace(second=jnp.sum(exp, axis=axis))
    return _add(_relative_to(largest, sums)._replace(max_id=tile.max_id), tile)


def merge(left: Sums, right: Sums) -> Sums:
    """Sums over the entries of both; the two vocabularies must not overlap."""
    largest = jnp.maximum(left.largest, right.largest)
    both = _add(_relative_to(largest, left), _relative_to(largest, right))
    if left.max_id is None:
        return both
    first = jnp.minimum(left.max_id, right.max_id)
    first = jnp.where(left.largest > right.largest, left.max_id, first)
    first = jnp.where(right.largest > left.largest, right.max_id, first)
    return both._replace(max_id=first)


def merge_parts(parts: Sums) -> Sums:
    """`merge` over the first axis of [2^k, n] sums, in pairs; the parts must not overlap."""
    while (half := parts.s0.shape[0] // 2) > 0:
        low, high = (jax.tree.map(lambda x, at=at: x[at : at + half], parts) for at in (0, half))
        parts = merge(low, high)
    return jax.tree.map(lambda x: x[0], parts)


def merge_shards(sums: Sums, axis_name: str) -> Sums:
    """`merge` over the devices of a mesh axis, each of which has seen its part of the vocabulary.

    One pmax and one psum; a pmin more if `max_id` is there.
    """
    highest = [sums.largest]
    if sums.spread is not None:
        # A common centre near the means, as theirs is not known before the sums are.
        highest.append(sums.largest + _mean(sums))
    largest, *centre = jax.lax.pmax(jnp.stack(highest), axis_name)
    local = _relative_to(largest, sums)
    if sums.spread is not None:
        centre = jnp.clip(centre[0] - largest, LOWEST, 0)
        moved = local.s0 * jnp.square(_mean(local) - centre)
        local = local._replace(spread=local.spread + moved)
    constant = {"largest": largest, "second_ratio": sums.second_ratio, "max_id": None}
    summands = local._replace(**dict.fromkeys(constant))
    leaves, structure = jax.tree.flatten(summands)
    added = jax.tree.unflatten(structure, list(jax.lax.psum(jnp.stack(leaves), axis_name)))
    added = added._replace(**constant)
    if sums.spread is not None:
        moved = added.s0 * jnp.square(_mean(added) - centre)
        added = added._replace(spread=jnp.maximum(added.spread - moved, 0))
    if sums.max_id is not None:
        none = jnp.iinfo(jnp.int32).max
        found = jnp.where(sums.largest == largest, sums.max_id, none)
        added = added._replace(max_id=jax.lax.pmin(found, axis_name))
    return added


def finish(sums: Sums, vocabulary_size: int | Int[Array, ""]) -> Statistics:
    """The statistics that the sums determine, clipped to their mathematical bounds.

    Rounding can carry a statistic an ulp across its bound (a positive log-prob, an entropy below
    0); clamps undo that and nothing else.

    Args:
      vocabulary_size: number of entries in the vocabulary, those of logit -inf not counted.
    """
    size = jnp.asarray(vocabulary_size, sums.s0.dtype)
    log_s0 = jnp.log(sums.s0)
    stats = {"logsumexp": sums.largest + log_s0, "max_logp": jnp.minimum(-log_s0, 0)}
    if sums.target is not None:
        stats["logp"] = jnp.minimum(sums.target - sums.largest - log_s0, 0)
    if sums.s1 is not None:
        stats["entropy"] = jnp.clip(log_s0 - sums.s1 / sums.s0, 0, jnp.log(size))
    if sums.s2 is not None:
        p_squared = sums.s2 / sums.s0 / sums.s0
        stats["p_squared"] = jnp.clip(p_squared, 1 / size, 1)
    if sums.s3 is not None:
        mixed = (sums.s3 - sums.s2 * log_s0) / sums.s0 / sums.s0
        stats["p_squared_logp"] = jnp.minimum(mixed, 0)
    if sums.spread is not None:
        stats["varentropy"] = sums.spread / sums.s0
    if sums.total is not None:
        stats["mean_logit"] = sums.total / size
    if sums.max_id is not None:
        stats["max_id"] = sums.max_id
    if sums.second is not None:
        second = sums.second_ratio * (sums.target - sums.largest) - jnp.log(sums.second)
        stats["second_logp"] = jnp.minimum(second, 0)
    return stats


def second_logsumexp(sums: Sums) -> Float[Array, "n"] | None:
    """log Σ e^rz, which the backward pass of `second_logp` reads; None if that is not needed."""
    if sums.second is None:
        return None
    return sums.second_ratio * sums.largest + jnp.log(sums.second)


def coefficients(
    stats: Statistics,
    cotangents: Statistics,
    inverse_temperature: Float[Array, "n"] | None,
    second_ratio: Float[Array, "n"] | None = None,
    second_logsumexp: Float[Array, "n"] | None = None,
) -> Coefficients:
    """The numbers per token of the backward pass.

    Args:
      stats: result of `finish`.
      cotangents: dL/d(statistic) of the statistics that are requested. Those of statistics
        without a gradient are not looked at.
      inverse_temperature: [n], 1 / T; folded in: dz/dx has this factor.
      second_ratio, second_logsumexp: r and log Σ e^rz, for a cotangent of `second_logp`.
    """
    alpha, factors = jnp.zeros_like(stats["logsumexp"]), {}

    def add(name, value):
        factors[name] = factors[name] + value if name in factors else value

    if "logsumexp" in cotangents:
        alpha = alpha + cotangents["logsumexp"]
    if "logp" in cotangents:
        add("c", cotangents["logp"])
        alpha = alpha - cotangents["logp"]
    if "topk_logp" in cotangents:
        alpha = alpha - jnp.sum(cotangents["topk_logp"], axis=1)
    if "entropy" in cotangents:
        add("beta", -cotangents["entropy"])
        alpha = alpha - cotangents["entropy"] * stats["entropy"]
    if "p_squared" in cotangents:
        add("gamma", 2 * cotangents["p_squared"])
        alpha = alpha - 2 * cotangents["p_squared"] * stats["p_squared"]
    if "p_squared_logp" in cotangents:
        mixed = cotangents["p_squared_logp"]
        add("gamma", mixed)
        add("delta", 2 * mixed)
        alpha = alpha - mixed * (2 * stats["p_squared_logp"] + stats["p_squared"])
    if "varentropy" in cotangents:
        spread, entropy = cotangents["varentropy"], stats["entropy"]
        add("epsilon", spread)
        add("beta", 2 * spread * (entropy + 1))
        alpha = alpha + spread * (entropy * entropy + 2 * entropy - stats["varentropy"])
    if "second_logp" in cotangents:
        add("second", -second_ratio * cotangents["second_logp"])
        add("c", -factors["second"])
    factors["alpha"] = alpha
    if inverse_temperature is not None:
        factors = {name: value * inverse_temperature for name, value in factors.items()}
    if "second_logp" in cotangents:
        factors |= {"second_ratio": second_ratio, "second_logsumexp": second_logsumexp}
    return Coefficients(stats["logsumexp"], **factors)


def logit_gradient(
    numbers: Coefficients,
    logits: Float[Array, "n v"],
    slope: Float[Array, "n v"] | None,
    column: Int[Array, "n"],
) -> Float[Array, "n v"]:
    """dL/dx of a tile, x = h·w + bias being the input of `logits_and_slope`.

    Args:
      numbers: from `coefficients`.
      logits, slope: from `logits_and_slope`.
      column: the target as an index into the tile; outside [0, v) if it is elsewhere.
    """
    logp = jnp.clip(logits - numbers.logsumexp[:, None], LOWEST, 0)
    p = jnp.exp(logp)
    inner = _line(numbers.alpha, numbers.beta, logp)
    if numbers.epsilon is not None:
        inner = inner + numbers.epsilon[:, None] * logp * logp
    if numbers.gamma is not None:
        inner = inner + p * _line(numbers.gamma, numbers.delta, logp)
    gradient = p * inner
    if numbers.second is not None:
        # Clipped first: the ratio of a token that fills up a tile is 0, and a logit may be -inf.
        second = numbers.second_ratio[:, None] * jnp.maximum(logits, _lowest(logits.dtype))
        second = jnp.exp(jnp.clip(second - numbers.second_logsumexp[:, None], LOWEST, 0))
        gradient = gradient + numbers.second[:, None] * second
    if numbers.c is not None:
        entries = jnp.arange(logits.shape[1], dtype=column.dtype)
        is_target = column[:, None] == entries[None, :]
        gradient = gradient + jnp.where(is_target, numbers.c[:, None], 0)
    return gradient if slope is None else gradient * slope


def _line(offset, factor, logp):
    """offset + factor · logp, token by token; without a factor only the offset."""
    return offset[:, None] if factor is None else offset[:, None] + factor[:, None] * logp


def _second_exp(ratio, distance):
    """e^rd, which r may keep far above 0 where d is below LOWEST."""
    # Not -inf: where T₂ is infinite the ratio is 0.
    return jnp.exp(ratio * jnp.clip(distance, _lowest(distance.dtype), 0))


def _lowest(dtype):
    """The lowest finite number."""
    return jnp.finfo(dtype).min


def _mean(sums: Sums):
    """s1 / s0, the mean of d; 0 over entries whose e^d are all 0."""
    return jnp.where(sums.s0 > 0, sums.s1 / jnp.where(sums.s0 > 0, sums.s0, 1), 0)


def _relative_to(largest, sums: Sums) -> Sums:
    """The same sums, measured from a logit that is at least their own largest one."""
    distance = sums.largest - largest
    shift = jnp.clip(distance, LOWEST, 0)
    scale = jnp.exp(shift)
    s1, s2, s3, second = sums.s1, sums.s2, sums.s3, sums.second
    return sums._replace(
        largest=largest,
        s0=scale * sums.s0,
        s1=None if s1 is None else scale * (s1 + shift * sums.s0),
        s2=None if s2 is None else scale * scale * s2,
        s3=None if s3 is None else scale * scale * (s3 + shift * s2),
        spread=None if sums.spread is None else scale * sums.spread,
        second=None if second is None else _second_exp(sums.second_ratio, distance) * second,
    )


def _add(left: Sums, right: Sums) -> Sums:
    """Adds sums that are measured from the same logit; `max_id` stays the right one's."""
    of_right = {
        "largest": right.largest,
        "max_id": right.max_id,
        "second_ratio": right.second_ratio,
    }
    nothing = dict.fromkeys(of_right)
    total = jax.tree.map(jnp.add, left._replace(**nothing), right._replace(**nothing))
    if total.spread is not None:
        fraction = left.s0 / jnp.where(total.s0 > 0, total.s0, 1)
        between = fraction * right.s0 * jnp.square(_mean(left) - _mean(right))
        total = total._replace(spread=total.spread + between)
    return total._replace(**of_right)
