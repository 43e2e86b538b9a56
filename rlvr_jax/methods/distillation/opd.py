"""OPD: on-policy distillation; a teacher's log-ratio is the reward of every token.

"VLA-OPD: Bridging Offline SFT and Online RL for Vision-Language-Action Models via On-Policy
Distillation" (only the abstract was read; formulas are those of a public re-implementation)

    r_t  = log π_T(a_t) - log π(a_t), without gradient, |r_t| ≤ 20
    loss = mean_t -r_t log π(a_t)

The gradient is that of the reverse KL(π ‖ π_T) at the states of the student, which seeks modes.
Without a ratio to the policy that sampled, the estimate is biased after the first update of a
batch. With whole distributions it is exact: `no_advantage()`, `no_policy_loss()` and
`statistic_penalty(1.0, "kl")`. Without a baseline, the probability of almost every token falls at
first. The bound of 20 is ours.

A run does not start without `teacher`, because the initial policy would teach nothing.

Left out: a baseline; teachers of another shape, as a run has one model for policy and teacher.
Reports: robots (LIBERO, RoboTwin 2.0): far fewer samples than RL, more robust than SFT, little
forgetting (no numbers).
Traps: No reward is read: the policy becomes as good as its teacher. Tokenizer and template must be
the teacher's.
"""

import jax
import jax.numpy as jnp

from rlvr_jax.objectives import Transform, masked_mean, objective, part, reinforce, token_mean
from rlvr_jax.types import Method, Recipe, Shown, replace
from rlvr_jax.types.hyperparameters import Positive

DIFFERENT = 0.1
"""Log-ratio (nats) from which a token counts as taught. Chosen: a tenth of the probability."""


@part(reads={"logp", "teacher_logp"}, writes={"advantage"})
def teacher_log_ratio(bound: Positive = 20.0) -> Transform:
    """A_t = log π_T(a_t) - log π(a_t): minus the reverse KL at the token, from one sample.

    There is no discounted sum over later tokens. The mean is below 0 until the policy is the
    teacher. Without the bound it is -∞ for tokens with teacher probability 0.

    Metrics: teacher_log_ratio (mean over the tokens, nats), taught_fraction (fraction of the tokens
      with a log-ratio beyond ±0.1 nats).
    """

    def apply(signals, context, state):
        own = jax.lax.stop_gradient(context.stats.logp)
        ratio = jnp.clip(context.rollouts.records["teacher_logp"] - own, -bound, bound)
        advantage = jnp.where(signals.mask, ratio, 0)
        metrics = {
            "teacher_log_ratio": masked_mean(advantage, signals.mask),
            "taught_fraction": masked_mean(jnp.abs(advantage) > DIFFERENT, signals.mask),
        }
        return replace(signals, advantage=advantage), state, metrics

    return apply


def opd(teacher: str = "", bound: Positive = 20.0) -> Recipe:
    """Applies the policy gradient of minus the reverse KL to a teacher, token by token.

    Args:
      teacher: folder of a policy with the same tokens and shape, which has to be given.
      bound: bound of the reward of a token, on both sides (nats).
    """
    return Recipe(
        objective=objective(
            advantage=teacher_log_ratio(bound),
            surrogate=reinforce(),
            aggregation=token_mean(),
        ),
        teacher=teacher,
    )


METHOD = Method(
    opd,
    changes="advantage, surrogate, guidance",
    baseline="other",
    gradient="stopped",
    evidence="reconstruction",
    shown=Shown(
        "hinted_brackets:train=512",
        "taught_fraction",
        hyperparameters={"teacher": "docs/results/guidance/teacher"},
    ),
)
