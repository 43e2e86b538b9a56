"""QuestA: hard questions with the first half of their solution, then with the first quarter.

"QuestA: Expanding Reasoning Capacity in LLMs via Question Augmentation",
https://github.com/foreverlasting1202/QuestA

    stage 1: every prompt shows the first 50 % of the characters of its solution
    stage 2: from the weights of stage 1, with a new optimizer, the first 25 %
    A_i  = R_i - mean over the group, ratio clipped to 1 ± ε, mean over all tokens

Only the data changes: what is shown belongs to the prompt, nothing is corrected for it, and no
prompt is plain within a stage but those whose hint would hold the answer; evaluations are without
hints. A stage is a run of its own: the second has `--model` of the first and `fraction` 0.25. The
authors train with an asynchronous, decoupled PPO, rewards times 5 and no normalisation within
groups. Keep hard prompts alone whose solution holds the answer (`rlvr_jax.tasks.hints.augment` says
which).
"""

from rlvr_jax.experience import experience, show_as, shuffled_epochs
from rlvr_jax.experience.views import augmented
from rlvr_jax.objectives import group_centered, objective, ppo_clip, token_mean
from rlvr_jax.types import Method, Recipe


def questa(fraction: float = 0.5, clip_low: float = 0.2, clip_high: float = 0.2) -> Recipe:
    """PPO's clip with centered rewards, on prompts that show the beginning of their solution.

    Args:
      fraction: of the solution's characters that is shown (p).
      clip_low, clip_high: half-widths of the trust region (ε).
    """
    return Recipe(
        objective=objective(
            advantage=group_centered(),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        ),
        experience=experience([shuffled_epochs(), show_as(augmented(fraction))]),
    )


METHOD = Method(
    questa,
    "QuestA: Expanding Reasoning Capacity in LLMs via Question Augmentation",
    "https://github.com/foreverlasting1202/QuestA",
    changes="curriculum, guidance",
    left_out="asynchronous training",
    reports=(
        "OpenMath-Nemotron-1.5B: AIME24 67.1, AIME25 59.5, HMMT25 35.5 (5.3, 10.0 and 4.0 more); "
        "its README has 72.5 on AIME24; pass@k rises, too"
    ),
    traps=(
        "stage 2 is a run that you start yourself, with pass rates counted anew; the hint is cut "
        "by characters; below ten of them, where the solution lacks the answer, or where the hint "
        "would hold it, prompts stay plain (`experience/shown_as_it_is`)"
    ),
)
