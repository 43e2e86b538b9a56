"""CalibRL: a worked solution says how sure the policy should be, and is not imitated.

"Controllable Exploration in Hybrid-Policy RLVR for Multi-Modal Reasoning",
https://github.com/zhh6425/CalibRL

    A_i  = R_i - mean over the policy's own rows of the group, no std
    Δ_it = logp_it - e_t,  e_t the old log-prob of the solution's token at the same position
    g_it = LeakyReLU_½(-s_i Δ_it) |A_i|,  s_i = 1 for right rows, -1 for wrong ones
    loss = mean over own tokens of [PPO with dual clip + 0.1 g]

The solution's row has no loss of its own; e_t is a level and no likelihood, for the texts differ. A
right row is pushed up at full strength below the level and at half above it, a wrong one down the
other way round; |A| weighs what is rare in its group. Where the solution has no token there is no
such term, while the denominator stays; the released code reads what its padding holds there. Every
group has its solution, as in the published script (mixup ratio 1).
"""

from rlvr_jax.experience import add_traces, experience
from rlvr_jax.objectives import (
    calibrate_to_expert,
    centered_on_own_rows,
    drop_off_policy,
    objective,
    ppo_clip,
    token_mean,
)
from rlvr_jax.types import Method, Recipe


def calibrl(
    coefficient: float = 0.1,
    slope: float = 0.5,
    right_above: float = 0.1,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual_clip: float = 3.0,
) -> Recipe:
    """PPO on own rows, pushed towards the level that a worked solution sets.

    Args:
      coefficient: weight of the guided term.
      slope: of the LeakyReLU beyond the level.
      right_above: outcome above which a row counts as right.
      clip_low, clip_high: half-widths of the trust region (ε).
      dual_clip: bound of the loss of a negative advantage, in units of -A (c).
    """
    return Recipe(
        objective=objective(
            advantage=centered_on_own_rows(),
            transforms=[drop_off_policy()],
            surrogate=ppo_clip(low=clip_low, high=clip_high, dual=dual_clip),
            regularizers=[calibrate_to_expert(coefficient, slope, right_above)],
            aggregation=token_mean(),
        ),
        experience=experience(stages=[add_traces(1)]),
    )


METHOD = Method(
    calibrl,
    "Controllable Exploration in Hybrid-Policy RLVR for Multi-Modal Reasoning",
    "https://github.com/zhh6425/CalibRL",
    changes="advantage, regularizer, guidance",
    left_out="solutions in some groups alone (mixup by chance or by pass rate)",
    reports=(
        "Qwen2.5-VL-7B: gains on eight multimodal benchmarks in and out of domain, with a higher "
        "entropy (abstract)"
    ),
    traps=(
        "compares tokens at the same place of two texts, a level and no likelihood; behind the "
        "solution's end nothing is pushed to it; groups of equal rewards have no guided term "
        "either"
    ),
)
