"""SCOPE: a wrong answer keeps its right beginning, and a teacher writes the rest.

"Recycling Failures: Salvaging Exploration in RLVR via Fine-Grained Off-Policy Guidance", of which
the abstract was read; the loss is LUFFY's with the origin of each token in the place of the row's.

    e = the first step of a wrong answer whose score is below a bound
    a teacher goes on behind the steps before e; what is right then takes the answer's place, R = 1
    A_i  = (R_i - mean) / (std + 1e-6) over the group, std with n - 1
    kept token:     max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε))
    teacher's:      -A f(π),  f(π) = π / (π + γ)
    loss = Σ over all tokens / Σ n_i

Kept tokens are the policy's own and gain from an answer that had failed; an answer that is wrong
from the start stays as it is. A group keeps one wrong answer, or it would teach nothing. Scores
locate and are no reward. The teacher is the policy that is shown the worked solution; bound, number
of answers, teacher and shaping are ours.
"""

from rlvr_jax.experience import experience, salvage, score_steps
from rlvr_jax.experience.views import hint
from rlvr_jax.objectives import (
    by_origin,
    group_normalized,
    objective,
    ppo_clip,
    shaped_probability,
    token_mean,
)
from rlvr_jax.types import Method, Recipe


def scope(
    wrong_below: float = 0.0,
    gamma: float = 0.1,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    hint_fraction: float = 1.0,
    epsilon: float = 1e-6,
) -> Recipe:
    """PPO on what the policy wrote, shaped probability on what a teacher put behind it.

    Args:
      wrong_below: score below which a step is wrong; 0.5 where scores are 0 and 1.
      gamma: probability at which a teacher's token is learned from most (γ).
      clip_low, clip_high: half-widths of the trust region (ε).
      hint_fraction: of the worked solution that the teacher is shown.
      epsilon: added to the standard deviation of a group's rewards.
    """
    own = ppo_clip(low=clip_low, high=clip_high)
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=by_origin(own=own, foreign=shaped_probability(gamma)),
            aggregation=token_mean(),
        ),
        experience=experience(stages=[score_steps(), salvage(hint(hint_fraction), wrong_below)]),
    )


METHOD = Method(
    scope,
    "Recycling Failures: Salvaging Exploration in RLVR via Fine-Grained Off-Policy Guidance",
    "",
    changes="surrogate, sampling, guidance",
    evidence="reconstruction",
    left_out="another model as teacher, which rectifies step by step",
    reports="46.6 % on average on maths and 53.4 % out of distribution; diversity 13.5 % higher",
    traps=(
        "an answer wrong from its first step, or in none, is not salvaged; one wrong answer of a "
        "group always stays, else it had no signal; with step scores of 0 and 1 give "
        "`wrong_below=0.5`"
    ),
)
