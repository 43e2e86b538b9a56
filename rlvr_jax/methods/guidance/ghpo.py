"""GHPO: a prompt without a correct response is sampled again with a part of its solution.

"GHPO: Adaptive Guidance for Stable and Efficient LLM Reinforcement Learning",
https://github.com/hkgc-1/GHPO

    1. N responses to each prompt
    2. groups without a correct response are sampled again under the first 25 % of the solution's
       `characters` (or words); if there is still none, under 50 %, then under 75 % (`fractions`)
    3. R_i  = accuracy + 0.5 format, the first rewards of the task by their `weights`
       A_i  = (R_i - mean) / (std + 1e-4), std with n - 1
       loss = Σ -A ρ / Σ n_i

New responses replace the old ones and are trained under the prompt with the hint, so the ratio is
1. A group that fails four times stays. The released code discards the hints of earlier stages: if
25 % helped a group and another group needed 50 %, the first trains under its plain prompt.

Reports: Qwen2.5-Math-7B, six maths sets: about 5 % over on-policy RL and a curriculum (abstract).
Traps: A hint of 75 % may contain the answer. Nothing removes hints, so the policy may never train
on the plain hard prompt. Hints lengthen prompts. A group that fails still trains on the format.
"""

from collections.abc import Sequence

from rlvr_jax.experience import all_incorrect, experience, redraw, shape, weighted
from rlvr_jax.experience.views import hint
from rlvr_jax.objectives import group_normalized, importance_weighted, objective, token_mean
from rlvr_jax.types import Method, Recipe, Shown
from rlvr_jax.types.hyperparameters import Epsilon, Unit


def ghpo(
    fractions: Sequence[Unit] = (0.25, 0.5, 0.75),
    weights: Sequence[float] = (1.0, 0.5),
    characters: bool = True,
    epsilon: Epsilon = 1e-4,
) -> Recipe:
    """Applies group-normalized advantages to groups that are sampled again with hints.

    Args:
      fractions: fraction of the worked solution in the hint, one for each further attempt.
      weights: weights of the first rewards of the task in the reward (accuracy, format).
      characters: cut the solution at a character; False: at a word.
    """
    stages = [redraw(all_incorrect, hint(fraction, characters)) for fraction in fractions]
    stages += [shape(weighted(weights), rewards=len(weights))]
    loss = objective(
        group_normalized(epsilon), surrogate=importance_weighted(), aggregation=token_mean()
    )
    return Recipe(loss, experience(stages=stages))


METHOD = Method(
    ghpo,
    changes="guidance, sampling, reward",
    small={"weights": (1.0, 0.5, 0.25)},
    shown=Shown("hinted_brackets", "experience/redrawn_fraction", steps=300),
)
