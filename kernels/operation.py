"""The differentiable operation of `token_stats`, on one device or over a mesh.

One custom VJP combines the streaming sums of any implementation, the statistics of rows and the
one backward pass. With a mesh, each pass is a `shard_map`: tokens are split over data and fsdp, the
vocabulary over tensor. Automatic partitioning would gather hidden states and the unembedding for
the loops over tiles. Devices exchange one pmax and one psum of numbers per token in the forward
pass, and a psum of the gradients in the backward pass.
"""

import dataclasses
import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Float, Int

from rlvr_jax.kernels import algebra, dispatch, gradients, nucleus, rows, second_policy, top
from rlvr_jax.kernels.nucleus import Nucleus
from rlvr_jax.kernels.plan import (
    ROWS,
    OtherPolicy,
    Plan,
    Policy,
    Statistics,
    Tokens,
    token_axes,
)

DIFFERENTIABLE = (
    "logp",
    "logsumexp",
    "entropy",
    "p_squared",
    "p_squared_logp",
    "varentropy",
    "topk_logp",
    "nucleus_entropy",
    "kl",
    "reverse_kl",
    "js",
    "second_logp",
)


class _Saved(NamedTuple):
    """Residuals of the forward pass, [N] each; 0 for inactive tokens.

    Fields:
      stats: all that was computed, more than was requested.
      second_logsumexp: see `algebra.second_logsumexp`.
      nucleus, other_logsumexp, pull: see `rows.RowStats`.
    """

    stats: Statistics
    second_logsumexp: Float[Array, "N"] | None
    nucleus: Nucleus | None
    other_logsumexp: Float[Array, "N"] | None
    pull: Float[Array, "N"] | None


_VOCABULARY_AXIS = "tensor"


def on_mesh(plan: Plan, mesh: Mesh | None, policy: Policy) -> Plan:
    """`plan` with the axes of the mesh that split anything."""
    if mesh is None or mesh.size == 1:
        return plan
    parts = mesh.shape.get(_VOCABULARY_AXIS, 1)
    if policy.unembedding.shape[0] % parts:
        raise ValueError(
            f"token_stats: the mesh axis {_VOCABULARY_AXIS} must divide the vocabulary, got size"
            f" {parts} and V = {policy.unembedding.shape[0]}. Pad the unembedding, with a bias of"
            " -inf for the added entries"
        )
    vocabulary_axis = _VOCABULARY_AXIS if parts > 1 else None
    return dataclasses.replace(
        plan, mesh=mesh, token_axes=token_axes(mesh), vocabulary_axis=vocabulary_axis
    )


def statistics(plan: Plan, policy: Policy, other: OtherPolicy | None, tokens: Tokens) -> Statistics:
    """The statistics `plan.needs`; those of inactive tokens are 0. Reverse mode only.

    Args:
      policy, other, tokens: of all devices. Inactive tokens are added until the mesh divides
        their number.
    """
    size = policy.hidden.shape[0]
    missing = -size % math.prod(plan.mesh.shape[axis] for axis in plan.token_axes)
    if missing:
        if tokens.active is None:
            tokens = tokens._replace(active=jnp.ones(size, bool))

        def filled(x, value=0):
            padding = ((0, missing), *[(0, 0)] * (x.ndim - 1))
            return jnp.pad(x, padding, constant_values=value)

        # What logits are multiplied by is 1: a logit may be -inf.
        scales = tokens.inverse_temperature, tokens.second_ratio
        scales = jax.tree.map(partial(filled, value=1), scales)
        tokens = jax.tree.map(filled, tokens)
        tokens = tokens._replace(inverse_temperature=scales[0], second_ratio=scales[1])
        policy = policy._replace(hidden=filled(policy.hidden))
        other = None if other is None else other._replace(hidden=filled(other.hidden))
    stats = _statistics(plan, policy, other, tokens)
    return jax.tree.map(lambda x: x[:size], stats) if missing else stats


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _statistics(plan, policy, other, tokens):
    return _forward(plan, policy, other, tokens)[0]


def _forward(plan, policy, other, tokens):
    size = jnp.full(tokens.targets.shape, _num_entries(policy), jnp.int32)
    run = _over_mesh(plan, _local_forward, other, 2, lambda token, entry: token)
    saved = run(policy, other, tokens, size)
    stats = saved.stats
    inside = (tokens.targets >= 0) & (tokens.targets < policy.unembedding.shape[0])
    for name in ("logp", "second_logp"):
        if name in plan.needs:
            stats = {**stats, name: jnp.where(inside, stats[name], jnp.nan)}
    asked = {need: stats[need] for need in plan.needs}
    return asked, (saved, policy, other, tokens)


def _backward(plan, residuals, cotangents):
    saved, policy, other, tokens = residuals
    asked = {name: cotangents[name] for name in DIFFERENTIABLE if name in cotangents}
    inside = (tokens.targets >= 0) & (tokens.targets < policy.unembedding.shape[0])
    for name in ("logp", "second_logp"):
        if name in asked:
            asked[name] = jnp.where(inside, asked[name], 0)
    if "nucleus_entropy" in asked and tokens.nucleus is not None:
        asked["nucleus_entropy"] = jnp.where(tokens.nucleus, asked["nucleus_entropy"], 0)
    run = _over_mesh(
        plan, _local_backward, other, 3, lambda token, entry: Policy(token, entry, entry)
    )
    dpolicy = run(policy, other, tokens, saved, asked)
    dpolicy = jax.tree.map(lambda x, like: x.astype(like.dtype), dpolicy, policy)
    return dpolicy, None, None


