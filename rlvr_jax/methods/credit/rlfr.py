"""RLFR: penalizes tokens whose hidden states deviate from the flow of correct responses.

"RLFR: Extending Reinforcement Learning for LLMs with Flow Environment",
https://github.com/Jinghaoleven/RLFR

    q_t  = scores min-max within the response; the 15 largest above 0.6 count
    r_t  = -c q_t on these, and (R - mean) / (std + 1e-9) of the group on the last token
    A_t  = Σ_{s ≥ t} r_s;  loss = Σ PPO clip / Σ n_i

The score of a token is s / (1 - s) times the squared error of a velocity. A small flow network
predicts this velocity between noise and the token's hidden state (`flow_scorer`). The network reads
the policy's last hidden states. It is fitted after every batch to the correct responses, with the
optimizer and learning rate of a critic (`--critic-learning-rate`). The authors use 1e-4, and 1e-6
for the policy. For a row without padding, the released min-max uses the second smallest score; this
recipe uses the smallest of the response.

Left out: the states of middle layers, as a critic reads the last ones; pre-training of the flow on
text, which does not ship.
Reports: Qwen2.5-1.5B and 7B-Math, Llama-3.1-8B: small steady gains over GRPO and over entropy
rewards (no numbers).
Traps: A penalty lowers the advantage of all earlier tokens, also in correct responses. The noise
makes rewards random. The released online fit may leave the flow unchanged. Here it starts
untrained.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from rlvr_jax.keys import plain_key
from rlvr_jax.objectives import Scorer, clipped_objective, group_z_score, masked_mean, masked_top_k
from rlvr_jax.objectives.advantages.process_credit import ProcessReward, process_to_go
from rlvr_jax.objectives.statistics.scopes import min_max, scoped_count, within_response
from rlvr_jax.types import LOSS_ON_BRACKETS, Function, Method, Recipe, is_correct, part
from rlvr_jax.types.hyperparameters import (
    ClipHigh,
    ClipLow,
    Count,
    Finite,
    NonNegative,
    OpenUnit,
    Unit,
)


@part
def standardized_reward(epsilon: NonNegative = 1e-9) -> Function:
    """(R - mean) / (std + ε) over the group, std with n - 1."""
    return lambda rollouts: group_z_score(rollouts.reward, rollouts.group, epsilon)


@part(reads={"process_reward"})
def deviation_penalty(threshold: Unit = 0.6, most: Count = 15) -> ProcessReward:
    """-q at the largest scores of a response, q the scores min-max within it; 0 elsewhere.

    Only scores above the threshold count, and of these the `most` largest, of equal ones the
    earlier. A response of one token, or of equal scores, is not penalized.

    Reads: process_reward (the scores).
    """

    def of(rollouts, mask):
        sets = within_response(rollouts)
        scaled = min_max(rollouts.records["process_reward"], mask, sets, epsilon=0)
        above, count = mask & (scaled > threshold), partial(scoped_count, sets=sets)
        largest = masked_top_k(scaled, above, most, rollouts.rollout_id, count)
        return -jnp.where(largest, scaled, 0)

    return of


TIMES = 64
"""Features of the time of a flow."""


@part
def flow_scorer(time: OpenUnit = 0.8, blocks: Count = 6) -> Scorer:
    """s / (1 - s) ‖v(x, s, c) - u‖² / D, with x = s h + (1 - s) e and u = h - e.

    h is the policy's hidden state at a token, c the one before it, and e Gaussian noise, a function
    of the rollout and of the weights that sampled it. The function v is a network of residual
    blocks, modulated by s = `time` and c, as wide as the policy, fitted at random times to correct
    responses.
    """

    def deviation(params, states, rollouts, stream, times):
        target, context = states[:, 1:], states[:, :-1]
        noise = _noise(rollouts, target, stream)
        part = times[:, :, None].astype(target.dtype)
        noisy = part * target + (1 - part) * noise
        velocity = _velocity(params, noisy, times, context)
        return jnp.mean((velocity - (target - noise)) ** 2, axis=-1)

    def score(params, states, rollouts):
        times = jnp.full(rollouts.mask.shape, time, states.dtype)
        found = deviation(params, states, rollouts, 0, times)
        return jnp.where(rollouts.mask, time / (1 - time) * found, 0)

    def fit(params, states, rollouts):
        times = _noise(rollouts, states[:, 1:, :1], 1, jax.random.uniform)[:, :, 0]
        found = deviation(params, states, rollouts, 2, times)
        there = jnp.any(rollouts.mask, axis=1)
        weight = (is_correct(rollouts.outcome) & there).astype(found.dtype)
        return masked_mean(found, rollouts.mask, axis=1), weight

    return Scorer(partial(_flow_network, blocks=blocks), score, fit)


def _flow_network(key: Array, width: int, dtype: Any, blocks: int) -> dict[str, Any]:
    """Parameters of v. The last layer begins at 0, so v is 0 before the first fit."""

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
    """Random numbers shaped as `like`, by each row's id and the weights that sampled it."""

    def of_row(number, version):
        key = jax.random.fold_in(jax.random.fold_in(plain_key(stream), version), number)
        return draw(key, like.shape[1:], like.dtype)

    return jax.vmap(of_row)(rollouts.rollout_id, rollouts.weight_version)


def rlfr(
    coefficient: Finite = 0.01,
    threshold: Unit = 0.6,
    most: Count = 15,
    time: OpenUnit = 0.8,
    blocks: Count = 6,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: NonNegative = 1e-9,
) -> Recipe:
    """Applies the clipped loss to group-normalized outcomes and penalties of tokens.

    Args:
      coefficient: weight of the penalty (c).
      threshold: scaled score above which a token is penalized.
      most: maximum number of penalized tokens of a response.
      time: time of the flow at which scores are computed (s).
      blocks: number of blocks of the flow network.
      epsilon: added to the standard deviation (ε).
    """
    process = deviation_penalty(threshold, most)
    advantage = process_to_go(process, coefficient, standardized_reward(epsilon))
    objective = clipped_objective(clip_low, clip_high, advantage=advantage)
    return Recipe(objective, critic=flow_scorer(time, blocks))


METHOD = Method(rlfr, changes="reward, advantage", baseline="other", shown=LOSS_ON_BRACKETS)
