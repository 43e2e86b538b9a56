"""EMPO: without labels, rewards a response by the fraction of its group with an equal answer.

"Right Question is Already Half the Answer: Fully Unsupervised LLM Reasoning Incentivization",
https://arxiv.org/abs/2504.05812

    p(c) = |c| / N over the answers c of a group; a response without one is a separate class
    R_i  = p(answer of i)
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = mean_i (1/n_i) Σ_t PPO clip

Raising R lowers the semantic entropy -Σ p ln p (a metric). The loss is TRL's; verl's has GSPO's
ratio. Answers are equal if their texts are. The authors use a small verifier for free text.

Two guards of the authors' code are hyperparameters:

- `least`: a group whose largest fraction is below it earns 0 (0.25 in verl's, commented out).
- `missing`: reward without an answer (TRL's: 0 for mathematics, -0.5 for free text); None: 1 / N.

Left out: the verifier that compares answers of free text; the guards of questions repeated.
Reports: Qwen2.5-Math-7B base on 20k prompts without labels: 30.7 to 48.1 % on the mean of maths
sets, about the result of supervised GRPO.
Traps: A frequent incorrect answer is rewarded like a correct one. Groups that all agree or all
differ have no gradient. Two spellings of a number are two answers.
"""

from typing import Any

from rlvr_jax.experience import agreement, experience, shape
from rlvr_jax.objectives import clipped_objective, rollout_mean_token_mean
from rlvr_jax.types import Method, Recipe, Shown, arguments_of
from rlvr_jax.types.hyperparameters import Finite, Unit


@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon")
def empo(least: Unit = 0.0, missing: Finite | None = None, **clip: Any) -> Recipe:
    """Applies GRPO without KL to the frequencies of answers.

    Args:
      least: if the fraction of the most frequent answer is below it, the reward of the group is 0.
      missing: reward of a response without an answer; None: the fraction of one row.
    """
    objective = clipped_objective(aggregation=rollout_mean_token_mean(), **clip)
    return Recipe(objective, experience(stages=[shape(agreement(least, missing=missing))]))


METHOD = Method(
    empo,
    changes="reward",
    shown=Shown("brackets", "experience/shaped_fraction"),
)
