"""SofT-GRPO: GRPO on soft tokens, with the density of their noise in the ratio.

Zheng and Lee 2025, "SofT-GRPO", https://arxiv.org/abs/2511.06411

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    logp = the token's, or where a mixture was fed the mean log-density of its Gumbel noise
           (`rlvr_jax.objectives.surrogates.soft_tokens`)
    loss = Σ [max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) + β k3(π ‖ π_ref)] / Σ n_i

Defaults are the authors': noise in [-1.5, 3], candidates above log-prob -3, β = 0.001 on the
recorded tokens. Old log-probs are those of soft tokens, too, from the same function. Mixtures are
of the 5 most probable tokens, cut to mass 0.95 and mixed at temperature 0.1; a response thinks up
to `end`.
"""

from rlvr_jax.experience import experience, soft_thinking
from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.regularizers.token_penalties import kl_penalty
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.objectives.surrogates.soft_tokens import GumbelNoise, with_soft_tokens
from rlvr_jax.types import Method, Recipe


def soft_grpo(
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    kl_coefficient: float = 0.001,
    noise_low: float = -1.5,
    noise_high: float = 3.0,
    floor: float = -3.0,
    noise_epsilon: float = 1e-6,
    epsilon: float = 1e-6,
    end: str = "</think>",
    candidates: int = 5,
    top_p: float = 0.95,
    mixing_temperature: float = 0.1,
) -> Recipe:
    """A clipped ratio on the token mean, of densities where the policy fed itself a mixture.

    Args:
      clip_low, clip_high: half-widths of the trust region (ε).
      kl_coefficient: weight of the KL (β); with 0 no reference is needed.
      noise_low, noise_high: bounds of the noise.
      floor: candidates at or below this log-prob do not enter the density, nats.
      noise_epsilon: added to a candidate's probability before its logarithm.
      epsilon: added to the standard deviation of a group's rewards.
      end: text of the token that ends the thinking; "": a response is nothing else.
      candidates: tokens of a mixture (k).
      top_p: mass of their nucleus.
      mixing_temperature: of the mixture (τ).
    """
    bounds = GumbelNoise(noise_low, noise_high, floor, noise_epsilon)
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=with_soft_tokens(ppo_clip(low=clip_low, high=clip_high), bounds),
            regularizers=[kl_penalty(kl_coefficient)] if kl_coefficient else [],
            aggregation=token_mean(),
        ),
        experience=experience(
            draw=soft_thinking(end, candidates, top_p, mixing_temperature, bounds)
        ),
    )


METHOD = Method(
    soft_grpo,
    "SofT-GRPO: Surpassing Discrete-Token LLM Reinforcement Learning via Gumbel-Reparameterized"
    " Soft-Thinking Policy Optimization",
    "https://arxiv.org/abs/2511.06411",
    changes="sampling, surrogate, regularizer",
    left_out="noises other than Gumbel's",
    reports=(
        "1.5B to 7B models, five reasoning sets, over GRPO: pass@1 0.13 and pass@32 2.19 points"
    ),
    traps=(
        "the density is a mean over candidates, not a sum: its ratios are mild; noise at its "
        "bounds and candidates cut by top_p give no gradient; their code falls back to token "
        "log-probs without its kernel, silently"
    ),
)
