"""Advantages that differ from step to step, by how sure the policy was there."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.masked import masked_mean, masked_rank
from rlvr_jax.objectives.statistics.scopes import Scope, min_max, within_batch, z_score
from rlvr_jax.objectives.statistics.steps import (
    Steps,
    at_tokens,
    find_steps,
    next_step,
    previous_step,
    step_mean,
)
from rlvr_jax.types import Rollouts, replace
from rlvr_jax.types.hyperparameters import Finite, Positive
from rlvr_jax.types.parts import part

__all__ = [
    "StepPotential",
    "StepUncertainty",
    "center_over_steps",
    "credit_potential",
    "credit_step_entropy",
    "standardize_advantage",
    "step_confidence",
    "step_potential",
    "step_uncertainty",
]

Table = Float[Array, "B T"]


class StepUncertainty(NamedTuple):
    """Tables over the steps of a batch (see `steps`).

    Fields:
      entropy: mean entropy of the tokens of the step, nats.
      scaled: the same, min-max over all steps of the batch.
      scale: exp(-k scaled) over its mean: 1 on average, larger for sure steps.
      clarity: exp(-k' scaled) of the step that follows; 0 for the last one.
    """

    entropy: Table
    scaled: Table
    scale: Table
    clarity: Table


def step_uncertainty(
    entropy: Float[Array, "B T"], steps: Steps, rollouts: Rollouts, rate: float, future_rate: float
) -> StepUncertainty:
    """How unsure each step is among all steps of the batch; ε = 1e-8 in both denominators.

    Args:
      entropy: of the tokens, nats.
      rate, future_rate: k and k', of the exponentials of scale and clarity.
    """
    mean = step_mean(entropy, steps)
    scaled = min_max(mean, steps.exists, within_batch(rollouts), epsilon=1e-8)
    sure = jnp.exp(-rate * scaled)
    scale = sure / (masked_mean(sure, steps.exists) + 1e-8)
    clarity = next_step(jnp.exp(-future_rate * scaled), steps)
    return StepUncertainty(mean, scaled, jnp.where(steps.exists, scale, 0), clarity)


@part(writes={"advantage"}, once=True)
def credit_step_entropy(rate: Finite, future_rate: Finite, bonus: Finite, ids: str) -> Transform:
    """Scales the advantage of a step by how sure it was, and pays for a sure step after it.

    A'_s = A g_s + ζ f_{s+1} (`step_uncertainty`; nothing is paid to the last step). Entropies are
    those when the tokens were sampled. Tokens in no step get 0. Groups of equal rewards do not
    stay at 0.

    Args:
      rate, future_rate: k and k'.
      bonus: ζ.
      ids: field of `Rollouts` that numbers the steps, "step" or "turn".
    Reads: advantage, rollouts.entropy, mask, the ids. Writes: advantage. Metrics: none.
    Raises:
      ValueError: a number that is not finite.
    Source: EMPG, "Harnessing Uncertainty".
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        steps = find_steps(getattr(rollouts, ids), signals.mask)
        found = step_uncertainty(rollouts.entropy, steps, rollouts, rate, future_rate)
        table = step_mean(signals.advantage, steps) * found.scale + bonus * found.clarity
        return replace(signals, advantage=at_tokens(table, steps)), state, {}

    return Transform(apply, reads={ids, "sampled_entropy"})


@part(writes={"advantage"}, once=True)
def center_over_steps(ids: str) -> Transform:
    """Takes away the mean advantage of all steps of the batch, each counted once.

    Args:
      ids: field of `Rollouts` that numbers the steps, "step" or "turn".
    Reads: advantage, mask, the ids. Writes: advantage. Metrics: none.
    """

    def apply(signals, context, state):
        steps = find_steps(getattr(context.rollouts, ids), signals.mask)
        mean = masked_mean(step_mean(signals.advantage, steps), steps.exists)
        centered = jnp.where(steps.member, signals.advantage - mean, 0)
        return replace(signals, advantage=centered), state, {}

    return Transform(apply, reads={ids})


def step_confidence(entropy: Float[Array, "B T"], steps: Steps) -> Table:
    """exp(-mean entropy of the step's tokens), in (0, 1]; 0 where there is no step."""
    return jnp.where(steps.exists, jnp.exp(-step_mean(entropy, steps)), 0)


class StepPotential(NamedTuple):
    """Tables over the steps of a batch (see `steps`).

    Fields:
      potential: Φ in [-1, 1]: 0 while exploring, 1 for sure and right, -1 for sure and wrong.
      factor: f, what is left of the outcome's credit after earlier steps had solved the problem.
      bonus: g, of the rise of the potential, 0 on average over all steps.
    """

    potential: Table
    factor: Table
    bonus: Table


def step_potential(
    confidence: Table,
    accuracy: Table,
    steps: Steps,
    rollouts: Rollouts,
    fade: float,
    saturation: float,
    epsilon: float,
) -> StepPotential:
    """Φ = 1.5 Acc Conf + 0.5 Acc - Conf of each step, and the credit that follows from it.

    f_k = 1 - α (1 - exp(-C_k)), C_k the number of earlier steps with Φ above the saturation.
    g_k = exp(δ_k) - mean exp(δ), δ the min-max over all steps of Φ_k - Φ_{k-1}, with Φ = 0 before
    the first step; ε is added to the denominator of the min-max.

    Args:
      confidence, accuracy: tables, in [0, 1].
      fade: α.
      saturation: potential above which a problem counts as solved.
      epsilon: ε.
    """
    potential = 1.5 * accuracy * confidence + 0.5 * accuracy - confidence
    potential = jnp.where(steps.exists, potential, 0)
    solved = steps.exists & (potential > saturation)
    earlier = (masked_rank(solved) - solved.astype(jnp.int32)).astype(potential.dtype)
    factor = jnp.where(steps.exists, 1 - fade * (1 - jnp.exp(-earlier)), 0)
    rise = potential - previous_step(potential, steps)
    grown = jnp.exp(min_max(rise, steps.exists, within_batch(rollouts), epsilon))
    bonus = jnp.where(steps.exists, grown - masked_mean(grown, steps.exists), 0)
    return StepPotential(potential, factor, bonus)


@part(writes={"advantage"}, once=True)
def credit_potential(
    bonus: Finite, fade: Finite, saturation: Finite, epsilon: Positive = 1e-8
) -> Transform:
    """Fades the outcome's credit once a problem is solved, and pays for a rising potential.

    A' = A f + ξ g (`step_potential`); 0 for tokens in no step, so that what follows the last step
    wants its number. Groups of equal rewards do not stay at 0.

    Args:
      bonus: ξ.
      fade: α.
      saturation: potential above which a problem counts as solved.
      epsilon: ε, as in `step_potential`.
    Reads: advantage, probe_confidence, probe_accuracy, step, mask. Writes: advantage. Metrics:
      none.
    Raises:
      ValueError: a number that is not finite, or epsilon not positive.
    Source: SPAE, "Step Potential Advantage Estimation".
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        steps = find_steps(rollouts.step, signals.mask)
        confidence = step_mean(rollouts.probe_confidence, steps)
        accuracy = step_mean(rollouts.probe_accuracy, steps)
        found = step_potential(confidence, accuracy, steps, rollouts, fade, saturation, epsilon)
        faded = signals.advantage * at_tokens(found.factor, steps)
        advantage = faded + bonus * at_tokens(found.bonus, steps)
        return replace(signals, advantage=advantage), state, {}

    reads = {"step", "probe_confidence", "probe_accuracy"}
    return Transform(apply, reads=reads)


@part(writes={"advantage"}, once=True)
def standardize_advantage(
    epsilon: Positive, scope: Scope = within_batch, ddof: int = 1
) -> Transform:
    """A' = (A - mean) / (std + ε) over the tokens that are compared.

    Args:
      epsilon: ε, positive, outside the root.
      scope: which tokens are compared.
      ddof: the sum of squares is divided by n - ddof.
    Reads: advantage, mask. Writes: advantage. Metrics: none.
    Raises:
      ValueError: epsilon not positive.
    """

    def apply(signals, context, state):
        sets = scope(context.rollouts)
        scaled = z_score(signals.advantage, signals.mask, sets, ddof=ddof, epsilon=epsilon)
        return replace(signals, advantage=scaled), state, {}

    return apply
