"""Reasoning Palette: a random latent chooses the style of a response before its first token.

"Reasoning Palette: Modulating Reasoning via Latent Contextualization for Controllable Exploration
for (V)LMs", https://arxiv.org/abs/2512.17206

    z ~ N(0, I) for each rollout, prefix = decoder(z), P vectors before the prompt's embeddings
    share of a group's rows with a prefix: max(0, 1 - step / (S / 2)) of S steps
    A, loss as GRPO's; log-probs and old log-probs behind the same prefix

A reconstruction from abstract and opening: sizes and schedule are ours. The decoder is frozen, and
here a random one unless the draw is given a trained one (`rlvr_jax.policy.prefixes` has the
autoencoder and its loss). Evaluations see no prefix, hence the late phase without any.
"""

from rlvr_jax.experience import experience, soft_prefixes
from rlvr_jax.objectives import group_normalized, objective, ppo_clip, token_mean
from rlvr_jax.types import Method, Recipe


def reasoning_palette(
    latent: int = 32,
    prefix: int = 4,
    until: float = 0.5,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    epsilon: float = 1e-6,
) -> Recipe:
    """GRPO on rows of which fewer and fewer are written behind a random soft prefix.

    Args:
      latent: size of z.
      prefix: vectors of a prefix (P).
      until: share of the steps, over which prefixes are withdrawn.
      clip_low, clip_high: half-widths of the trust region (ε).
      epsilon: added to the standard deviation of a group's rewards.
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        ),
        experience=experience(draw=soft_prefixes(latent, prefix, until)),
    )


METHOD = Method(
    reasoning_palette,
    "Reasoning Palette: Modulating Reasoning via Latent Contextualization for Controllable"
    " Exploration for (V)LMs",
    "https://arxiv.org/abs/2512.17206",
    changes="sampling",
    evidence="reconstruction",
    left_out="training the decoder on question-answer pairs, and the short tuning to its prefixes",
    reports="steadily above plain RL on reasoning, and control of the style (no number)",
    traps=(
        "the default decoder is random and never trained, so prefixes are noise; a score without "
        "the row's prefix would be off-policy unnoticed; evaluations without a late plain phase "
        "see what was never trained"
    ),
)
