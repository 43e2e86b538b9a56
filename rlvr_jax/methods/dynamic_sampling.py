"""Dynamic sampling: groups that teach something fill the batch, and prompts come by their history.

DAPO's filter (https://arxiv.org/abs/2503.14476, verl-recipe/dapo) and its relatives: the adaptive
pool of CodeV-R1 (https://github.com/iprc-dip/CodeV-R1), the exclusion of solved prompts of
https://github.com/allenai/open-instruct, the priorities of Kimi k1.5 (from memory).

    keep a group   max outcome - min outcome > 0; the first B kept groups, in the order of arrival
    next round     ⌈missing / ρ̂⌉ prompts, ρ̂ the lowest share of groups that was kept so far
    s_x            = 0.7 s_x + 0.3 · pass rate of a visit, from 0.5
    draw prompt x  (1 - ε) w(s_x) / Σ w + ε / P, w = 1 - s: hard ones first
    leave x out    once a visit's pass rate is at least r_max
    loss           GRPO's on the kept groups, token mean

The filter reads outcomes, not shaped rewards, which are hardly ever equal; curves of outcomes are
of all that was drawn. When the rounds are used up, dropped groups fill the batch, their mask
cleared. `weight=undecided` draws by s (1 - s) instead. The average's 0.7 and 0.5, ε and r_max are
ours, as the sources give none; of eight answers a prompt with a true rate of 0.75 has seven or more
right with chance 0.37, and is left out. `refill(outside(low, high), rounds)` is OpenRLHF's form of
the filter, on the mean outcome.
"""

from collections.abc import Callable

import numpy as np

from rlvr_jax.experience import adaptive_refill, experience, prioritized, uniform
from rlvr_jax.experience.curricula.prioritized import hard_first
from rlvr_jax.objectives import group_normalized, objective, ppo_clip, token_mean
from rlvr_jax.types import Method, Recipe


def dynamic_sampling(
    max_rounds: int = 10,
    weight: Callable[[np.ndarray], np.ndarray] = hard_first,
    explore: float = 0.1,
    decay: float = 0.7,
    prior: float = 0.5,
    resample_below: float = 0.875,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    epsilon: float = 1e-6,
) -> Recipe:
    """GRPO on the token mean of groups of mixed outcomes, of prompts drawn by their pass rates.

    Args:
      max_rounds: draws at most to fill one update.
      weight: of a prompt by its average pass rate, `hard_first` or `undecided`.
      explore: share of uniform draws (ε).
      decay: of the average pass rate.
      prior: average pass rate before the first visit.
      resample_below: pass rate of a visit from which on a prompt is left out (r_max).
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
            curriculum=prioritized(weight, explore, decay, prior, resample_below),
            stages=[adaptive_refill(uniform, max_rounds)],
        ),
    )


METHOD = Method(
    dynamic_sampling,
    "Dynamic sampling: DAPO's group filter and its relatives",
    "https://github.com/verl-project/verl-recipe",
    changes="selection, curriculum",
    reports="Qwen2.5-32B on AIME24: 44 without the filter and the token mean, 50 with both (DAPO)",
    traps=(
        "a prompt solved 7 times of 8 in one visit is left out while others remain; the filter "
        "takes hard and easy prompts out of the gradient, and draws more the more there are; "
        "surplus groups are thrown away"
    ),
)
