"""MEML-GRPO: experts that are prompts of one policy; the best one of a question teaches the worst.

"MEML-GRPO: Heterogeneous Multi-Expert Mutual Learning for RLVR Advancement", of which the abstract
was read.

    the rollouts of a question are split over P experts, which differ by what their prompt adds
    A_i  = (R_i - mean) / (std + 1e-6) over the rows of the same question and expert
    mutual: mean over the right rows of the best expert of log π_old(o | best) - log π(o | worst)
    hard:   with more than 3/4 wrong rows a question is kept with probability 3/4; when 64 are,
            their solutions are imitated behind every expert's prompt, in an update of their own
    loss = PPO clip on the token mean + λ₁ mutual + λ₂ imitation

The notes print the mutual term with the other sign, which would push the worst expert away. With
one baseline over all experts the weaker style would be punished. λ₁, λ₂ and the experts' texts are
ours; theirs are system prompts of styles that the policy was fine-tuned on before.
"""

from rlvr_jax.experience import (
    ask_experts,
    experience,
    imitate_hard,
    join_groups,
    show_to_worst,
    shuffled_epochs,
)
from rlvr_jax.experience.views import with_note
from rlvr_jax.objectives import (
    cell_normalized,
    imitate,
    objective,
    ppo_clip,
    teach_the_worst,
    token_mean,
)
from rlvr_jax.types import Method, Recipe

EXPERTS = (
    "Answer as a textbook does, step by step.",
    "Think aloud, and check what you find.",
    "Answer with as few words as you can.",
)


def meml_grpo(
    experts: str = "|".join(EXPERTS),
    mutual: float = 0.1,
    imitation: float = 1.0,
    wrong_above: float = 0.75,
    probability: float = 0.75,
    capacity: int = 64,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    epsilon: float = 1e-6,
) -> Recipe:
    """GRPO within experts, whose best teaches the worst, and imitation of hard prompts' solutions.

    Args:
      experts: what the prompt of each adds, with | between them.
      mutual: weight of the best expert's teaching (λ₁).
      imitation: weight of the imitation of solutions (λ₂).
      wrong_above: share of wrong rows above which a prompt is hard.
      probability: with which a hard prompt is kept.
      capacity: prompts that are kept until their solutions are imitated.
      clip_low, clip_high: half-widths of the trust region (ε).
      epsilon: added to the standard deviation of an expert's rewards.
    """
    views = [with_note(text) for text in experts.split("|")]
    return Recipe(
        objective=objective(
            advantage=cell_normalized(epsilon, within_groups=True),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            regularizers=[teach_the_worst(mutual), imitate(imitation)],
            aggregation=token_mean(),
        ),
        experience=experience(
            [shuffled_epochs(), ask_experts(views)],
            stages=[
                join_groups(),
                show_to_worst(views),
                imitate_hard(views, wrong_above, probability, capacity),
            ],
        ),
    )


METHOD = Method(
    meml_grpo,
    "MEML-GRPO: Heterogeneous Multi-Expert Mutual Learning for RLVR Advancement",
    "",
    changes="advantage, regularizer, sampling, guidance",
    evidence="reconstruction",
    left_out="fine-tuning on the experts' styles before",
    reports=(
        "Qwen2.5-Math-1.5B 4.89 % and Llama-3.2-1B 11.33 % on the mean over baselines like GRPO"
    ),
    traps=(
        "an expert with one row of a question has advantage 0: draw several times the number of "
        "experts; where all experts do equally well there is no mutual term"
    ),
)
