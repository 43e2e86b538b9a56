"""GRPO: the advantage of a rollout is its reward relative to the other responses to its prompt.

Shao et al. 2024, "DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language
Models", https://arxiv.org/abs/2402.03300

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = mean_i (1/n_i) Σ_t [max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) + β k3(π ‖ π_ref)]

The loss averages over the tokens of a rollout, then over rollouts, as in the paper. The default of
verl and TRL is now the mean over all tokens: `aggregation=token_mean()`. Here k3 is not clamped. In
verl it is clamped at 10, which removes the gradient of tokens far from the reference. A group of
one has advantage 0; in verl, its reward. β = 0.04 is the paper's value. The paper does not state ε;
0.2 is the value of verl and TRL.

Reports: DeepSeekMath-7B, in %: GSM8K 82.9 to 88.2, MATH 46.8 to 51.7 (abstract).
Traps: In groups of equal rewards, only the KL has a gradient. The division by std amplifies a
single odd response. The mean over each rollout favours short correct and long incorrect responses.
"""

from rlvr_jax.objectives import Aggregation, clamped_token_ratio, clipped_objective, token_ratio
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_mean
from rlvr_jax.types import Method, Recipe, Shown
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, KLCoefficient


def grpo(
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    kl_coefficient: KLCoefficient = 0.04,
    aggregation: Aggregation = rollout_mean_token_mean(),  # noqa: B008 (frozen)
    clamp_ratio: bool = False,
) -> Recipe:
    """Group-normalized advantages, a clipped ratio, and a KL to the reference.

    Args:
      aggregation: how token losses become one number.
      clamp_ratio: clamps log ρ to ±20, so that no ratio is infinite; not in the paper.
    """
    objective = clipped_objective(
        clip_low,
        clip_high,
        ratio=clamped_token_ratio if clamp_ratio else token_ratio,
        kl_coefficient=kl_coefficient,
        aggregation=aggregation,
    )
    return Recipe(objective)


METHOD = Method(
    grpo,
    changes="advantage, surrogate, regularizer",
    shown=Shown("brackets", "gradient_norm", without=None, steps=300),
    # Without a KL no reference is stored, as in all reasoning recipes since DAPO. The mean over all
    # tokens is that of the other methods, so differences are those of the method.
    presets={"": {"hyperparameters": ("kl_coefficient=0", "aggregation=token_mean")}},
)
