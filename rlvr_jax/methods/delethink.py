"""Delethink: long answers in short chunks, from each of which only a short text is carried on.

Aghajohari et al. 2025, "The Markovian Thinker", https://arxiv.org/abs/2510.06557

    a chunk of C tokens that does not end is followed by one behind the prompt, the answer's first
    100 tokens and its last m - 100, m = C/2; up to I chunks
    A    = (R - mean) / (std + 1e-6) over the answers to a prompt, std with n - 1
    loss = mean over answers of (1/n) Σ min(r, 2) · l over all tokens of its chunks
    l    = min(max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)), -3 A where A < 0)

R is the verifier's word on the last chunk, r = exp(old_logp - behaviour_logp), n the new tokens of
all chunks of the answer. Each chunk is a row that is trained in the context in which it was drawn.
C is the run's `response_tokens`. The authors have I = 5 chunks (24k tokens) or 23 (96k), C = 8192
and temperature 0.6, in the log-probs, too.
"""

from rlvr_jax.experience import chunks, experience
from rlvr_jax.objectives import (
    objective,
    ppo_clip,
    rollout_mean_token_sum,
    trace_normalized,
    truncate_importance,
    weigh_by_trace,
)
from rlvr_jax.objectives.arguments import check_positive
from rlvr_jax.types import Method, Recipe


def delethink(
    max_chunks: int = 5,
    head: int = 100,
    carry: int | None = None,
    temperature: float = 0.6,
    cap: float = 2.0,
    clip_low: float = 0.2,
    clip_high: float = 0.26,
    dual: float = 3.0,
    epsilon: float = 1e-6,
) -> Recipe:
    """A clipped ratio on the mean over answers, which are written in chunks of bounded context.

    Args:
      max_chunks: of an answer (I).
      head: first tokens of an answer that every chunk sees, at most half the carry-over.
      carry: tokens that a chunk sees of those before it (m); None: half the run's response_tokens.
      temperature: at which tokens are drawn and scored.
      cap: largest importance weight of a token.
      clip_low, clip_high: half-widths of the trust region (ε_low, ε_high).
      dual: bound on the loss of a negative advantage.
      epsilon: added to the standard deviation of the rewards of a prompt's answers.
    """
    check_positive("delethink", temperature=temperature)
    return Recipe(
        objective=objective(
            advantage=trace_normalized(epsilon),
            transforms=[weigh_by_trace(), truncate_importance(cap)],
            surrogate=ppo_clip(low=clip_low, high=clip_high, dual=dual),
            aggregation=rollout_mean_token_sum(),
        ),
        experience=experience(draw=chunks(max_chunks, head, carry, temperature=temperature)),
    )


METHOD = Method(
    delethink,
    "The Markovian Thinker",
    "https://arxiv.org/abs/2510.06557",
    changes="sampling, advantage, weight, aggregation",
    reports=(
        "R1-Distill-Qwen-1.5B at 24k tokens: as good as RL on one long context or better, at a "
        "cost that is linear in the length"
    ),
    traps=(
        "an answer that ends in its first chunk is plain GRPO; chunks are cut anywhere, so the "
        "policy must learn to write its state near their end; log-probs must be scored at the "
        "sampler's temperature, as here"
    ),
)
