"""Heimdall: trains a reasoning verifier on the truth of its verdicts.

"Heimdall: test-time scaling on the generative verification", https://arxiv.org/abs/2504.10337

    R_i  = +1 if the verdict is true, else -1, also for an unreadable one
    PPO with a critic: Â by GAE, whitened; loss = Σ PPO clip / Σ n_i

The prompts of the task are pairs of a problem and a solution, and the verdict is the last line of
a response (`rlvr_jax.verifiers.texts.heimdall`). The outcome is the truth of the verdict. The paper
drops problems whose solutions are all correct or all incorrect. The task `judged_sums` has a
correct and an incorrect solution of each problem.

To choose among N answers with M verdicts each, use `choose` with the rule `lower_bound`. It is a
lower confidence bound, r_a - α ln(N M) / (N_a M + 1). A reconstruction: α = 0.1 is from memory. The
words of a verdict and the constants of PPO were not found; the constants are those of `ppo`.

Left out: solutions that a policy sampled, as those of `judged_sums` are generated.
Reports: verdicts on competition maths: 62.5 to 94.5 % correct. AIME25 with R1-Distill-Qwen-32B as
solver: 54.2 to 70.0 % at 16 times the budget.
Traps: With unbalanced pairs, the verdict of the majority is rewarded. A problem whose solutions are
all correct or all incorrect reveals the verdict.
"""

from typing import Any

from rlvr_jax.experience import Shaping, experience, shape, shaping, signed_outcome
from rlvr_jax.objectives import clipped_with_critic, generalized_advantage
from rlvr_jax.types import Method, Recipe, Shown, arguments_of, part
from rlvr_jax.types.hyperparameters import Discount, TraceDecay


@part
def true_verdict() -> Shaping:
    """+1 for a true verdict, -1 for a false one and for a response without a verdict.

    Metrics: reward/verdict (mean), reward/penalized (fraction of the rows with reward -1).
    """

    def reward(rollouts):
        earned = signed_outcome(rollouts)
        penalized = (earned < 0).astype(earned.dtype)
        return earned, {"reward/verdict": earned, "reward/penalized": penalized}

    return shaping(reward)


@arguments_of(clipped_with_critic, "clip_low", "clip_high", "value_clip")
def heimdall(discount: Discount = 1.0, trace_decay: TraceDecay = 1.0, **clips: Any) -> Recipe:
    """Applies PPO with a critic to verdicts with reward +1 or -1."""
    fitted = clipped_with_critic(generalized_advantage(discount, trace_decay), **clips)
    return Recipe(**fitted, experience=experience(stages=[shape(true_verdict())]))


METHOD = Method(
    heimdall,
    changes="reward",
    baseline="other",
    evidence="reconstruction",
    shown=Shown("judged_sums", "experience/reward/penalized", without="ppo"),
)
