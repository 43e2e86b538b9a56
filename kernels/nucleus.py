"""Entropy of the nucleus, the smallest set of tokens whose mass reaches top_p.

Let e = e^d relative to the largest logit and s0 = Σ e. The nucleus is {v: e_v ≥ t}, with t the
largest number such that Σ e 1[e ≥ t] ≥ top_p s0. Equal probabilities are in or out together, and
the vocabulary needs no order. The search bisects the bits of t. Numbers ≥ 0 have the order of their
bits, so the search finds the exact threshold, after 30 rounds in float32.

With n0, n1 = Σ e, Σ e d over the nucleus:

    H = log n0 - n1 / n0      dH/dz_v = -q_v (log q_v + H),  q = p / (mass of the nucleus) inside it

The set is a constant of the gradient. Some definitions exclude the token that reaches top_p: the
nucleus is then {v: e_v > t} and can be empty, with H = 0.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.kernels.algebra import LOWEST

_Total = Callable[..., Array]


class Nucleus(NamedTuple):
    """Residuals of the backward pass, or its numbers per token; all [n].

    Fields:
      threshold: a log-prob between those inside and outside. Another rounding of a logit does not
        move it across.
      log_mass: log of the nucleus' probability.
      entropy: H.
      factor: -dL/dH, with the factor 1 / T of dz/dx; None in the forward pass.
    """

    threshold: Float[Array, "n"]
    log_mass: Float[Array, "n"]
    entropy: Float[Array, "n"]
    factor: Float[Array, "n"] | None = None


def entropy(
    exp: Float[Array, "n V"],
    shift: Float[Array, "n V"],
    s0: Float[Array, "n"],
    top_p: float,
    total: _Total,
    *,
    group: int | None = None,
    include_crossing: bool = True,
) -> Nucleus:
    """Finds the nucleus and its entropy.

    Args:
      include_crossing: whether the tokens at the threshold belong to it.
      group: rows to search at a time, a divisor of n; None is all.
      exp, shift: e^d and d, where d is a logit minus the largest one. Removed entries of the
        vocabulary have an `exp` of 0 and any finite `shift`.
      s0: Σ e^d over the whole vocabulary.
      total: function that sums [n, V] to [n], over all devices that have a part of the
        vocabulary.
    """
    search = partial(threshold_of, total=total)
    if group is None or group >= s0.shape[0]:
        threshold = search((exp, top_p * s0))
    else:
        groups = jax.tree.map(lambda x: x.reshape(-1, group, *x.shape[1:]), (exp, top_p * s0))
        threshold = jax.lax.map(search, groups).reshape(-1)
    if include_crossing:
        inside = exp >= threshold[:, None]
        smallest, largest_outside = threshold, total(jnp.where(inside, 0, exp), jnp.max)
    else:
        inside = exp > threshold[:, None]
        smallest, largest_outside = -total(jnp.where(inside, -exp, -jnp.inf), jnp.max), threshold
    n0 = total(jnp.where(inside, exp, 0))
    n1 = total(jnp.where(inside, exp * shift, 0))
    is_empty = n0 == 0
    n0 = jnp.where(is_empty, 1, n0)
    log_s0, log_n0 = jnp.log(s0), jnp.log(n0)
    middle = (jnp.log(smallest) + jnp.log(largest_outside)) / 2
    return Nucleus(
        # No log-prob reaches the threshold of an empty nucleus.
        threshold=jnp.where(is_empty, 1, middle - log_s0),
        log_mass=log_n0 - log_s0,
        # 0 · s0 and not 0: a row of NaN has no entry at any threshold and stays NaN.
        entropy=jnp.where(is_empty, 0 * s0, jnp.maximum(log_n0 - n1 / n0, 0)),
    )


def threshold_of(
    row: tuple[Float[Array, "n V"], Float[Array, "n"]], total: _Total
) -> Float[Array, "n"]:
    """The largest t with Σ e 1[e ≥ t] ≥ wanted, from (e, wanted)."""
    exp, wanted = row
    dtype = exp.dtype
    integer = jnp.int64 if dtype == jnp.float64 else jnp.int32

    def halve(_, bounds):
        low, high = bounds
        middle = low + (high - low) // 2
        threshold = jax.lax.bitcast_convert_type(middle, dtype)
        reached = total(jnp.where(exp >= threshold[:, None], exp, 0)) >= wanted
        return jnp.where(reached, middle, low), jnp.where(reached, high, middle)

    above_one = jax.lax.bitcast_convert_type(jnp.ones((), dtype), integer) + 1
    bounds = jnp.zeros(wanted.shape, integer), jnp.full(wanted.shape, above_one)
    # The bits of 1.0 are below 2^30 in float32 and below 2^62 in float64.
    rounds = 62 if dtype == jnp.float64 else 30
    low, _ = jax.lax.fori_loop(jnp.int32(0), jnp.int32(rounds), halve, bounds)
    return jax.lax.bitcast_convert_type(low, dtype)


def coefficients(
    nucleus: Nucleus,
    cotangent: Float[Array, "n"],
    inverse_temperature: Float[Array, "n"] | None,
) -> Nucleus:
    """`nucleus` with its factor set."""
    factor = -cotangent
    if inverse_temperature is not None:
        factor = factor * inverse_temperature
    return nucleus._replace(factor=factor)


def logit_gradient(numbers: Nucleus, logp: Float[Array, "n v"]) -> Float[Array, "n v"]:
    """dL/dz of a tile, from log p over the whole vocabulary."""
    own = jnp.clip(logp - numbers.log_mass[:, None], LOWEST, 0)
    inner = numbers.factor[:, None] * (own + numbers.entropy[:, None])
    return jnp.where(logp >= numbers.threshold[:, None], jnp.exp(own) * inner, 0)
