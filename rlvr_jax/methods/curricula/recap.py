"""RECAP: among several objectives, those that still change or fluctuate get larger weights.

"Beyond Reasoning Gains: Mitigating General Capabilities Forgetting in Large Reasoning Models",
https://github.com/VietHoang1512/recap (notes and the README were read)

    L_k  = 1 - mean reward of the rows of objective k in the step
    c_k  = μ / μ',  i_k = σ / (μ + μ') over the newest W and the W steps before
    λ_k  = K softmax((c_k + i_k) / T),  1 in the first 2W - 1 steps
    loss = (1/K) Σ λ_k · GRPO's clipped loss over the tokens of objective k, without KL

Objectives are the kinds of the task's prompts. Mix general tasks with reasoning tasks to replay the
general ones with weights. A saturated objective has c near 1 and i near 0, and gets a smaller
weight than a volatile one. W is `window`, T `temperature`. The README has s = α c + (1 - α) i with
α = 0.5: `mix=0.5`. A reconstruction: the authors measure losses, and 1 - reward in place of a
policy loss is our reading.

Left out: objectives with a supervised loss.
Reports: Qwen2.5-VL-7B: LISA IoU falls from 65.1 to 57.6 with reasoning only and is 67.2 with
replay. MathVerse rises from 26.3 to 40.8 %.
Traps: For a task with one kind of prompts, the method is GRPO. Weights are 1 in the first 19 steps.
With T = 5 they stay near 1, and even nearer with the README's α = 0.5.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.experience import cells_by_kind, experience, shuffled_epochs
from rlvr_jax.objectives import (
    Transform,
    clipped_objective,
    has_tokens,
    masked_count,
    masked_mean,
)
from rlvr_jax.types import Method, Recipe, Shown, part, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Count, Epsilon, Positive, Unit
from rlvr_jax.types.passing import arguments_of

TINY = 1e-8
"""Added to denominators; ours."""


@part(writes={"weight"})
def reweight_cells(
    window: Count, temperature: Positive, mix: Unit | None = None, most: Count = 16
) -> Transform:
    """Weighs every objective by λ, and divides by its number of tokens.

    An objective is a cell of rows (record `cell`). The batch has n_k of N tokens for each of K
    objectives. A token has the weight λ_k N / (K n_k): a token mean becomes (1/K) Σ λ_k L_k.
    The windows include the loss of this batch. Rows without a label, or with a label from `most`
    on, have their weight unchanged.

    Args:
      window: steps of each of the two windows (W).
      temperature: temperature of the softmax over priorities (T).
      mix: weight of the convergence in the priority (α); None: convergence plus instability.
      most: number of cells in the state.
    Metrics: objective_weight/min, objective_weight/max (extremes of λ, the weights of the batch's
      objectives), reweighted_fraction (fraction of the rows whose λ is not 1).
    """

    def init(spec):
        return CellWindows(jnp.zeros((most, 2 * window), float), jnp.zeros(most, jnp.int32))

    def apply(signals, context, state):
        rollouts, kind = context.rollouts, signals.weight.dtype
        cells = jnp.arange(most, dtype=rollouts.records["cell"].dtype)
        judged = has_tokens(signals.mask)
        members = (rollouts.records["cell"][:, None] == cells[None]) & judged[:, None]
        rows = jnp.sum(members, axis=0)
        earned = jnp.sum(jnp.where(members, rollouts.reward[:, None], 0), axis=0)
        there = rows > 0
        loss = 1 - earned / jnp.maximum(rows, 1).astype(earned.dtype)
        state = pushed(state, loss, there)
        weights = objective_weights(state, temperature, mix).astype(kind)
        count = masked_count(signals.mask, axis=1)
        tokens = jnp.sum(jnp.where(members, count[:, None], 0), axis=0)
        known = jnp.sum(tokens).astype(kind)
        even = known / (jnp.sum(there).astype(kind) * jnp.maximum(tokens, 1).astype(kind))
        own = jnp.sum(jnp.where(members, (weights * even)[None], 0), axis=1)
        factor = jnp.where(jnp.any(members, axis=1), own, 1)
        signals = replace(signals, weight=signals.weight * factor[:, None])
        changed = jnp.any(members & (weights != 1)[None], axis=1)
        metrics = {
            "objective_weight/min": jnp.min(jnp.where(there, weights, jnp.inf)),
            "objective_weight/max": jnp.max(jnp.where(there, weights, -jnp.inf)),
        }
        metrics = {name: jnp.where(there.any(), x, 1) for name, x in metrics.items()}
        metrics["reweighted_fraction"] = masked_mean(changed.astype(kind), judged)
        return signals, state, metrics

    return Transform(apply, init=init, reads={"cell"}, once=True)


class CellWindows(NamedTuple):
    """The last losses of each of K objectives.

    Fields:
      losses: [K, 2W], the newest last.
      number: int32 [K], how many there were in all.
    """

    losses: Float[Array, "K W2"]
    number: Int[Array, "K"]


def pushed(windows: CellWindows, loss: Float[Array, "K"], there: Array) -> CellWindows:
    """The windows with one more loss for the objectives that are `there`, bool [K]."""
    moved = jnp.concatenate([windows.losses[:, 1:], loss[:, None].astype(windows.losses.dtype)], 1)
    return CellWindows(
        jnp.where(there[:, None], moved, windows.losses),
        windows.number + there.astype(windows.number.dtype),
    )


def objective_weights(
    windows: CellWindows, temperature: float, mix: float | None = None
) -> Float[Array, "K"]:
    """λ_k = K softmax(s / T)_k over the objectives with 2W losses, with mean 1; 1 for others.

    The priority is s = α c + (1 - α) i with α = `mix`; None: s = c + i.
    """
    convergence, instability = window_progress(windows)
    if mix is None:
        priority = convergence + instability
    else:
        priority = mix * convergence + (1 - mix) * instability
    known = windows.number >= windows.losses.shape[1]
    fraction = jax.nn.softmax(jnp.where(known, priority / temperature, -jnp.inf))
    return jnp.where(known, jnp.sum(known).astype(fraction.dtype) * fraction, 1)


def window_progress(windows: CellWindows) -> tuple[Float[Array, "K"], Float[Array, "K"]]:
    """Convergence c = μ / μ' and instability i = σ / (μ + μ') of each objective.

    μ and σ are mean and standard deviation (with n) of the newest W losses, μ' the mean of the W
    losses before. With fewer than 2W losses, c is 1 and i is 0.
    """
    half = windows.losses.shape[1] // 2
    before, newest = windows.losses[:, :half], windows.losses[:, half:]
    now, then = jnp.mean(newest, axis=1), jnp.mean(before, axis=1)
    known = windows.number >= 2 * half
    convergence = jnp.where(known, now / (then + TINY), 1)
    return convergence, jnp.where(known, jnp.std(newest, axis=1) / (now + then + TINY), 0)


@arguments_of(reweight_cells, "window", "temperature", "mix", window=10, temperature=5.0)
def recap(
    clip_low: ClipLow = 0.2, clip_high: ClipHigh = 0.2, epsilon: Epsilon = 1e-6, **windows: Any
) -> Recipe:
    """Applies GRPO without KL, and weighs the kinds of prompts by how their rewards change."""
    return Recipe(
        objective=clipped_objective(
            clip_low, clip_high, epsilon=epsilon, transforms=[reweight_cells(**windows)]
        ),
        experience=experience([shuffled_epochs(), cells_by_kind()]),
    )


METHOD = Method(
    recap,
    changes="weight, curriculum",
    evidence="reconstruction",
    shown=Shown(
        "brackets", "reweighted_fraction", settings={"prompts_per_step": 16}, steps=300, within=20
    ),
)
