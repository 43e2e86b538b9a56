"""EARL: the policy gradient on the most uncertain tokens of each response, a KL on all.

"EARL: Entropy-Aware RL Alignment of LLMs for Reliable RTL Code Generation"

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ [1[H ≥ τ_i] max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) + β k3(π ‖ π_ref)] / Σ n_i

τ_i is the (1 - ρ) quantile of the current policy's entropy H over the tokens of response i, so each
response keeps at least one token; this is what tells it from `forking_tokens`. A reconstruction
from the abstract, no code is released: the gate and a KL are reported. Ours are that the KL acts on
all tokens, and every constant: ρ of the 80/20 paper, β of Archer, the clip of DAPO.
"""

from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.regularizers.token_penalties import kl_penalty
from rlvr_jax.objectives.statistics.scopes import within_response
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.objectives.transforms.weights import keep_top_entropy
from rlvr_jax.types import Method, Recipe


def earl(
    fraction: float = 0.2,
    kl_coefficient: float = 0.001,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
) -> Recipe:
    """Clip-higher on the tokens of highest entropy of each response, with a KL to the reference.

    Args:
      fraction: share of the tokens of a response that are trained on (ρ).
      kl_coefficient: weight of the KL (β); with 0 no reference is needed.
      clip_low, clip_high: half-widths of the trust region (ε_low, ε_high).
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(),
            transforms=[keep_top_entropy(fraction, within_response)],
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            regularizers=[kl_penalty(kl_coefficient)] if kl_coefficient else [],
            aggregation=token_mean(),
        )
    )


METHOD = Method(
    earl,
    "EARL: Entropy-Aware RL Alignment of LLMs for Reliable RTL Code Generation",
    "",
    changes="weight, regularizer",
    evidence="reconstruction",
    left_out="rewards from a Verilog tool chain (syntax, interface, function)",
    reports=(
        "VerilogEval and RTLLM: up to 14.7 % more functional passes than earlier models, in fewer "
        "updates (abstract)"
    ),
    traps=(
        "a short response keeps more than the share ρ, as each keeps one token at least; nothing "
        "in it is about Verilog: the task must bring those rewards"
    ),
)
