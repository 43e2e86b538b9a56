"""EARL: the policy gradient on the most uncertain tokens of each response, a KL on all.

"EARL: Entropy-Aware RL Alignment of LLMs for Reliable RTL Code Generation"

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ [1[H ≥ τ_i] max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) + β k3(π ‖ π_ref)] / Σ n_i

τ_i is the (1 - `fraction`) quantile of the current policy's entropy H over the tokens of response
i. In `forking_tokens`, the quantile is that of the batch. A reconstruction from the abstract, as no
code is released: the gate and a KL are reported. The KL on all tokens is ours, as is every
constant: the fraction of the 80/20 paper, β of Archer, the clip of DAPO.

Left out: rewards from a Verilog tool chain (syntax, interface, function).
Reports: VerilogEval and RTLLM: up to 14.7 % more functional passes than earlier models, in fewer
updates (abstract).
Traps: A short response trains more than the fraction, because each response trains at least one
token. The task must provide the rewards for Verilog.
"""

from typing import Any

from rlvr_jax.objectives import clipped_objective, keep_top_entropy, within_response
from rlvr_jax.types import Method, Recipe, Shown, arguments_of
from rlvr_jax.types.hyperparameters import Share


@arguments_of(clipped_objective, "clip_low", clip_high=0.28, kl_coefficient=0.001)
def earl(fraction: Share = 0.2, **clip: Any) -> Recipe:
    """Applies clip-higher to the tokens of highest entropy of each response, and a KL.

    Args:
      fraction: fraction of the tokens of a response that are trained on.
    """
    transforms = [keep_top_entropy(fraction, within_response)]
    return Recipe(clipped_objective(transforms=transforms, **clip))


METHOD = Method(
    earl,
    changes="weight, regularizer",
    evidence="reconstruction",
    shown=Shown("brackets", "chosen_fraction", steps=300),
)
