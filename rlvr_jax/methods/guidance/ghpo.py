"""GHPO: a prompt without a correct response is sampled again with a part of its solution.

"GHPO: Adaptive Guidance for Stable and Efficient LLM Reinforcement Learning",
https://github.com/hkgc-1/GHPO

    1. N responses to each prompt
    2. groups without a correct response are sampled again under the first 25 % of the solution's
       characters; if there is still none, under 50 %, then under 75 %
    3. R_i  = accuracy + 0.5 format
       A_i  = (R_i - mean) / (std + 1e-4), std with n - 1
       loss = Σ -A ρ / Σ n_i

New responses replace the old ones and are trained under the prompt with the hint, so the ratio is
1, and nothing removes the hint later. A group that fails four times stays. A stage samples
only groups without a correct response. The released code discards the hints of earlier stages: a
group that 25 % helped is trained under its plain prompt if another group needed 50 %.

Reports: Qwen2.5-Math-7B, mean of six maths benchmarks: about 5 % over on-policy RL and a curriculum
(abstract)
Traps: a hint of 75 % may contain the answer; nothing removes hints, so the policy may never train
on the plain hard prompt; hints lengthen prompts; a group that fails still trains on format
"""

from collections.abc import Sequence

from rlvr_jax.experience import all_wrong, experience, redraw, shape, weighted
from rlvr_jax.experience.views import hint
from rlvr_jax.objectives import group_normalized, importance_weighted, objective, token_mean
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import Epsilon, Unit


def ghpo(
    fractions: Sequence[Unit] = (0.25, 0.5, 0.75),
    weights: Sequence[float] = (1.0, 0.5),
    characters: bool = True,
    epsilon: Epsilon = 1e-4,
) -> Recipe:
    """Group-normalized advantages on groups that are sampled again with hints until one is correct.

    Args:
      fractions: fractions of the solution that the further tries show.
      weights: weights of the task's rewards (`Task.rewards`), in order: accuracy, format.
      characters: a hint may end anywhere; otherwise between words.
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


METHOD = Method(ghpo, changes="guidance, sampling, reward", small={"weights": (1.0, 0.5, 0.25)})
