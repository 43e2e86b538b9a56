"""SPEC-RL: the last epoch's responses are drafts, and only what is rejected of them is drawn anew.

Liu et al. 2025, "SPEC-RL", https://arxiv.org/abs/2509.23232

    a token of the draft is accepted with probability min(1, e^b π_now / π_then)
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ [max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) + β k3(π ‖ π_ref) - α H] / Σ n_i

A response is the accepted prefix of its draft and what the current policy writes behind it. It is
trained as if all of it were the current policy's: ρ is 1 at the first update, and nothing corrects
for the reuse. Even with b = 0 that is not exact, for a rejected token is drawn from π_now, not from
its excess over π_then; b = 0.5 keeps more, and is further off. `exact_mb=N` with `lenience=0` draws
it from the excess, max(π_now - π_then, 0) normalized (ours): responses are then the current
policy's, where the log-probs of all tokens that this needs take at most N megabytes.

The loss is GRPO's; `--experience spec_rl` draws so for any other. Prompts must come back for it to
act: with many prompts and few steps nothing is reused. The authors take the same random numbers in
every step; here they are fresh.
"""

from rlvr_jax.experience import experience, from_drafts
from rlvr_jax.objectives import (
    entropy_bonus,
    group_normalized,
    kl_penalty,
    objective,
    ppo_clip,
    token_mean,
)
from rlvr_jax.types import Method, Recipe


def spec_rl(
    lenience: float = 0.5,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    kl_coefficient: float = 1e-4,
    entropy_coefficient: float = 1e-3,
    epsilon: float = 1e-6,
    exact_mb: float = 0.0,
) -> Recipe:
    """GRPO on responses that go on from what the policy would write again of the last ones.

    Args:
      lenience: nats by which a token may have become less likely (b).
      clip_low, clip_high: half-widths of the trust region (ε).
      kl_coefficient: weight of the KL term (β); with 0 no reference is needed.
      entropy_coefficient: weight of the entropy (α).
      epsilon: added to the standard deviation of a group's rewards.
      exact_mb: megabytes that log-probs of all tokens may take; 0: drafts are taken over as the
        authors do.
    """
    regularizers = [kl_penalty(kl_coefficient)] if kl_coefficient else []
    regularizers += [entropy_bonus(entropy_coefficient)] if entropy_coefficient else []
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            regularizers=regularizers,
            aggregation=token_mean(),
        ),
        experience=experience(draw=from_drafts(lenience, exact_mb=exact_mb)),
    )


METHOD = Method(
    spec_rl,
    "SPEC-RL: Accelerating On-Policy Reinforcement Learning via Speculative Rollouts",
    "https://arxiv.org/abs/2509.23232",
    changes="sampling",
    reports=(
        "Qwen3-1.7B and 8B on GSM8K, MATH-500, OlympiadBench and MMLU-STEM: 2 to 3 times less "
        "time in rollouts at equal quality"
    ),
    traps=(
        "nothing is reused in the first epoch; a draft is not exactly on-policy even with b = 0 "
        "(`exact_mb` is); a response that the budget cut is never extended; groups that are all "
        "accepted repeat old rewards"
    ),
)
