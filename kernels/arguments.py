"""Checks of the arguments of `token_stats`: errors name the argument, the value and the wish."""

import difflib
import math
from collections.abc import Collection, Iterable
from numbers import Integral, Real
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from rlvr_jax.kernels.plan import OtherPolicy, Policy

# Statistics that read an argument of their own.
_READS = {
    "second_logp": "second_temperature",
    "topk_logp": "top_k",
    "topk_ids": "top_k",
    "nucleus_entropy": "top_p",
    "min_p_mass": "min_p",
    "kl": "other",
    "reverse_kl": "other",
    "js": "other",
}
_MOST_TOP_K = 64


def check_names(argument: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Refuses names that are not known, with the closest known ones."""
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(str(name), known) or sorted(known)
            raise ValueError(
                f"token_stats: {argument} must be of {sorted(known)}, got {name!r};"
                f" closest: {', '.join(close)}"
            )


def check_needs(needs: Collection[str], **options: Any) -> None:
    """Refuses statistics whose argument is None."""
    for need, argument in _READS.items():
        if need in needs and options[argument] is None:
            raise ValueError(f"token_stats: {need} must have the argument {argument}, got none")


def check_other(other: Any) -> None:
    """Refuses a second policy that is not given as two arrays."""
    is_sequence = isinstance(other, (tuple, list))
    if other is None or (is_sequence and len(other) == 2):
        return
    size = f" of {len(other)}" if is_sequence else ""
    raise ValueError(
        "token_stats: other must be a pair of hidden states and unembedding, got a"
        f" {type(other).__name__}{size}"
    )


def check_arrays(
    policy: Policy,
    other: OtherPolicy | None,
    targets: Array,
    mask: Array | None,
    nucleus_mask: Array | None,
) -> None:
    """Refuses shapes that do not fit and dtypes of another kind."""
    hidden, unembedding, bias = policy
    _check_matrices("hidden", hidden, "unembedding", unembedding, "D")
    if 0 in unembedding.shape:
        raise ValueError(
            f"token_stats: unembedding [V, D] must have entries, got {unembedding.shape}"
        )
    tokens, entries = ("N", hidden.shape[0]), ("V", unembedding.shape[0])
    vectors = [
        ("targets", targets, tokens, jnp.integer, "integers"),
        ("mask", mask, tokens, jnp.bool_, "bool"),
        ("nucleus_mask", nucleus_mask, tokens, jnp.bool_, "bool"),
        ("bias", bias, entries, jnp.floating, "floating"),
    ]
    for name, array, (letter, size), kind, words in vectors:
        if array is None:
            continue
        if array.shape != (size,):
            raise ValueError(
                f"token_stats: {name} must have shape [{letter}] = ({size},) as hidden"
                f" {hidden.shape} and unembedding {unembedding.shape}, got {array.shape}"
            )
        _check_kind(name, array, kind, words)
    _check_kind("hidden", hidden, jnp.floating, "floating")
    _check_kind("unembedding", unembedding, jnp.floating, "floating")
    if other is None:
        return
    _check_matrices("other[0]", other.hidden, "other[1]", other.unembedding, "E")
    if (other.hidden.shape[0], other.unembedding.shape[0]) != (tokens[1], entries[1]):
        raise ValueError(
            f"token_stats: other must have N = {tokens[1]} hidden states and V = {entries[1]}"
            f" entries, got {other.hidden.shape} and {other.unembedding.shape}"
        )
    for name, array in zip(("other[0]", "other[1]"), other, strict=True):
        _check_kind(name, array, jnp.floating, "floating")


def check_temperature(name: str, temperature: ArrayLike | None, shape: tuple[int, ...]) -> None:
    """Refuses a temperature that is neither one number nor one per token, or not positive."""
    if temperature is None:
        return
    if jnp.shape(temperature) not in ((), shape):
        raise ValueError(
            f"token_stats: {name} must have shape () or [N] = {shape}, got {jnp.shape(temperature)}"
        )
    # One per token may be anything off the mask, and traced values are not known yet.
    is_known = jnp.ndim(temperature) == 0 and not isinstance(temperature, jax.core.Tracer)
    if is_known and not 0 < float(temperature) < math.inf:
        raise ValueError(f"token_stats: {name} must be positive, got {temperature}")


def check_numbers(
    vocabulary_size: int,
    softcap: float | None,
    top_k: int,
    top_p: float | None,
    min_p: float | None,
) -> None:
    """Refuses numbers outside their range."""
    if softcap is not None and not (isinstance(softcap, Real) and 0 < softcap < math.inf):
        raise ValueError(f"token_stats: softcap must be a positive number or None, got {softcap}")
    most = min(_MOST_TOP_K, vocabulary_size)
    is_integer = isinstance(top_k, Integral) and not isinstance(top_k, bool)
    if not (is_integer and 0 <= top_k <= most):
        raise ValueError(f"token_stats: top_k must be an integer from 0 to {most}, got {top_k}")
    for name, fraction in (("top_p", top_p), ("min_p", min_p)):
        if fraction is not None and not (isinstance(fraction, Real) and 0 < fraction <= 1):
            raise ValueError(f"token_stats: {name} must be in (0, 1] or None, got {fraction}")


def _check_matrices(left_name, left, right_name, right, letter):
    if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[1]:
        raise ValueError(
            f"token_stats: {left_name} [N, {letter}] and {right_name} [V, {letter}] must agree in"
            f" {letter}, got {left.shape} and {right.shape}"
        )


def _check_kind(name, array, kind, words):
    if not jnp.issubdtype(array.dtype, kind):
        raise ValueError(f"token_stats: {name} must be {words}, got {array.dtype}")
