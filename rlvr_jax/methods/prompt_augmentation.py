"""Prompt Augmentation: another template at every visit, and a reward for keeping its form.

"Prompt Augmentation Scales up GRPO Training on Mathematical Reasoning",
https://github.com/wenquanlu/prompt-augmentation-GRPO

    each time that a prompt is asked one of 13 templates is drawn; its group shares it
    R    = correct + f(template, text): the share of the required tags that occur exactly once; 0
           or 1 for templates with a fixed phrase; 1 for free ones
    loss = PPO's clip-higher on the token mean; no KL, no entropy bonus

What a template opens for the response is prompt and not learned from. Evaluations have the plain
prompt. At full weight a wrong answer in perfect form earns as much as a right one without; a
constant score vanishes in the group. Entropy falls as without templates, but accuracy does not
collapse with it. Tags and phrases are the authors', the other words ours.
"""

from collections.abc import Sequence

from rlvr_jax.experience import (
    experience,
    random_templates,
    reward_template,
    shuffled_epochs,
)
from rlvr_jax.experience.templates import TEMPLATES, Template
from rlvr_jax.objectives import group_normalized, objective, ppo_clip, token_mean
from rlvr_jax.types import Method, Recipe


def prompt_augmentation(
    templates: Sequence[Template] = TEMPLATES,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
    epsilon: float = 1e-6,
) -> Recipe:
    """Clip-higher GRPO without KL on prompts in random templates.

    Args:
      templates: that are drawn from.
      clip_low, clip_high: half-widths of the trust region.
      epsilon: added to the standard deviation of a group's rewards.
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        ),
        experience=experience(
            [shuffled_epochs(), random_templates(templates)], stages=[reward_template(templates)]
        ),
    )


METHOD = Method(
    prompt_augmentation,
    "Prompt Augmentation Scales up GRPO Training on Mathematical Reasoning",
    "https://github.com/wenquanlu/prompt-augmentation-GRPO",
    changes="curriculum, reward",
    reports=(
        "Qwen2.5-Math-1.5B, five maths sets: 44.5 (abstract) or 45.2 (README) on average; one "
        "fixed template collapses in that time"
    ),
    traps=(
        "a wrong answer in perfect form earns as much as a right one without; limits on prompts "
        "must hold for the longest template; a KL takes its gain away, they say"
    ),
)
