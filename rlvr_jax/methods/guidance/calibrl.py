"""CalibRL: a worked solution sets how certain the policy should be, and is not imitated.

"Controllable Exploration in Hybrid-Policy RLVR for Multi-Modal Reasoning",
https://github.com/zhh6425/CalibRL

    A_i  = R_i - mean over the policy's own rows of the group, no std
    Δ_it = logp_it - e_t,  e_t the old log-prob of the solution's token at the same position
    g_it = LeakyReLU_½(-s_i Δ_it) |A_i|,  s_i = 1 for correct rows, -1 for incorrect ones
    loss = mean over own tokens of [PPO with dual clip + 0.1 g]

The solution's row has no loss. e_t is a level and not a likelihood, because the texts differ. A
correct row is raised at full strength below the level and at half strength above it. An incorrect
row is lowered with the reverse strengths. |A| puts more weight on outcomes that are rare in the
group. Tokens after the solution's end have no such term, but they count in the denominator. The
released code reads the solution's padding there. Every group has its solution, as in the published
script (mixup ratio 1).

Left out: solutions in some groups only (mixup by chance or by pass rate).
Reports: Qwen2.5-VL-7B: gains on eight multimodal benchmarks in and out of domain, with a higher
entropy (abstract, no numbers).
Traps: Tokens at one position of two different texts are compared. Groups of equal rewards have no
term.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.experience import add_traces, experience, part
from rlvr_jax.objectives import Transform, clipped_objective, drop_off_policy, rollout_advantage
from rlvr_jax.objectives.statistics.groups import group_count, group_mean
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import Method, Recipe, Shown, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, DualClip, Finite, NonNegative, Unit


@part
def centered_on_own_rows() -> Transform:
    """A_i = R_i - mean over the policy's own rows of the group, for all its rows.

    The mean is 0 in a group with one own row.
    """

    def advantage(rollouts):
        own = ~rollouts.records["off_policy"]
        alone = group_count(rollouts.group, own) <= 1
        mean = group_mean(rollouts.reward, rollouts.group, where=own)
        return rollouts.reward - jnp.where(alone, 0, mean)

    return rollout_advantage(advantage, reads={"off_policy"})


@part(reads={"logp", "off_policy", "batch_statistics"}, writes={"penalty"})
def calibrate_to_expert(coefficient: NonNegative, slope: Unit, correct_above: Finite) -> Transform:
    """Adds c · LeakyReLU(-s Δ) |A| where the group has an expert's token at the position.

    Metrics: calibration_loss (mean over the tokens before c), calibrated_fraction (fraction of the
      tokens to which the term adds something).
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        level, there = expert_level(
            context.old_logp, rollouts.mask, rollouts.records["off_policy"], rollouts.group
        )
        correct = rollouts.outcome > correct_above
        values = calibration_loss(context.stats.logp - level, correct, slope)
        values = jnp.where(there, values, 0) * jnp.abs(signals.advantage)
        added = coefficient * values
        metrics = {
            "calibration_loss": masked_mean(values, signals.mask),
            "calibrated_fraction": masked_mean((added != 0).astype(values.dtype), signals.mask),
        }
        return replace(signals, penalty=signals.penalty + added), state, metrics

    return apply


def expert_level(
    old_logp: Float[Array, "B T"],
    mask: Bool[Array, "B T"],
    off_policy: Bool[Array, "B"],
    group: Int[Array, "B"],
) -> tuple[Float[Array, "B T"], Bool[Array, "B T"]]:
    """Mean old log-prob of the group's expert tokens at each position, and where there are any.

    Args:
      old_logp: of the policy that sampled, nats, [B, T].
      mask: response tokens that count, bool [B, T].
      off_policy: rows that an expert wrote, bool [B].
      group: group of each row, int [B].
    """
    there = mask & off_policy[:, None]
    along_tokens = jax.vmap(group_mean, in_axes=(1, None, 1), out_axes=1)
    count = jax.vmap(group_count, in_axes=(None, 1), out_axes=1)(group, there)
    return along_tokens(old_logp, group, there), count > 0


def calibration_loss(
    distance: Float[Array, "B T"],
    correct: Bool[Array, "B"],
    slope: float,
) -> Float[Array, "B T"]:
    """LeakyReLU of -Δ for correct rows and of Δ for incorrect ones.

    Args:
      distance: Δ = logp - the expert's level.
    """
    signed = jnp.where(correct[:, None], -distance, distance)
    return jnp.where(signed > 0, signed, slope * signed)


def calibrl(
    coefficient: NonNegative = 0.1,
    slope: Unit = 0.5,
    correct_above: Finite = 0.1,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    dual_clip: DualClip = 3.0,
) -> Recipe:
    """Applies PPO to own rows, with a term towards the level that a worked solution sets.

    Args:
      coefficient: weight of that term.
      slope: slope of the LeakyReLU below 0.
      correct_above: outcome above which a row is correct.
    """
    return Recipe(
        objective=clipped_objective(
            clip_low,
            clip_high,
            advantage=centered_on_own_rows(),
            transforms=[drop_off_policy()],
            dual_clip=dual_clip,
            regularizers=[calibrate_to_expert(coefficient, slope, correct_above)],
        ),
        experience=experience(stages=[add_traces(1)]),
    )


METHOD = Method(
    calibrl,
    changes="advantage, regularizer, guidance",
    baseline="batch",
    shown=Shown("brackets", "calibrated_fraction", without={"coefficient": 0}, steps=300),
)
