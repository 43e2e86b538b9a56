"""Responses of a pool as rollouts."""

import jax.numpy as jnp
from jaxtyping import Array, Int

from rlvr_jax.rollout.pool import FINISHED, SOFT, Pool
from rlvr_jax.rollout.processors import Sampling
from rlvr_jax.types import Rollouts


def to_rollouts(
    pool: Pool,
    prompt_tokens: Int[Array, "R L"],
    response_tokens: int,
    sampling: Sampling,
) -> Rollouts:
    """Extracts the responses of a pool: at most `response_tokens` after each prompt.

    Rollouts are numbered by their rows in this pool; `parent` still counts the rows of the pool
    that was forked. A row that no stop token has finished, or that is shortened here, is truncated.
    Where nothing was sampled, `temperature` is the row's, or that of `sampling`.

    Args:
      pool: pool with the sampled rows.
      prompt_tokens: prompts of the rows, right-padded.
      response_tokens: largest number of tokens of a response.
      sampling: settings of the sampler.
    """
    rows = pool.tokens.shape[0]
    offset = jnp.arange(response_tokens, dtype=jnp.int32)[None]
    index = jnp.minimum(pool.prompt_length[:, None] + offset, pool.tokens.shape[1] - 1)
    whole = pool.length - pool.prompt_length
    length = jnp.minimum(whole, response_tokens)
    written = offset < length[:, None]

    def cut(array):
        where, there = (x.reshape(*x.shape, *[1] * (array.ndim - 2)) for x in (index, written))
        taken = jnp.take_along_axis(array, where, axis=1)
        return jnp.where(there, taken, jnp.zeros((), array.dtype))

    zeros = jnp.zeros((rows,), pool.logp.dtype)
    version = cut(pool.version)
    mask = cut(pool.mask)
    temperature = jnp.full(index.shape, sampling.temperature, pool.logp.dtype)
    if pool.temperature is not None:
        temperature = jnp.broadcast_to(pool.temperature[:, None], index.shape)

    def temperatures(record):
        return None if record is None else jnp.where(mask, cut(record), temperature)

    scored = temperatures(pool.token_temperature)
    heat = temperatures(pool.sampled_temperature)
    sampled = Rollouts(
        prompt_tokens=prompt_tokens,
        prompt_length=pool.prompt_length,
        tokens=cut(pool.tokens),
        length=length,
        mask=mask,
        group=pool.group,
        rollout_id=jnp.arange(rows, dtype=jnp.int32),
        parent=pool.parent,
        branch_position=jnp.where(
            pool.branch_position < 0, -1, pool.branch_position - pool.prompt_length
        ),
        truncated=(pool.status != FINISHED) | (length < whole),
        behaviour_logp=cut(pool.behaviour_logp),
        entropy=cut(pool.entropy),
        temperature=temperature if scored is None else scored,
        outcome=zeros,
        reward=zeros,
        valid=jnp.ones((rows,), bool),
        # Versions only rise: that of the last token that was sampled.
        weight_version=jnp.max(version, axis=1),
    )
    records = {"sampled_topk_logp": pool.topk_logp, "sampled_topk_ids": pool.topk_ids}
    records |= {name: getattr(pool, name) for name in SOFT} | {"routes": pool.routes}
    if pool.routes is not None:
        places = jnp.arange(prompt_tokens.shape[1], dtype=jnp.int32)[None]
        there = (places < pool.prompt_length[:, None])[:, :, None, None]
        own = pool.routes[:, : prompt_tokens.shape[1]]
        sampled = sampled.replace(prompt_routes=jnp.where(there, own, jnp.zeros((), own.dtype)))
    return sampled.replace(
        sampled_temperature=scored if heat is None else heat,
        trace=pool.trace,
        version=version,
        **{name: cut(record) for name, record in records.items() if record is not None},
    )
