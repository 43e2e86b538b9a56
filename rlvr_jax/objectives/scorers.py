"""Networks that score tokens for an objective and are fitted to what comes of the rollouts.

A `Scorer` stands in the critic's place of a recipe (`Recipe.critic`): its scores are made for the
whole batch before the first update, as `Rollouts.process_reward` or `Rollouts.critic_values`, and
it is fitted after the last one, with an optimizer of its own.

    flow_scorer        how far a token's hidden state is from the flow of right answers
    implicit_scorer    the log-ratio of a reward model that is a language model
    pessimistic_scorer what several critics expect of a response as a whole
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.keys import plain_key
from rlvr_jax.objectives.advantages.pessimistic_critics import huber_value_loss, soft_min
from rlvr_jax.objectives.advantages.returns import is_last_token
from rlvr_jax.objectives.rewards.flow import flow_score, velocity_deviation
from rlvr_jax.objectives.statistics.masked import masked_mean, masked_sum
from rlvr_jax.types import Rollouts
from rlvr_jax.types.hyperparameters import Count, OpenUnit, Positive
from rlvr_jax.types.parts import Part, part

__all__ = ["Scorer", "flow_scorer", "implicit_scorer", "pessimistic_scorer"]

RIGHT = 0.5
TIMES = 64
"""Features of the time of a flow."""


@dataclass(frozen=True, eq=False, repr=False)
class Scorer(Part):
    """What a method wants of the network that scores its tokens or responses.

    Fields:
      init: (key, width of the policy, dtype) -> its parameters, a pytree; {}: it has none beside
        its trunk.
      score: (parameters, seen, rollouts) -> [B, T], or [B, K] where it writes critic_values.
      fit: (parameters, seen, rollouts) -> losses [B] and weights [B], which carry no gradient; what
        is minimised is Σ w l / Σ w over the rows of an update.
      trunk: what it sees. "policy": states [B, T + 1, D], constants, the last hidden states of the
        policy at the last token of the prompt and at the T of the response. "own": log-probs [B, T]
        of a network that starts as the policy and is trained with the parameters.
      reads: records of the rollouts that it reads beside those of the sampler and the grades, of
        "reference_logp".
      writes: the record of rollouts that its scores are, "process_reward" or "critic_values".
    """

    init: Callable[[Array, int, Any], Any]
    score: Callable[[Any, Array, Rollouts], Float[Array, "B N"]]
    fit: Callable[[Any, Array, Rollouts], tuple[Float[Array, "B"], Float[Array, "B"]]]
    trunk: str = "policy"
    reads: frozenset[str] = frozenset()
    writes: str = "process_reward"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.writes not in ("process_reward", "critic_values"):
            raise ValueError(
                f"Scorer: writes must be 'process_reward' or 'critic_values', got {self.writes!r}"
            )
        if self.trunk not in ("own", "policy"):
            raise ValueError(f"Scorer: trunk must be 'own' or 'policy', got {self.trunk!r}")
        if unknown := sorted(self.reads - {"reference_logp"}):
            raise ValueError(f"Scorer: reads must be among reference_logp, got {unknown}")


@part
def flow_scorer(time: OpenUnit = 0.8, blocks: Count = 6) -> Scorer:
    """s / (1 - s) ‖v(x, s, c) - u‖² / D, x = s h + (1 - s) e, u = h - e.

    h is the policy's hidden state at a token, c the one before it, e Gaussian noise; v is a network
    of residual blocks, modulated by s and c, fitted at random times to right answers. The noise is
    a function of the rollout and the weights that wrote it.

    Args:
      time: s, in (0, 1).
      blocks: of the network, as wide as the policy.
    Raises:
      ValueError: time outside (0, 1), no blocks.
    Source: RLFR, https://github.com/Jinghaoleven/RLFR, which reads three layers; here the last.
    """

    def deviation(params, states, rollouts, stream, times):
        target, context = states[:, 1:], states[:, :-1]
        noise = _noise(rollouts, target, stream)
        part = times[:, :, None].astype(target.dtype)
        noisy = part * target + (1 - part) * noise
        return velocity_deviation(_velocity(params, noisy, times, context), target - noise)

    def score(params, states, rollouts):
        times = jnp.full(rollouts.mask.shape, time, states.dtype)
        found = deviation(params, states, rollouts, 0, times)
        return jnp.where(rollouts.mask, flow_score(found, time), 0)

    def fit(params, states, rollouts):
        times = _noise(rollouts, states[:, 1:, :1], 1, jax.random.uniform)[:, :, 0]
        found = deviation(params, states, rollouts, 2, times)
        there = jnp.any(rollouts.mask, axis=1)
        weight = ((rollouts.outcome > RIGHT) & there).astype(found.dtype)
        return masked_mean(found, rollouts.mask, axis=1), weight

    return Scorer(partial(_flow_network, blocks=blocks), score, fit)


@part
def implicit_scorer(scale: Positive = 0.05) -> Scorer:
    """β (log π_φ - log π_ref) of each token; φ is fitted by cross entropy of σ(sum) to outcomes.

    Args:
      scale: β.
    Raises:
      ValueError: scale not positive.
    Source: https://github.com/PRIME-RL/ImplicitPRM.
    """

    def score(params, logp, rollouts):
        del params
        return jnp.where(rollouts.mask, scale * (logp - rollouts.reference_logp), 0)

    def fit(params, logp, rollouts):
        reward = masked_sum(score(params, logp, rollouts), rollouts.mask, axis=1)
        sign = jnp.where(rollouts.outcome > RIGHT, 1.0, -1.0).astype(reward.dtype)
        there = jnp.any(rollouts.mask, axis=1)
        return jax.nn.softplus(-sign * reward), there.astype(reward.dtype)

    def init(key, width, dtype):
        del key, width, dtype
        return {}

    reads = frozenset({"reference_logp"})
    return Scorer(init, score, fit, "own", reads)


@part
def pessimistic_scorer(
    temperature: Positive = 0.3, clip: Positive = 0.2, width: Positive = 0.5, heads: Count = 2
) -> Scorer:
    """Critics of whole responses: linear heads on the normalized hidden state of the last token.

    The heads begin at random, each otherwise. Together they are fitted by half the
    `huber_value_loss` of their `soft_min`, with the reward for a target.

    Args:
      temperature: α of the soft minimum, positive.
      clip: half-width of the region around the soft minimum when the batch was drawn.
      width: of the Huber function.
      heads: critics, at least 1.
    Raises:
      ValueError: a number that is not positive, or no heads.
    Source: https://github.com/ryyzn9/SAFE, whose heads read the last column, padding or not.
    """

    def init(key, width, dtype):
        weight = jax.random.normal(key, (width, heads), dtype) / jnp.sqrt(width).astype(dtype)
        return {"weight": weight, "bias": jnp.zeros((heads,), dtype)}

    def score(params, states, rollouts):
        last = is_last_token(rollouts.mask)
        state = jnp.sum(jnp.where(last[:, :, None], states[:, 1:], 0), axis=1)
        found = jax.nn.standardize(state) @ params["weight"].astype(state.dtype)
        values = found + params["bias"].astype(state.dtype)[None]
        return jnp.where(jnp.any(last, axis=1)[:, None], values, 0)

    def fit(params, states, rollouts):
        values = soft_min(score(params, states, rollouts), temperature)
        then = soft_min(rollouts.critic_values, temperature)
        losses = huber_value_loss(values, then, rollouts.reward, clip, width) / 2
        return losses, jnp.any(rollouts.mask, axis=1).astype(losses.dtype)

    return Scorer(init, score, fit, writes="critic_values")


def _flow_network(key: Array, width: int, dtype: Any, blocks: int) -> dict[str, Any]:
    """Parameters; the last layer begins with zeros, so that v is 0 before anything is learned."""

    def matrix(key, rows, columns):
        return jax.random.normal(key, (rows, columns), dtype) / jnp.sqrt(rows).astype(dtype)

    first, second, *own = jax.random.split(key, 2 + 3 * blocks)
    stack = [
        {
            "modulate": matrix(own[3 * n], width, 2 * width),
            "rise": matrix(own[3 * n + 1], width, width),
            "fall": matrix(own[3 * n + 2], width, width),
        }
        for n in range(blocks)
    ]
    return {
        "time": matrix(first, TIMES, width),
        "context": matrix(second, width, width),
        "blocks": jax.tree.map(lambda *leaves: jnp.stack(leaves), *stack),
        "last": jnp.zeros((width, width), dtype),
    }


def _velocity(params, noisy, times, context):
    """v [B, T, D]."""
    rates = jnp.exp(jnp.linspace(0.0, jnp.log(1000.0), TIMES // 2)).astype(noisy.dtype)
    angles = times[:, :, None].astype(noisy.dtype) * rates[None, None]
    waves = jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=-1)
    condition = jax.nn.silu(waves @ params["time"] + context @ params["context"])

    def block(x, own):
        scale, shift = jnp.split(condition @ own["modulate"], 2, axis=-1)
        centered = x - jnp.mean(x, axis=-1, keepdims=True)
        size = jnp.sqrt(jnp.mean(centered**2, axis=-1, keepdims=True) + 1e-6)
        inside = centered / size * (1 + scale) + shift
        return x + jax.nn.silu(inside @ own["rise"]) @ own["fall"], None

    out, _ = jax.lax.scan(block, noisy, params["blocks"])
    return out @ params["last"]


def _noise(rollouts, like, stream: int, draw=jax.random.normal):
    """Numbers shaped as `like`, of each row's identity and the weights that wrote it."""

    def of_row(number, version):
        key = jax.random.fold_in(jax.random.fold_in(plain_key(stream), version), number)
        return draw(key, like.shape[1:], like.dtype)

    return jax.vmap(of_row)(rollouts.rollout_id, rollouts.weight_version)
