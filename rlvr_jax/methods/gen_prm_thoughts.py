"""TP-GRPO: steps of one verdict are a thought, and thoughts are paid by how hard the prompt is.

"Good Learners Think Their Thinking: Generative PRM Makes Large Reasoning Model More Efficient Math
Learner"

    a thought is a run of steps that are all right, or all wrong
    r(thought) = accuracy of the group if right; -p if wrong in a wrong response; else 0
    A_t  = Σ of the rewards of this and later thoughts
    loss = Σ PPO clip / Σ n_i

A reconstruction from the abstract: the simplest scales with its three properties (right steps of
hopeless prompts earn nothing, wrong ones cost where the response followed them, splitting a thought
gains nothing). Normalisation is not known. The verdicts on steps are the task's (`score_steps`,
right if above 0), theirs those of a model that reads where the response corrects itself.
"""

from rlvr_jax.experience import experience, score_steps
from rlvr_jax.objectives import (
    nothing_at_the_end,
    objective,
    ppo_clip,
    process_to_go,
    thought_rewards,
    token_mean,
)
from rlvr_jax.types import Method, Recipe


def gen_prm_thoughts(penalty: float = 1.0, clip_low: float = 0.2, clip_high: float = 0.2) -> Recipe:
    """The clipped loss on the token mean, on what thoughts earn from here on.

    Args:
      penalty: for a wrong thought in a wrong response (p).
      clip_low, clip_high: half-widths of the trust region.
    """
    return Recipe(
        objective=objective(
            advantage=process_to_go(thought_rewards(penalty), at_end=nothing_at_the_end),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        ),
        experience=experience(stages=[score_steps()]),
    )


METHOD = Method(
    gen_prm_thoughts,
    "Good Learners Think Their Thinking: Generative PRM Makes Large Reasoning Model More Efficient"
    " Math Learner",
    "",
    changes="reward, advantage",
    evidence="reconstruction",
    left_out="the model that judges steps",
    reports=(
        "R1-Distill-Qwen 1.5B and 7B: above RL on outcomes with 5.6k training samples against 34k "
        "(abstract)"
    ),
    traps=(
        "on prompts that nobody solves only penalties are left; a right last thought of a wrong "
        "response is paid; nothing is normalized, so the scale is that of the sums of thoughts"
    ),
)
