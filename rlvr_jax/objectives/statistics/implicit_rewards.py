"""What a language model's log-ratio says about single tokens and steps of a response.

If r(y) = β log π(y) / π_ref(y) is the reward of whole responses, then its partial sums are values:
q_t = β Σ_{i≤t} log-ratio = β log E_{π_ref}[exp(r / β) | y_≤t]. And the logits of a policy that
solves KL-regularized RL are values, up to one constant per state: Q = β z, V = β log Σ exp z.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives.statistics.steps import Steps, at_tokens, step_sum

__all__ = [
    "cumulative_reward",
    "following_value",
    "logit_values",
    "shaped_reward",
    "step_ends",
    "step_scores",
    "token_log_ratio_reward",
    "worst_step",
]


def token_log_ratio_reward(
    logp: Float[Array, "B T"],
    reference_logp: Float[Array, "B T"],
    mask: Bool[Array, "B T"],
    scale: float,
) -> Float[Array, "B T"]:
    """β (logp - reference_logp), 0 off the mask.

    Args:
      scale: β.
    """
    return jnp.where(mask, scale * (logp - reference_logp), 0)


def cumulative_reward(
    token_reward: Float[Array, "B T"], mask: Bool[Array, "B T"]
) -> Float[Array, "B T"]:
    """q_t: sum of the token rewards up to and with t, 0 off the mask.

    Source: https://github.com/PRIME-RL/ImplicitPRM.
    """
    return jnp.where(mask, jnp.cumsum(jnp.where(mask, token_reward, 0), axis=1), 0)


def step_ends(steps: Steps) -> Bool[Array, "B T"]:
    """The last token of each step."""
    position = jnp.arange(steps.member.shape[1], dtype=jnp.int32)[None]
    rows, width = steps.member.shape
    flat = jnp.arange(rows, dtype=jnp.int32)[:, None] * width + steps.index
    own = jnp.where(steps.member, position, -1)
    last = jax.ops.segment_max(own.ravel(), flat.ravel(), num_segments=rows * width)
    return steps.member & (position == last.reshape(rows, width)[row_of(rows), steps.index])


def step_scores(
    cumulative: Float[Array, "B T"], steps: Steps
) -> tuple[Float[Array, "B T"], Float[Array, "B T"]]:
    """Rewards and values of the steps, both at their last tokens and 0 elsewhere.

    The value of a step is q at its last token, its reward how much that is above the value of the
    step before.

    Args:
      cumulative: q.
      steps: of the rows.
    """
    ends = step_ends(steps)
    at_end = step_sum(jnp.where(ends, cumulative, 0), steps)
    before = jnp.pad(at_end[:, :-1], ((0, 0), (1, 0)))
    gain = jnp.where(steps.exists, at_end - before, 0)
    return jnp.where(ends, at_tokens(gain, steps), 0), jnp.where(ends, cumulative, 0)


def worst_step(scores: Float[Array, "B T"], steps: Steps) -> Float[Array, "B"]:
    """The smallest of the scores at the last tokens of the steps; 0 for rows without a step."""
    ends = step_ends(steps)
    lowest = jnp.min(jnp.where(ends, scores, jnp.inf), axis=1)
    return jnp.where(jnp.any(ends, axis=1), lowest, 0)


def logit_values(
    logp: Float[Array, "B T"],
    logsumexp: Float[Array, "B T"],
    mask: Bool[Array, "B T"],
    scale: float,
) -> tuple[Float[Array, "B T"], Float[Array, "B T"]]:
    """Q = β z of the sampled token and V = β log Σ exp z, 0 off the mask; Q - V = β logp.

    Args:
      logp, logsumexp: of the policy, nats.
      scale: β.
    Source: "From r to Q*: Your Language Model is Secretly a Q-Function".
    """
    value = jnp.where(mask, scale * logsumexp, 0)
    return jnp.where(mask, scale * logp, 0) + value, value


def following_value(values: Float[Array, "B T"], mask: Bool[Array, "B T"]) -> Float[Array, "B T"]:
    """The value at the next token of the row, holes of the mask skipped; 0 after the last one."""
    rows, width = mask.shape
    position = jnp.where(mask, jnp.arange(width, dtype=jnp.int32), width)
    nearest = jax.lax.cummin(position, axis=1, reverse=True)
    following = jnp.pad(nearest[:, 1:], ((0, 0), (0, 1)), constant_values=width)
    padded = jnp.pad(jnp.where(mask, values, 0), ((0, 0), (0, 1)))
    return jnp.where(mask, padded[row_of(rows), following], 0)


def shaped_reward(
    token_reward: Float[Array, "B T"], values: Float[Array, "B T"], mask: Bool[Array, "B T"]
) -> Float[Array, "B T"]:
    """r_t = β log-ratio_t + V_t - V_{t+1}: the sum over a row is Σ β log-ratio + V_0.

    Args:
      token_reward: β log-ratio.
      values: V, by `logit_values`.
      mask: the tokens that count.
    """
    change = values - following_value(values, mask)
    return jnp.where(mask, token_reward + change, 0)


def row_of(rows):
    return jnp.arange(rows, dtype=jnp.int32)[:, None]
