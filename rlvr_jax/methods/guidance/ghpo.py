"""GHPO: a prompt that nobody answers is asked again with a part of its solution.

"GHPO: Adaptive Guidance for Stable and Efficient LLM Reinforcement Learning",
https://github.com/hkgc-1/GHPO

    1. N responses to each prompt
    2. groups without a right response are drawn again under the first 25 % of the solution's
       characters; those still without one under 50 %, then under 75 %
    3. R_i  = accuracy + 0.5 format
       A_i  = (R_i - mean) / (std + 1e-4), std with n - 1
       loss = Σ -A ρ / Σ n_i

The new responses take the place of the old ones and are learned from under the prompt with the
hint, so the ratio is 1; nothing takes the hint away later. What is wrong four times stays. Each
stage asks again only what is still all wrong; the released code forgets at each stage the hints of
the stages before, so that a group which 25 % helped is learned from under its plain prompt wherever
another needed 50 %. A group that is all wrong may still differ in format.

`weights` are those of the task's rewards (`Task.rewards`), in their order: accuracy, then what the
format earns.
"""

from collections.abc import Sequence

from rlvr_jax.experience import all_wrong, experience, redraw, shape
from rlvr_jax.experience.views import hint
from rlvr_jax.objectives import (
    group_normalized,
    importance_weighted,
    objective,
    token_mean,
    weighted,
)
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import Epsilon


def ghpo(
    fractions: Sequence[float] = (0.25, 0.5, 0.75),
    weights: Sequence[float] = (1.0, 0.5),
    characters: bool = True,
    epsilon: Epsilon = 1e-4,
) -> Recipe:
    """Group-normalized advantages on groups that were drawn again with hints until one is right.

    Args:
      fractions: of the solution that each further try shows.
      weights: of the task's rewards: accuracy, format.
      characters: a hint may end anywhere; else between words.
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=importance_weighted(),
            aggregation=token_mean(),
        ),
        experience=experience(
            stages=[
                *(redraw(all_wrong, hint(fraction, characters)) for fraction in fractions),
                shape(weighted(weights), rewards=len(weights)),
            ]
        ),
    )


METHOD = Method(
    ghpo,
    "GHPO: Adaptive Guidance for Stable and Efficient LLM Reinforcement Learning",
    "https://github.com/hkgc-1/GHPO",
    changes="guidance, sampling, reward",
    small={"weights": (1.0, 0.5, 0.25)},
    reports=(
        "Qwen2.5-Math-7B: about 5 % over RL on policy and a curriculum on the mean of six maths "
        "benchmarks (abstract)"
    ),
    traps=(
        "a hint of 75 % may hold the answer; nothing takes hints away, so the policy may never "
        "train on the plain hard prompt; hints lengthen prompts; an all-wrong group still trains "
        "on format"
    ),
)
