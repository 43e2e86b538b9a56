"""SRPO: failures that a right answer could teach are distilled, all else is reinforced.

"Unifying Group-Relative and Self-Distillation Policy Optimization via Sample Routing",
https://arxiv.org/abs/2604.02288

    z_i  = row i is wrong, and another row of its group is right
    z = 0:  max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)),  A = R_i - mean over all rows
    z = 1:  w_t KL(π ‖ π_T),  w_t = exp(-β H_t) over its mean in the batch
    loss = Σ / Σ n_i, one denominator for both

π_T is SDPO's teacher, H_t its entropy: where it is not sure it is not followed. Failures leave the
policy gradient and stay in the mean, so that right rows gain from them. As fewer rows fail the mix
turns from distillation to GRPO by itself. The paper takes SDPO's divergence; its figure, and we,
KL(policy ‖ teacher) over the whole vocabulary.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool

from rlvr_jax.experience import experience, show_sibling
from rlvr_jax.objectives import (
    by_origin,
    distilled,
    group_centered,
    objective,
    ppo_clip,
    token_mean,
)
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.objectives.surrogates.distillation import Distance
from rlvr_jax.objectives.transforms.teachers import has_right_sibling
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, NonNegative
from rlvr_jax.types.parts import Function, part
from rlvr_jax.types.rollouts import Rollouts


@part
def over_vocabulary(statistic: str) -> Distance:
    """A divergence over the whole vocabulary.

    Args:
      statistic: "kl", KL(policy ‖ teacher); "reverse_kl", KL(teacher ‖ policy); or "js".
    """
    return Distance(lambda context: getattr(context.stats, statistic), frozenset({statistic}))


def taught_failures(rollouts: Rollouts, success: float = 0.5) -> Bool[Array, "B T"]:
    """Tokens of rows that failed beside a row that did not."""
    route = (rollouts.outcome < success) & has_right_sibling(rollouts, success)
    return jnp.broadcast_to(route[:, None], rollouts.mask.shape)


@part(reads={"teacher_entropy", "batch_statistics"}, writes={"weight"})
def weigh_certain_teacher(beta: NonNegative, success: float = 0.5) -> Transform:
    """Weighs the tokens of taught failures by exp(-β H), H the teacher's entropy, to mean 1.

    Args:
      beta: β, at least 0.
      success: as of `drop_untaught`.
    Metrics: taught_share (of the tokens), teacher_entropy (mean over those tokens).
    """

    def apply(signals, context, state):
        taught = signals.mask & taught_failures(context.rollouts, success)
        entropy = context.stats.teacher_entropy
        raw = jnp.where(taught, jnp.exp(-beta * entropy), 0)
        mean = masked_mean(raw, taught)
        scaled = raw / jnp.where(mean > 0, mean, 1)
        weight = signals.weight * jnp.where(taught, scaled, 1)
        told = {
            "taught_share": masked_mean(taught, signals.mask),
            "teacher_entropy": masked_mean(entropy, taught),
        }
        return replace(signals, weight=weight), state, told

    return apply


@part
def failures(success: float) -> Function:
    """The tokens of failures to which a right answer was shown, bool [B, T]."""
    return lambda rollouts: taught_failures(rollouts, success)


def srpo(
    beta: float = 1.0,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
    success: float = 0.5,
    teacher: str = "average:0.95",
) -> Recipe:
    """GRPO without std, and distillation of the failures beside a right answer.

    Args:
      beta: how much the teacher's entropy takes from its weight (β).
      success: outcome from which on a row is right.
      teacher: whose weights the teacher has.
    """
    return Recipe(
        objective=objective(
            advantage=group_centered(),
            transforms=[weigh_certain_teacher(beta, success)],
            surrogate=by_origin(
                own=ppo_clip(low=clip_low, high=clip_high),
                foreign=distilled(over_vocabulary("kl")),
                where=failures(success),
                reads=(),
            ),
            aggregation=token_mean(),
        ),
        experience=experience(stages=[show_sibling(success)]),
        teacher=teacher,
    )


METHOD = Method(
    srpo,
    "Unifying Group-Relative and Self-Distillation Policy Optimization via Sample Routing",
    "https://arxiv.org/abs/2604.02288",
    changes="advantage, weight, surrogate, guidance",
    evidence="reconstruction",
    left_out="feedback in words",
    reports=(
        "Qwen3-8B after 10 hours, five benchmarks: 77.4 on average, GRPO 74.0, SDPO 71.1; steps "
        "up to 17.2 % cheaper"
    ),
    traps=(
        "all-wrong groups teach nothing, but stay in the denominator; weights normalised in each "
        "row are another method; failures leave the policy gradient, not the mean"
    ),
)
