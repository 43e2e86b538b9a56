"""OPD: the policy's own answers, every token of which a teacher says how likely it finds it.

"VLA-OPD: Bridging Offline SFT and Online RL for Vision-Language-Action Models via On-Policy
Distillation", of which the abstract was read, with formulas of a public re-implementation.

    r_t  = log π_T(a_t) - log π(a_t), without gradient, |r_t| ≤ 20
    loss = mean_t -r_t log π(a_t)

Its gradient is that of the reverse KL(π ‖ π_T) at the states of the student, which it seeks rather
than covers. No reward is read; the verifier only counts. With several updates per batch the
frozen form is right: `teacher_log_ratio(frozen=True)` with `ppo_clip(0.2, 0.2)`. With whole
distributions it is exact: `no_advantage()`, `no_policy_loss()` and `statistic_penalty(1.0, "kl")`.
Without a baseline every token is pushed down at first. The bound is ours.
"""

import jax
import jax.numpy as jnp

from rlvr_jax.objectives import objective, reinforce, token_mean
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import Positive
from rlvr_jax.types.parts import part


@part(reads={"logp", "teacher_logp"}, writes={"advantage"})
def teacher_log_ratio(frozen: bool = False, bound: Positive = 20.0) -> Transform:
    """A_t = log π_T(a_t) - log π(a_t): minus the reverse KL at the token, from one sample of it.

    Each token has its own, nothing is passed on from later ones. Its mean is below 0 until the
    policy is the teacher, and it is -∞ where the teacher finds a token impossible.

    Args:
      frozen: π is the policy that sampled, as a clipped ratio wants it; else the current one, with
        which -A logp has the gradient of the divergence, on-policy alone.
      bound: of |A_t|, nats.
    Metrics: teacher_log_ratio (its mean).
    """

    def apply(signals, context, state):
        own = context.old_logp if frozen else jax.lax.stop_gradient(context.stats.logp)
        ratio = jnp.clip(context.rollouts.teacher_logp - own, -bound, bound)
        advantage = jnp.where(signals.mask, ratio, 0)
        told = {"teacher_log_ratio": masked_mean(advantage, signals.mask)}
        return replace(signals, advantage=advantage), state, told

    return apply


def opd(teacher: str = "start", bound: float = 20.0) -> Recipe:
    """The policy gradient of minus the reverse KL to a teacher, token by token.

    Args:
      teacher: folder of the teacher, a policy with the same tokens and shape; "start" is the policy
        that the run begins with, which teaches nothing but to stay.
      bound: of the reward of a token (nats).
    """
    return Recipe(
        objective=objective(
            advantage=teacher_log_ratio(bound=bound),
            surrogate=reinforce(),
            aggregation=token_mean(),
        ),
        teacher=teacher,
    )


METHOD = Method(
    opd,
    "VLA-OPD: Bridging Offline SFT and Online RL for Vision-Language-Action Models via On-Policy"
    " Distillation",
    "",
    changes="advantage, surrogate, guidance",
    baseline="other",
    gradient="stopped",
    evidence="reconstruction",
    left_out="a baseline; teachers of another shape",
    reports=(
        "robots (LIBERO, RoboTwin 2.0): far fewer samples than RL, sturdier than SFT, little "
        "forgotten"
    ),
    traps=(
        "the default teacher is the start: it teaches nothing; no reward is read; a second update "
        "on a batch is biased, take `frozen=True` there; tokenizer and template must be the "
        "teacher's"
    ),
)
