"""EMPG: scales the credit of an agent's step by its certainty, and rewards certain next steps.

"Harnessing Uncertainty: Entropy-Modulated Policy Gradients for Long-Horizon LLM Agents"

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    Ĥ_s  = min-max of the mean entropy of step s over all steps of the batch
    A_s  = A_i exp(-k Ĥ_s) / mean exp(-k Ĥ) + ζ exp(-k' Ĥ_{s+1}), the second term not in last steps
    A'_s = A_s - mean of A over all steps, each counted once
    loss = Σ max(-A' ρ, -A' clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i

A step is a turn of the agent. Its entropies are those of sampling time. Replies of the environment
belong to no step. k, k' and ζ are `scale_rate`, `clarity_rate` and `clarity_bonus`. A
reconstruction from a description of the paper and two ports of its listing. The ports have k = k' =
1 and ζ = 0.1 or 0.05, and the mean over steps is theirs. Groups of equal rewards are trained on.

Reports: success in %. ALFWorld with Qwen2.5-1.5B: GRPO 65.6 to 73.7, DAPO 80.8 to 88.1. WebShop
with 7B: DAPO 79.6 to 82.7. Deep Search with 32B: 62.0 to 65.3.
Traps: Last steps have no bonus, so short episodes lose after the centering. One port multiplies the
batch by every step's weight in turn. The paper tunes k and ζ per task.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.experience import experience
from rlvr_jax.methods._tools import Tools
from rlvr_jax.objectives import Transform, clipped_objective, masked_mean, min_max, within_batch
from rlvr_jax.objectives.advantages.process_credit import Table
from rlvr_jax.objectives.statistics.steps import Steps, at_tokens, find_steps, next_step, step_mean
from rlvr_jax.types import Method, Recipe, Rollouts, Shown, arguments_of, part, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Finite


@part(writes={"advantage"}, once=True)
def credit_step_entropy(rate: Finite, future_rate: Finite, bonus: Finite, ids: str) -> Transform:
    """Scales the advantage of a step by its certainty, and adds a bonus for a certain next step.

    A_s = A_i scale_s + ζ clarity_s (`step_uncertainty`). Tokens in no step get 0. Groups of equal
    rewards do not stay at 0.

    Args:
      rate, future_rate, bonus: k, k' and ζ.
      ids: record that numbers the steps, "step" or "turn".
    Metrics: step_scale_change (mean distance of a step's scale from 1), step_clarity (mean ζ
      clarity_s of the steps).
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        steps = find_steps(rollouts.get(ids), signals.mask)
        found = step_uncertainty(rollouts.entropy, steps, rollouts, rate, future_rate)
        table = step_mean(signals.advantage, steps) * found.scale + bonus * found.clarity
        metrics = {
            "step_scale_change": masked_mean(jnp.abs(found.scale - 1), steps.exists),
            "step_clarity": masked_mean(bonus * found.clarity, steps.exists),
        }
        return replace(signals, advantage=at_tokens(table, steps)), state, metrics

    return Transform(apply, reads={ids, "sampled_entropy"})


class StepUncertainty(NamedTuple):
    """Tables over the steps of a batch (`rlvr_jax.objectives.statistics.steps`).

    Fields:
      entropy: mean entropy of the tokens of the step, nats.
      scaled: Ĥ, the entropy min-max scaled over all steps of the batch.
      scale: exp(-k Ĥ) over its mean: 1 on average, larger for certain steps.
      clarity: exp(-k' Ĥ) of the next step; 0 for the last one.
    """

    entropy: Table
    scaled: Table
    scale: Table
    clarity: Table


def step_uncertainty(
    entropy: Float[Array, "B T"], steps: Steps, rollouts: Rollouts, rate: float, future_rate: float
) -> StepUncertainty:
    """Entropy, scale and clarity of each step of the batch; ε = 1e-8 in both denominators.

    Args:
      entropy: of the tokens, nats.
      steps: steps of the batch, from `find_steps`.
      rollouts: the batch; the min-max is over all its steps.
      rate, future_rate: k and k'.
    """
    mean = step_mean(entropy, steps)
    scaled = min_max(mean, steps.exists, within_batch(rollouts), epsilon=1e-8)
    certain = jnp.exp(-rate * scaled)
    scale = certain / (masked_mean(certain, steps.exists) + 1e-8)
    clarity = next_step(jnp.exp(-future_rate * scaled), steps)
    return StepUncertainty(mean, scaled, jnp.where(steps.exists, scale, 0), clarity)


@part(writes={"advantage"}, once=True)
def center_over_steps(ids: str) -> Transform:
    """Subtracts the mean advantage of all steps of the batch, each counted once.

    Args:
      ids: record that numbers the steps, "step" or "turn".
    """

    def apply(signals, context, state):
        steps = find_steps(context.rollouts.get(ids), signals.mask)
        mean = masked_mean(step_mean(signals.advantage, steps), steps.exists)
        centered = jnp.where(steps.member, signals.advantage - mean, 0)
        return replace(signals, advantage=centered), state, {}

    return Transform(apply, reads={ids})


@arguments_of(Tools, into="tools", tools=None)
def empg(
    scale_rate: Finite = 1.0,
    clarity_rate: Finite = 1.0,
    clarity_bonus: Finite = 0.1,
    ids: str = "turn",
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
    *,
    tools: Tools,
) -> Recipe:
    """Modulates GRPO's advantages per step, with DAPO's clip and token mean.

    Args:
      scale_rate: rate at which the weight of a step falls with its entropy (k).
      clarity_rate: rate at which the bonus falls with the entropy of the next step (k').
      clarity_bonus: largest bonus (ζ).
      ids: record that numbers the steps, "turn" or "step".
    """
    return Recipe(
        objective=clipped_objective(
            clip_low,
            clip_high,
            transforms=[
                credit_step_entropy(scale_rate, clarity_rate, clarity_bonus, ids),
                center_over_steps(ids),
            ],
        ),
        experience=experience(draw=tools.draw()),
    )


METHOD = Method(
    empg,
    changes="sampling, advantage",
    baseline="other",
    evidence="reconstruction",
    shown=Shown(
        "noted_calculations",
        "step_clarity",
        without={"scale_rate": 0.0, "clarity_bonus": 0.0},
    ),
)
