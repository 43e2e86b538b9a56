"""Sampling with combined logits: a policy plus the change that a small model learned.

The three models read the same tokens, see `combine_logits`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.policy import Model, Params
from rlvr_jax.rollout.feed import prefill
from rlvr_jax.rollout.pool import Pool, empty
from rlvr_jax.rollout.processors import Processor
from rlvr_jax.types.parts import part


@dataclass(frozen=True)
class Delta:
    """The change of a model by training, in logits.

    Fields:
      trained, base: models with one vocabulary, whose first entries are those of the policy.
      weight: λ.
    """

    trained: Model
    base: Model
    weight: float = 1.0


def combine_logits(
    logits: Float[Array, "... V"],
    trained: Float[Array, "... A"],
    base: Float[Array, "... C"],
    weight: float = 1.0,
) -> Float[Array, "... W"]:
    """z + λ (z_trained - z_base) over the smallest of the vocabularies, which are padded apart.

    Args:
      logits: z, logits of the policy.
      trained: logits of the trained small model.
      base: logits of its base model.
      weight: factor of the difference of the small models (λ).
    Source: RAST, https://github.com/ozyyshr/RAST.
    """
    width = min(x.shape[-1] for x in (logits, trained, base))
    return logits[..., :width] + weight * (trained[..., :width] - base[..., :width])


def with_deltas(
    pool: Pool,
    deltas: Sequence[Delta],
    params: Sequence[tuple[Params, Params]],
    tokens: Int[Array, "R n"],
    count: Int[Array, "R"],
) -> tuple[Pool, Processor, Any]:
    """A pool whose rows hold the prompts for all models, with the processor and carry of `decode`.

    The caches of the other models are the processor's carry, so that they are forked and compacted
    with the rows. Log-probs of the pool are the policy's, `behaviour_logp` those of the sum: as a
    behaviour policy it is corrected by importance weights. The temperature divides the sum.

    Args:
      pool: whose rows have read the prompts, without a processor so far.
      deltas: small models that are added to the policy.
      params: of each delta the trained model's and its base's.
      tokens, count: the prompts, as for `prefill`.
    Returns:
      The pool; the processor, for `Sampling`; and the `constants` of `decode`: the parameters.
    """
    rows, slots = pool.tokens.shape
    carries = tuple(
        tuple(
            prefill(model, own, empty(model, rows, slots, pool.key), tokens, count).caches
            for model, own in zip((delta.trained, delta.base), pair, strict=True)
        )
        for delta, pair in zip(deltas, params, strict=True)
    )
    processor = _adding(tuple(deltas), slots)
    carry = carries, pool.prompt_length
    # As `Sampling.chain` has it: the carry of a chain of one.
    pool = replace(pool, carry=(carry,), fresh=jnp.zeros_like(pool.fresh))
    return pool, processor, tuple(map(tuple, params))


@part
def _adding(deltas: tuple[Delta, ...], slots: int) -> Processor:
    def init(rows):
        models = ((delta.trained, delta.base) for delta in deltas)
        caches = tuple(tuple(model.empty_caches(rows, slots) for model in pair) for pair in models)
        return caches, jnp.zeros((rows,), jnp.int32)

    def apply(logits, carry, context):
        carries, prompt_length = carry
        width, heat = logits.shape[-1], context.temperature[:, None]
        last = (prompt_length + context.position - 1)[:, None]
        moved = []
        for delta, pair, caches in zip(deltas, context.constants, carries, strict=True):
            others, extended = [], []
            for model, params, own in zip((delta.trained, delta.base), pair, caches, strict=True):
                hidden, own = model.extend(params, own, context.token[:, None], last)
                others.append(model.to_logits(params, hidden[:, 0]) / heat)
                extended.append(own)
            logits = combine_logits(logits, *others, weight=delta.weight)
            moved.append(tuple(extended))
        missing = width - logits.shape[-1]
        logits = jnp.pad(logits, ((0, 0), (0, missing)), constant_values=-jnp.inf)
        return logits, (tuple(moved), prompt_length)

    return Processor(init, apply)
