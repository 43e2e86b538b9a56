"""PROF: of more answers than are trained on, keep those whose steps agree with their outcome.

"Beyond Correctness: Harmonizing Process and Outcome Rewards through RL Training",
https://github.com/Chenluye99/PROF

    1. n = 8 responses to each prompt; r = ±(mean score of its steps - λ I), + if it is right; I = 1
       for a response of one step, or of H_λ and more
    2. m = 4 are kept, right and wrong ones in shares as equal as possible:
       q⁺ = min(n⁺, max(m/2, m - n⁻)) right ones of highest r, q⁻ = m - q⁺ wrong ones of highest r
    3. GRPO over the kept: A = (R - mean) / (std + 1e-6), std with n - 1
       loss = Σ max(-A ρ, -A clip(ρ, 1 ± ε)) / Σ n_i

The process scores choose and do not enter the objective. "Both" is the published form; with
`rank_wrong=False` ("Filter-Correct") wrong ones are taken as they come, which is safer where a
scorer does not know them. With the sign before the bracket a wrong answer of one step gains λ:
whether that is meant is not said. λ and H_λ are not given: with ours the penalty outranks any
difference of scores in [0, 1]. The paper's scores are those of a process reward model; here the
task scores steps, such as each equation of a brackets trace.
"""

from rlvr_jax.experience import experience, score_steps, select_consistent
from rlvr_jax.objectives import group_normalized, objective, ppo_clip, token_mean
from rlvr_jax.types import Method, Recipe


def prof(
    drawn: int = 2,
    penalty: float = 1.0,
    most_steps: int = 30,
    rank_wrong: bool = True,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    epsilon: float = 1e-6,
) -> Recipe:
    """GRPO on the token mean, on half of the responses that were drawn.

    Args:
      drawn: responses drawn for each that is kept (n / m); m should be even.
      penalty: for responses of one step or of many (λ).
      most_steps: many (H_λ).
      rank_wrong: wrong responses are chosen by their steps, too.
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
            stages=[score_steps(), select_consistent(drawn, penalty, most_steps, rank_wrong)]
        ),
    )


METHOD = Method(
    prof,
    "Beyond Correctness: Harmonizing Process and Outcome Rewards through RL Training",
    "https://github.com/Chenluye99/PROF",
    changes="selection, sampling",
    evidence="reconstruction",
    reports=(
        "five maths sets, over GRPO: 1.5B 37.2 to 39.6, 7B 49.9 to 51.7, where blending the "
        "scores into rewards gives 35.3 and 47.3"
    ),
    traps=(
        "twice the answers are drawn; groups of one outcome teach nothing; an odd number of kept "
        "rows has two best splits; a wrong answer of one step is rather kept"
    ),
)
