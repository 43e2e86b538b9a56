"""ADCL and EGSR: pieces from easy to hard that are sorted anew, and solutions in one's own words.

"Learning Like Humans: Advancing LLM Reasoning Capabilities via Adaptive Difficulty Curriculum
Learning and Expert-Guided Self-Reformulation", of which notes were read.

    D_1 … D_K   prompts by the pass rates of the first policy, from easy to hard
    before D_k  its prompts, and no others, are rated by the current policy and sorted anew
    all wrong   the policy is shown the worked solution, and derives it in its own words; what is
                right replaces failed answers, half of the group at most
    A_i  = (R_i - mean) / (std + 1e-6),  loss = PPO's clip on the token mean

Replaced rows have old log-probs under the prompt that they were drawn from and are trained under
the plain one, so that their ratio crosses prompts, as in `guide`. They are the policy's words,
where `luffy_mixed` has the expert's. K, the samples of a rating, the number of replacements and
this ratio are ours; the paper does not tell.
"""

from rlvr_jax.experience import experience, pieces_by_difficulty, replace_failures
from rlvr_jax.experience.views import hint
from rlvr_jax.objectives import group_normalized, objective, ppo_clip, token_mean
from rlvr_jax.types import Method, Recipe


def adcl_egsr(
    pieces: int = 4,
    rating_samples: int = 8,
    guided_samples: int = 8,
    replaced: float = 0.5,
    shown: float = 1.0,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    epsilon: float = 1e-6,
) -> Recipe:
    """GRPO on pieces of rising difficulty, failed groups helped by the worked solution.

    Args:
      pieces: of the prompts (K).
      rating_samples: answers that a prompt's difficulty is estimated from.
      guided_samples: answers with the solution in sight to each prompt that nobody solved.
      replaced: share of a group's rows that give way to guided ones at most.
      shown: of the worked solution.
      clip_low, clip_high: half-widths of the trust region (ε).
      epsilon: added to the standard deviation of a group's rewards.
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        ),
        experience=experience(
            pieces_by_difficulty(pieces, rating_samples),
            stages=[replace_failures(hint(shown), guided_samples, replaced)],
        ),
    )


METHOD = Method(
    adcl_egsr,
    "Learning Like Humans: Advancing LLM Reasoning Capabilities via Adaptive Difficulty Curriculum"
    " Learning and Expert-Guided Self-Reformulation",
    "",
    changes="curriculum, sampling, guidance",
    evidence="reconstruction",
    reports=(
        "Qwen2.5-7B on AIME25: 33.33 % with both parts, 30.00 with either, 23.33 with a fixed "
        "curriculum, 16.67 by RL from the base"
    ),
    traps=(
        "shown the answer, the policy may argue a wrong way towards it, which nothing looks for; "
        "rating pieces costs samples; where guided answers fail as well the group teaches nothing"
    ),
)
