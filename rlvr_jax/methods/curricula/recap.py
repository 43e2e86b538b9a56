"""RECAP: of several objectives those that are still moving, or unsteady, count for more.

"Beyond Reasoning Gains: Mitigating General Capabilities Forgetting in Large Reasoning Models",
https://github.com/VietHoang1512/recap, of which notes and the README were read.

    L_k  = 1 - mean reward of the rows of objective k in the step
    c_k  = μ / μ',  i_k = σ / (μ + μ') over the newest W and the W steps before
    λ_k  = K softmax((c_k + i_k) / T),  1 before there are 2W steps
    loss = (1/K) Σ λ_k · GRPO's clipped loss over the tokens of objective k, without KL

Objectives are the kinds of the task's prompts: mix general tasks among those of reasoning, and
their kinds are replayed with weights. A saturated objective has c near 1 and i near 0 and loses
against volatile ones. The README has s = α c + (1 - α) i with α = 0.5: `mix=0.5`. That policy
losses give way to 1 - reward is our reading; theirs measures losses.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.experience import cells_by_kind, experience, shuffled_epochs
from rlvr_jax.objectives import group_normalized
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.arguments import check_within
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.statistics.groups import has_tokens
from rlvr_jax.objectives.statistics.masked import masked_count
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Count, Epsilon, Positive, Temperature
from rlvr_jax.types.parts import part

TINY = 1e-8
"""Added to what is divided by; ours."""


class CellWindows(NamedTuple):
    """The last losses of each of K objectives.

    Fields:
      losses: [K, 2W], the newest last.
      number: int32 [K], how many there were in all.
    """

    losses: Float[Array, "K W2"]
    number: Int[Array, "K"]


def pushed(windows: CellWindows, loss: Float[Array, "K"], there: Array) -> CellWindows:
    """The windows with one loss more, of those objectives that the batch has.

    Args:
      there: bool [K].
    """
    moved = jnp.concatenate([windows.losses[:, 1:], loss[:, None].astype(windows.losses.dtype)], 1)
    return CellWindows(
        jnp.where(there[:, None], moved, windows.losses),
        windows.number + there.astype(windows.number.dtype),
    )


def window_progress(windows: CellWindows) -> tuple[Float[Array, "K"], Float[Array, "K"]]:
    """Convergence c = μ / μ' and instability i = σ / (μ + μ') of each objective.

    μ and σ are mean and deviation (with n) of the newest W losses, μ' the mean of the W before;
    before there are 2W losses c is 1 and i is 0.
    """
    half = windows.losses.shape[1] // 2
    before, newest = windows.losses[:, :half], windows.losses[:, half:]
    now, then = jnp.mean(newest, axis=1), jnp.mean(before, axis=1)
    known = windows.number >= 2 * half
    convergence = jnp.where(known, now / (then + TINY), 1)
    return convergence, jnp.where(known, jnp.std(newest, axis=1) / (now + then + TINY), 0)


def objective_weights(
    windows: CellWindows, temperature: float, mix: float | None = None
) -> Float[Array, "K"]:
    """λ_k = K softmax(s / T)_k over the objectives with 2W losses, whose mean is 1; 1 for others.

    Args:
      temperature: T.
      mix: α of the priority s = α c + (1 - α) i; None: s = c + i.
    """
    convergence, instability = window_progress(windows)
    if mix is None:
        priority = convergence + instability
    else:
        priority = mix * convergence + (1 - mix) * instability
    known = windows.number >= windows.losses.shape[1]
    share = jax.nn.softmax(jnp.where(known, priority / temperature, -jnp.inf))
    return jnp.where(known, jnp.sum(known).astype(share.dtype) * share, 1)


@part(writes={"weight"})
def reweight_cells(
    window: Count, temperature: Positive, mix: float | None = None, most: Count = 16
) -> Transform:
    """Lets every objective count alike, times a weight by how its loss has moved lately.

    An objective is a cell of rows (`Rollouts.cell`, such as the kinds of a task); its loss in a
    step is 1 - mean reward, which does not change its sign as a policy loss does. With n_k of N
    tokens and K objectives in the batch the weight of a token is λ_k N / (K n_k), so that a token
    mean becomes (1/K) Σ λ_k L_k. The loss of this batch is part of the windows. Rows without a
    label, and of cells behind the last one, keep their weight.

    Args:
      window: W, steps.
      temperature: T of the softmax.
      mix: α; see `objective_weights`.
      most: cells that are remembered.
    Metrics: objective_weight/min, objective_weight/max (λ of the batch's objectives).
    Raises:
      ValueError: a window or number of cells below 1, a temperature that is not positive, mix
        outside [0, 1].
    """
    if mix is not None:
        check_within(0, 1, "reweight_cells", mix=mix)

    def init(spec):
        del spec
        return CellWindows(jnp.zeros((most, 2 * window), float), jnp.zeros(most, jnp.int32))

    def apply(signals, context, state):
        rollouts, kind = context.rollouts, signals.weight.dtype
        cells = jnp.arange(most, dtype=rollouts.cell.dtype)
        judged = has_tokens(signals.mask)
        members = (rollouts.cell[:, None] == cells[None]) & judged[:, None]
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
        told = {
            "objective_weight/min": jnp.min(jnp.where(there, weights, jnp.inf)),
            "objective_weight/max": jnp.max(jnp.where(there, weights, -jnp.inf)),
        }
        return signals, state, {name: jnp.where(there.any(), x, 1) for name, x in told.items()}

    return Transform(apply, init=init, reads={"cell"}, once=True)


def recap(
    window: int = 10,
    temperature: Temperature = 5.0,
    mix: float | None = None,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO without KL whose kinds of prompts are weighed by how their rewards move.

    Args:
      window: steps of each of two windows (W).
      mix: share of the convergence in the priority (α); None: convergence and instability add up.
    """
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            advantage=group_normalized(epsilon),
            transforms=[reweight_cells(window, temperature, mix)],
        ),
        experience=experience([shuffled_epochs(), cells_by_kind()]),
    )


METHOD = Method(
    recap,
    "Beyond Reasoning Gains: Mitigating General Capabilities Forgetting in Large Reasoning Models",
    "https://github.com/VietHoang1512/recap",
    changes="weight, curriculum",
    evidence="reconstruction",
    left_out="objectives with a supervised loss",
    reports=(
        "Qwen2.5-VL-7B: LISA IoU 65.1 falls to 57.6 with reasoning alone, with replay 67.2; "
        "MathVerse 26.3 to 40.8"
    ),
    traps=(
        "a task of one kind of prompts is plain GRPO; before 20 steps weights are 1; with T = 5 "
        "they stay near 1, and the README's half more so"
    ),
)
