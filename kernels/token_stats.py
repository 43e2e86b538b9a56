"""What a policy says about tokens, from its last hidden states, without storing the logits."""

import difflib
import math
from collections.abc import Collection
from numbers import Real

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.kernels import reference, xla
from rlvr_jax.types import TokenStats

__all__ = ["token_stats"]

STATISTICS = ("logp", "logsumexp", "entropy", "p_squared", "p_squared_logp")
IMPLEMENTATIONS = {"reference": reference.statistics, "xla": xla.statistics}


def token_stats(
    hidden: Float[Array, "N D"],
    unembedding: Float[Array, "V D"],
    targets: Int[Array, "N"],
    *,
    needs: Collection[str],
    mask: Bool[Array, "N"] | None = None,
    temperature: float | Float[Array, ""] | Float[Array, "N"] = 1.0,
    softcap: float | None = None,
    bias: Float[Array, "V"] | None = None,
    implementation: str | None = None,
) -> TokenStats:
    """Computes log-prob, entropy and other vocabulary sums of tokens from hidden states.

        z = cap tanh((h·w + bias) / cap) / T,   p = softmax z,   l = log p
        logp = l_y   logsumexp = log Σ e^z   entropy = -Σ p l   p_squared = Σ p²
        p_squared_logp = Σ p² l

    All are in nats. Logits and sums are float32, whatever the inputs are; float64 if one of
    hidden and unembedding is. logp ≤ 0 and 0 ≤ entropy ≤ log V hold exactly. Gradients go to
    hidden, unembedding and bias. Reverse mode only, except for "reference". Over several devices,
    call it inside `jax.shard_map(..., check_vma=False)`: left to itself, the compiler gathers
    hidden states for the loops over tiles.

    Args:
      hidden: the model's last hidden states.
      unembedding: output embedding, in the layout of Hugging Face and tied embeddings.
      targets: the tokens of `logp`. A target outside [0, V) makes its own logp NaN, without
        gradient through it; all else is as if the target were good.
      needs: names of the statistics to compute, of the fields of `TokenStats`.
      mask: tokens off it get 0 in every statistic and no gradient, whatever their other
        arguments hold (NaN included). With V above a tile they cost nothing.
      temperature: T > 0, one or one per token; no gradient.
      softcap: the cap of the logits, if the model has one.
      bias: added to h·w, before the cap. -inf takes an entry out of the vocabulary.
      implementation: "reference" keeps all logits; "xla" keeps tiles of them. None picks by
        platform: "xla" on all.

    Returns:
      `TokenStats` with [N] arrays for `needs` and None elsewhere.

    Raises:
      ValueError: a name in needs or implementation that is not known; shapes that do not fit;
        hidden or unembedding not floating, targets not integers, mask not bool; a temperature or
        softcap that is not positive.
    """
    hidden, unembedding, targets = map(jnp.asarray, (hidden, unembedding, targets))
    mask, bias = (None if x is None else jnp.asarray(x) for x in (mask, bias))
    _check_names("needs", needs, STATISTICS)
    implementation = "xla" if implementation is None else implementation
    _check_names("implementation", [implementation], IMPLEMENTATIONS)
    _check_arrays(hidden, unembedding, targets, mask, bias)
    _check_numbers(temperature, softcap, hidden.shape[0])

    is_double = jnp.float64 in (hidden.dtype, unembedding.dtype)
    dtype = jnp.dtype(jnp.float64 if is_double else jnp.float32)
    targets = targets.astype(jnp.int32)
    if isinstance(temperature, Real) and temperature == 1:
        temperature = None
    else:
        temperature = jax.lax.stop_gradient(jnp.asarray(temperature, dtype))
        temperature = jnp.broadcast_to(temperature, targets.shape)
    if mask is not None:
        hidden = jnp.where(mask[:, None], hidden, 0)
        targets = jnp.where(mask, targets, 0)
        temperature = None if temperature is None else jnp.where(mask, temperature, 1)
    stats = IMPLEMENTATIONS[implementation](
        hidden,
        unembedding,
        bias,
        targets,
        mask,
        temperature,
        needs=tuple(name for name in STATISTICS if name in needs),
        softcap=None if softcap is None else float(softcap),
        dtype=dtype,
    )
    if mask is None:
        return stats
    return jax.tree.map(lambda value: jnp.where(mask, value, 0), stats)


def _check_names(argument, names, known):
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(str(name), known) or sorted(known)
            raise ValueError(
                f"token_stats: {argument} must be of {sorted(known)}, got {name!r};"
                f" closest: {', '.join(close)}"
            )


def _check_arrays(hidden, unembedding, targets, mask, bias):
    if hidden.ndim != 2 or unembedding.ndim != 2 or hidden.shape[1] != unembedding.shape[1]:
        raise ValueError(
            "token_stats: hidden [N, D] and unembedding [V, D] must agree in D, got"
            f" {hidden.shape} and {unembedding.shape}"
        )
    if 0 in unembedding.shape:
        raise ValueError(
            f"token_stats: unembedding [V, D] must have entries, got {unembedding.shape}"
        )
    for name, array, letter, size, other in (
        ("targets", targets, "N", hidden.shape[0], f"hidden {hidden.shape}"),
        ("mask", mask, "N", hidden.shape[0], f"hidden {hidden.shape}"),
        ("bias", bias, "V", unembedding.shape[0], f"unembedding {unembedding.shape}"),
    ):
        if array is not None and array.shape != (size,):
            raise ValueError(
                f"token_stats: {name} must have shape [{letter}] = ({size},) as {other}, got"
                f" {array.shape}"
            )
    for name, array, kind, words in (
        ("hidden", hidden, jnp.floating, "floating"),
        ("unembedding", unembedding, jnp.floating, "floating"),
        ("bias", bias, jnp.floating, "floating"),
        ("targets", targets, jnp.integer, "integers"),
        ("mask", mask, jnp.bool_, "bool"),
    ):
        if array is not None and not jnp.issubdtype(array.dtype, kind):
            raise ValueError(f"token_stats: {name} must be {words}, got {array.dtype}")


def _check_numbers(temperature, softcap, tokens):
    shape = jnp.shape(temperature)
    if shape not in ((), (tokens,)):
        raise ValueError(
            f"token_stats: temperature must have shape () or [N] = ({tokens},), got {shape}"
        )
    if isinstance(temperature, Real) and not 0 < temperature < math.inf:
        raise ValueError(f"token_stats: temperature must be positive, got {temperature}")
    if softcap is not None and not (isinstance(softcap, Real) and 0 < softcap < math.inf):
        raise ValueError(f"token_stats: softcap must be a positive number or None, got {softcap}")
