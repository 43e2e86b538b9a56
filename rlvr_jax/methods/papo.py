"""PAPO: make the answer depend on the evidence, by a second prompt that hides it.

Wang et al., "Perception-Aware Policy Optimization for Multimodal Reasoning",
https://github.com/MikeWangWZHL/PAPO

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    k    = min(e^d - d - 1, 10), d = logp_hidden - logp clamped to ±20
    loss = Σ [PPO clip with dual clip + β k3(π ‖ π_ref) - γ k - η_m logp_hidden - η_o logp] / Σ n_i

logp_hidden is the log-prob of the same response after the prompt with its evidence hidden; k is
maximised. Both k3 terms are clamped, without gradient beyond. The last two terms are the authors'
double entropy loss against a policy that becomes arbitrary under both prompts: minus the
log-prob of the samples, which has the value of an entropy and the gradient of a likelihood, so it
imitates right and wrong rollouts alike.

As in the authors' code the hidden branch is measured once with the rollouts
(`old_second_prompt_logp`) and has no gradient, so that its entropy term is a constant;
`train_hidden=True` is their RECOMPUTE_AUG_LOG_PROBS. Means are
theirs over a micro-batch, ours over the batch. Defaults are those of the 7B model with the
reference KL; 3B: η 0; without reference KL and with DAPO: γ 0.01, η 0.03. Hide patches of 14
pixels with probability 0.6 each.
"""

from rlvr_jax.experience import experience, second_prompt
from rlvr_jax.experience.views import hide_words
from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.regularizers.second_prompt import (
    second_prompt_divergence,
    second_prompt_logp_penalty,
)
from rlvr_jax.objectives.regularizers.token_penalties import kl_penalty, statistic_penalty
from rlvr_jax.objectives.statistics.divergences import k3_clamped
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.types import Method, Recipe


def papo(
    dependence_coefficient: float = 0.02,
    hidden_entropy_coefficient: float = 0.05,
    entropy_coefficient: float = 0.05,
    kl_coefficient: float = 0.01,
    train_hidden: bool = False,
    hidden_share: float = 0.6,
    filler: str = "0",
    clip_low: float = 0.2,
    clip_high: float = 0.3,
    dual_clip: float = 3.0,
    epsilon: float = 1e-6,
) -> Recipe:
    """GRPO on the token mean that maximises the divergence from itself without the evidence.

    Args:
      dependence_coefficient: weight of that divergence (γ).
      hidden_entropy_coefficient, entropy_coefficient: weights of -logp of the response without and
        with the evidence (η_m, η_o).
      kl_coefficient: weight of the KL to the reference (β); with 0 no reference is needed.
      hidden_share, filler: of the prompt's words, how many are hidden, and by which word.
      train_hidden: gradient also through the branch without evidence.
      clip_low, clip_high, dual_clip: trust region (ε_low, ε_high, c).
      epsilon: added to the standard deviation of a group's rewards.
    """
    regularizers = []
    if kl_coefficient:
        regularizers.append(kl_penalty(kl_coefficient, k3_clamped))
    if dependence_coefficient:
        regularizers.append(second_prompt_divergence(-dependence_coefficient, trained=train_hidden))
    if hidden_entropy_coefficient:
        regularizers.append(
            second_prompt_logp_penalty(-hidden_entropy_coefficient, trained=train_hidden)
        )
    if entropy_coefficient:
        regularizers.append(statistic_penalty(-entropy_coefficient, "logp"))
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high, dual=dual_clip),
            regularizers=regularizers,
            aggregation=token_mean(),
        ),
        experience=experience(stages=[second_prompt(hide_words(hidden_share, filler))]),
    )


METHOD = Method(
    papo,
    "Perception-Aware Policy Optimization for Multimodal Reasoning",
    "https://github.com/MikeWangWZHL/PAPO",
    changes="regularizer, surrogate",
    left_out="patches of images (words of the prompt are hidden); annealing of γ, a clip of k, and"
    " k on a share of the tokens",
    reports=(
        "Qwen2.5-VL 3B and 7B: 4.4 % on average over GRPO, up to 8 % where vision matters, 30.5 % "
        "fewer errors of perception"
    ),
    traps=(
        "without the reference KL or the entropy terms it collapses into unrelated text; those "
        "terms imitate right and wrong answers alike; where hiding changes nothing it does "
        "nothing"
    ),
)