_statistics.defvjp(_forward, _backward)


def _num_entries(policy):
    """Size of the vocabulary without the entries that a bias of -inf takes out."""
    if policy.bias is None:
        return policy.unembedding.shape[0]
    return jnp.sum(policy.bias > -jnp.inf, dtype=jnp.int32)


def _local_forward(plan, policy, other, tokens, vocabulary_size: Int[Array, "n"]) -> _Saved:
    """The forward pass of one device's tokens and part of the vocabulary."""
    dispatch.check_named(plan, policy)
    tokens, first = _with_local_targets(plan, policy, tokens)
    active = tokens.active
    if active is None:
        active = jnp.ones(tokens.targets.shape, bool)
    streaming: Statistics = {}
    second = None
    if any(need in algebra.STREAMING for need in plan.needs):
        sums = dispatch.sums(plan, policy, tokens)
        if plan.vocabulary_axis is not None:
            if sums.max_id is not None:
                sums = sums._replace(max_id=sums.max_id + first)
            sums = algebra.merge_shards(sums, plan.vocabulary_axis)
        streaming = algebra.finish(sums, vocabulary_size)
        second = algebra.second_logsumexp(sums)
    every = nuclei = rows.RowStats({})
    sweep = partial(rows.sweep, plan, policy, other, tokens)
    needs = tuple(need for need in ROWS if need in plan.needs and need != "nucleus_entropy")
    if needs:
        every = sweep(active, needs)
    if "nucleus_entropy" in plan.needs:
        chosen = active if tokens.nucleus is None else active & tokens.nucleus
        nuclei = sweep(chosen, ("nucleus_entropy",))
    stats = {**nuclei.stats, **every.stats, **streaming}
    saved = _Saved(stats, second, nuclei.nucleus, every.other_logsumexp, every.pull)
    # Tokens that were not visited have log 0 and 0 / 0 here, which must not reach the backward.
    return _where(active, saved)


def _local_backward(plan, policy, other, tokens, saved: _Saved, cotangents: Statistics) -> Policy:
    """The backward pass of one device's tokens and part of the vocabulary."""
    tokens, first = _with_local_targets(plan, policy, tokens)
    scale, stats = tokens.inverse_temperature, saved.stats
    numbers = gradients.Numbers(
        algebra.coefficients(stats, cotangents, scale, tokens.second_ratio, saved.second_logsumexp)
    )
    if "nucleus_entropy" in cotangents:
        found = nucleus.coefficients(saved.nucleus, cotangents["nucleus_entropy"], scale)
        numbers = numbers._replace(nucleus=found)
    if "topk_logp" in cotangents:
        found = top.coefficients(stats["topk_ids"] - first, cotangents["topk_logp"], scale)
        numbers = numbers._replace(topk=found)
    if second_policy.DIVERGENCES & cotangents.keys():
        divergences = second_policy.coefficients(
            stats, saved.pull, saved.other_logsumexp, cotangents, scale
        )
        numbers = numbers._replace(other=divergences)
    used = [_is_used(cotangent) for cotangent in jax.tree.leaves(cotangents)]
    if not used:
        return jax.tree.map(jnp.zeros_like, policy)
    active = jnp.any(jnp.stack(used), axis=0)
    if tokens.active is not None:
        active = active & tokens.active
    dpolicy = gradients.gradients(plan, policy, other, tokens, _where(active, numbers), active)
    dhidden, dunembedding, dbias = dpolicy
    if plan.vocabulary_axis is not None:
        dhidden = jax.lax.psum(dhidden, plan.vocabulary_axis)
    if plan.token_axes:
        dunembedding, dbias = jax.lax.psum((dunembedding, dbias), plan.token_axes)
    return Policy(dhidden, dunembedding, dbias)


def _is_used(cotangent):
    """[N], where the cotangent of [N] or [N, k] is not 0."""
    return cotangent != 0 if cotangent.ndim == 1 else jnp.any(cotangent != 0, axis=1)


def _with_local_targets(plan, policy, tokens):
    """Tokens whose targets count from the first entry of this device, and that entry."""
    first = jnp.int32(0)
    if plan.vocabulary_axis is not None:
        first = jax.lax.axis_index(plan.vocabulary_axis) * policy.unembedding.shape[0]
        first = first.astype(jnp.int32)
    return tokens._replace(targets=tokens.targets - first), first


def _over_mesh(plan, function, other, num_more: int, out_specs):
    """`function(plan, policy, other, ...)` on the parts that each device of the mesh holds.

    Args:
      num_more: arguments after `other`, all of them per token.
      out_specs: a function from the two specs, per token and per vocabulary entry.
    """
    function = partial(function, plan)
    if plan.mesh is None:
        return function
    token, entry = PartitionSpec(plan.token_axes), PartitionSpec(plan.vocabulary_axis)
    policies = Policy(token, entry, entry), None if other is None else OtherPolicy(token, entry)
    return jax.shard_map(
        function,
        mesh=plan.mesh,
        in_specs=(*policies, *[token] * num_more),
        out_specs=out_specs(token, entry),
        check_vma=False,
    )


def _where(active, tree):
    """The tree of [N, ...] arrays with 0 for inactive tokens."""

    def where_active(x):
        return jnp.where(active.reshape(-1, *(1,) * (x.ndim - 1)), x, 0)

    return jax.tree.map(where_active, tree)
