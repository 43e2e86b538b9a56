"""Intrinsic rewards: a response is paid for how sure the policy was, or for being in the majority.

"How Far Can Unsupervised RLVR Scale LLM Training?"; Intuitor, https://arxiv.org/abs/2505.19590

    certainty_of_distribution  (1/n) Σ_t (log Σ exp z - mean z), KL(uniform ‖ π) but for ln V
    certainty_of_entropy       -(1/n) Σ_t H_t (RENT)
    certainty_of_response      (1/n) Σ_t ln π(o_t)
    certainty_of_probability   Π_t π(o_t) (RLSC)
    certainty_of_margin        (1/n) Σ_t (p₁ - p₂) (RLSF, here over all tokens)
    majority_vote              1 for the answer of most of the group (TTRL)
    A_i = (r_i - mean) / (std + 1e-6), std with n - 1;  loss = mean_i (1/n_i) Σ_t [PPO clip + β k3]

Such rewards rise and then accuracy falls: certainty sharpens what the policy began with.
Probability pays short responses (of long ones it is far below the 1e-6, and teaches nothing),
entropy and likelihood pay repetition; a vote is without signal once all agree. A tie of votes goes
to the answer that comes first. TTRL votes with 64 responses and learns from 32; here all vote. β is
Intuitor's.
"""

from rlvr_jax.experience import experience, shape
from rlvr_jax.objectives import (
    Certainty,
    Shaping,
    agreement,
    certainty_normalized,
    certainty_of_distribution,
    group_normalized,
    kl_penalty,
    objective,
    ppo_clip,
    rollout_mean_token_mean,
)
from rlvr_jax.types import Method, Recipe

majority_vote: Shaping = agreement(vote=True)


def intrinsic_rewards(
    signal: Certainty | Shaping = certainty_of_distribution,
    kl_coefficient: float = 0.005,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    epsilon: float = 1e-6,
) -> Recipe:
    """GRPO on a reward that no verifier gives.

    Args:
      signal: a `Certainty`, or a reward such as `majority_vote`.
      kl_coefficient: weight of the KL (β); with 0 no reference is needed.
      clip_low, clip_high: half-widths of the trust region.
      epsilon: added to the standard deviation of a group.
    """
    sure = isinstance(signal, Certainty)
    return Recipe(
        objective=objective(
            advantage=(
                certainty_normalized(signal, epsilon) if sure else group_normalized(epsilon)
            ),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            regularizers=[kl_penalty(kl_coefficient)] if kl_coefficient else [],
            aggregation=rollout_mean_token_mean(),
        ),
        experience=None if sure else experience(stages=[shape(signal)]),
    )


METHOD = Method(
    intrinsic_rewards,
    "How Far Can Unsupervised RLVR Scale LLM Training?",
    "https://arxiv.org/abs/2505.19590",
    changes="reward, advantage",
    left_out="more votes than rows; votes over rephrased questions",
    reports=(
        "Qwen3-1.7B base on DAPO-17k: five such rewards rise, then fall, within about 1000 steps; "
        "sets of 32 to 128 prompts did not collapse"
    ),
    traps=(
        "probability pays short answers, entropy and likelihood repetition; certainty keeps "
        "pushing on solved prompts; a vote locks in the first majority, right or wrong"
    ),
)
