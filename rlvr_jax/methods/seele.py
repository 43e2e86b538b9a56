"""SEELE: every prompt with so much of its solution that half of the answers are right.

"Staying in the Sweet Spot: Responsive Reasoning Evolution via Capability-Adaptive Hint
Scaffolding", https://arxiv.org/abs/2509.06923

    f(p) = b + (1 - b) / (1 + exp(-k (p + μ))), accuracy with the share p of the solution's steps
    m rounds of n answers, the next with p = f⁻¹(a*), fitted to the rounds so far
    A_i  = R_i - mean over all m n rows of the prompt
    loss = [Σ over drawn tokens of PPO clip + β k3(π ‖ π_ref)  +  Σ over hint tokens of -γ logp]
           / number of both

A hint stands in front of the response and is imitated a little. The first visit of a prompt begins
with all steps but the last, later ones with what the last ended with. The paper prints γ π for the
imitation; γ logp is what imitation needs. Clip, aggregation, the bounds of the fit, and k and b of
a curve of fewer than three points are ours.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.experience import experience, remember_hints, search_hint, shuffled_epochs
from rlvr_jax.objectives import (
    Context,
    by_origin,
    group_centered,
    hint_tokens,
    imitated,
    kl_penalty,
    objective,
    ppo_clip,
    token_mean,
)
from rlvr_jax.types import Method, Recipe, Signals


def seele(
    rounds: int = 4,
    target: float = 0.5,
    imitation: float = 0.001,
    kl_coefficient: float = 0.001,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Recipe:
    """PPO behind hints whose length is searched for, with a little imitation of the hints.

    Args:
      rounds: of drawing, each with a hint of its own (m); rows of a group must be a multiple.
      target: accuracy that the hints are to bring (a*).
      imitation: weight of the log-probs of hint tokens (γ).
      kl_coefficient: weight of the KL on drawn tokens (β); with 0 no reference is needed.
      clip_low, clip_high: half-widths of the trust region (ε).
    """
    own = ppo_clip(low=clip_low, high=clip_high)
    near = [kl_penalty(kl_coefficient, weight=drawn)] if kl_coefficient else []
    return Recipe(
        objective=objective(
            advantage=group_centered(),
            surrogate=by_origin(own, imitated(imitation), where=hint_tokens, reads=()),
            regularizers=near,
            aggregation=token_mean(),
        ),
        experience=experience(
            [shuffled_epochs(), remember_hints()], stages=[search_hint(rounds, target)]
        ),
    )


def drawn(signals: Signals, context: Context) -> Float[Array, "B T"]:
    """1 on the tokens that were drawn, 0 on hints, [B, T]."""
    return jnp.where(hint_tokens(context.rollouts), 0, jnp.ones_like(signals.weight))


METHOD = Method(
    seele,
    "Staying in the Sweet Spot: Responsive Reasoning Evolution via Capability-Adaptive Hint"
    " Scaffolding",
    "https://arxiv.org/abs/2509.06923",
    changes="advantage, surrogate, regularizer, curriculum, sampling, guidance",
    evidence="reconstruction",
    reports=(
        "six maths sets: 11.8 over GRPO, 10.5 over SFT, 3.6 over the best other hints; Qwen2.5-3B "
        "42.2, GRPO 30.4"
    ),
    traps=(
        "needs whole solutions in steps; a group's rows have different hints and one mean; with "
        "fewer than three hint lengths the curve is a guess; hints are imitated once a row"
    ),
)
