"""The data that flows between the rooms: rollouts, token statistics, signals, recipes.

Shapes use the letters of the whole library: B rollouts, T response tokens, P prompt tokens.
Every class is a frozen dataclass; the first three are pytrees, so that they pass through jit, vmap
and sharding as they are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

__all__ = ["Method", "Recipe", "Rollouts", "Signals", "TokenStats", "replace"]


def _pytree(cls):
    """Registers a dataclass as a pytree whose fields are all children."""
    names = [f.name for f in dataclasses.fields(cls)]
    return jax.tree_util.register_dataclass(cls, data_fields=names, meta_fields=[])


@_pytree
@dataclass(frozen=True)
class Rollouts:
    """Sampled responses with everything that was recorded while and after they were drawn.

    The sampler writes the record, the verifiers give `outcome` and `reward` once, the scorer gives
    `old_logp` (and `reference_logp` where an objective needs it); nobody changes the rest.
    Log-probs are nats, 0 off the mask. Optional fields are None until somebody fills them.

    Fields:
      prompt_tokens: int [B, P], right-padded.
      prompt_length: int [B].
      tokens: int [B, T], the response, right-padded.
      length: int [B], response tokens including the stop token; 0 for an empty row.
      mask: bool [B, T], the sampled tokens (made from lengths, never from token values; False on
        tokens that were put in by a tool or a prefix).
      group: int [B], which rollouts answer the same prompt.
      rollout_id: int [B], identity of the rollout in its batch: random choices are keyed by it, so
        they do not depend on the order of the rows.
      parent: int [B], `rollout_id` of the row this one was forked from, -1 if none.
      branch_position: int [B], response position of that fork, -1 if none.
      truncated: bool [B], stopped by the budget and not by the stop token.
      behaviour_logp: [B, T], under the distribution really sampled from (temperature, top-k, …).
      entropy: [B, T], of the policy over the whole vocabulary at the sampling temperature, when
        the token was drawn.
      temperature: [B, T], of the sampler, token by token.
      outcome: [B], what the verifier said, in [0, 1]; pass rates and filters read it.
      reward: [B], what the objective trains on (outcome plus shaping).
      weight_version: int [B], number of updates the sampling weights had seen.
      old_logp: [B, T], the scorer's log-prob at the weights that sampled: denominator of the ratio.
      reference_logp: [B, T], of the frozen policy of a KL term.
      advantage: [B, T], taken over the whole batch before it was split into several updates; an
        objective that finds it does not estimate its own.
    """

    prompt_tokens: Int[Array, "B P"]
    prompt_length: Int[Array, "B"]
    tokens: Int[Array, "B T"]
    length: Int[Array, "B"]
    mask: Bool[Array, "B T"]
    group: Int[Array, "B"]
    rollout_id: Int[Array, "B"]
    parent: Int[Array, "B"]
    branch_position: Int[Array, "B"]
    truncated: Bool[Array, "B"]
    behaviour_logp: Float[Array, "B T"]
    entropy: Float[Array, "B T"]
    temperature: Float[Array, "B T"]
    outcome: Float[Array, "B"]
    reward: Float[Array, "B"]
    weight_version: Int[Array, "B"]
    old_logp: Float[Array, "B T"] | None = None
    reference_logp: Float[Array, "B T"] | None = None
    advantage: Float[Array, "B T"] | None = None


@_pytree
@dataclass(frozen=True)
class TokenStats:
    """What the current policy says about each token. Differentiable; None if not asked.

    All are over the whole vocabulary at the token's temperature, in nats, float32 (float64 for
    float64 inputs), and have the shape of the targets ([N] from the kernel, [B, T] in objectives).
    With p the policy's distribution at the token and z its logits:

      logp: log p(target), ≤ 0.
      logsumexp: log Σ exp z.
      entropy: H = -Σ p log p.
      p_squared: Σ p².
      p_squared_logp: Σ p² log p.
    """

    logp: Float[Array, "..."] | None = None
    logsumexp: Float[Array, "..."] | None = None
    entropy: Float[Array, "..."] | None = None
    p_squared: Float[Array, "..."] | None = None
    p_squared_logp: Float[Array, "..."] | None = None


@_pytree
@dataclass(frozen=True)
class Signals:
    """What an objective has decided about each token so far; every field is [B, T].

    A chain stops the gradients of the first five; gradient flows through `ratio` and `penalty`.

      advantage: signed credit.
      weight: factor on the token's policy loss; leaves denominators alone.
      mask: bool, which tokens exist for the loss; counts in denominators.
      clip_low, clip_high: half-widths of the trust region [1 - clip_low, 1 + clip_high].
      ratio: current over old probability, of the token or of what it belongs to.
      penalty: term added to the token's loss, not multiplied by `weight`.
    """

    advantage: Float[Array, "B T"]
    weight: Float[Array, "B T"]
    mask: Bool[Array, "B T"]
    clip_low: Float[Array, "B T"]
    clip_high: Float[Array, "B T"]
    ratio: Float[Array, "B T"]
    penalty: Float[Array, "B T"]

    @classmethod
    def neutral(cls, mask: Bool[Array, "B T"], dtype) -> Signals:
        """Signals about which nothing is decided: advantage 0, weight 1, ratio 1, no clip."""
        zeros, ones = jnp.zeros(mask.shape, dtype), jnp.ones(mask.shape, dtype)
        unbounded = jnp.full(mask.shape, jnp.inf, dtype)
        return cls(zeros, ones, mask, unbounded, unbounded, ones, zeros)


@dataclass(frozen=True)
class Recipe:
    """A published method: what it changes in each room. None means: as in the plain algorithm.

    Fields:
      objective: `rlvr_jax.objectives.Objective`, read by training.
      sampling: dict of sampler settings the method prescribes (`temperature`, …), read by rollout.
      selection: `rlvr_jax.objectives.Selection`, which groups of a batch are trained on.
      reward: pure function (rollouts) -> reward [B] that shapes `rollouts.outcome`.
      guidance: what else the policy is shown; no method of this version uses it.
    """

    objective: Any
    sampling: Mapping[str, Any] = field(default_factory=dict)
    selection: Any = None
    reward: Callable[[Rollouts], Array] | None = None
    guidance: Any = None


@dataclass(frozen=True)
class Method:
    """The card of a method: the factory of its recipe, and the paper it comes from."""

    recipe: Callable[..., Recipe]
    title: str
    url: str
    evidence: str = "exact"
