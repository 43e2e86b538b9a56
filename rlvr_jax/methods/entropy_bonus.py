"""Entropy bonus: GRPO with the mean entropy of the policy added to what is maximised.

Wang et al. 2025, "Reinforcement Learning for Reasoning in Large Language Models with One Training
Example", https://arxiv.org/abs/2504.20571

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ [c_pg max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) - c_H H + c_KL k3(π ‖ π_ref)] / Σ n_i

H is the entropy over the whole vocabulary, with its gradient; estimates by -logp of the samples
have gradient 0 in expectation. Coefficients are the defaults of the authors' code. With a target
the coefficient follows the entropy as in Skywork-OR1 (https://arxiv.org/abs/2505.22312) and TRL:
it acts while the last mean entropy was at most the target, and goes up by Δ while it is, else down.
Δ and the bounds are TRL's defaults; TRL starts at c_H = 0 and has the target 0.2. That the bonus
can fall to nothing over a number of updates is ours.
"""

import optax

from rlvr_jax.objectives import group_normalized, kl_penalty, objective, ppo_clip, token_mean
from rlvr_jax.objectives import regularizers as terms
from rlvr_jax.objectives.arguments import check_count
from rlvr_jax.objectives.transforms.weights import scale_weight
from rlvr_jax.types import Method, Recipe


def entropy_bonus(
    entropy_coefficient: float = 0.001,
    kl_coefficient: float = 0.001,
    policy_coefficient: float = 1.0,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    target: float | None = None,
    coefficient_step: float = 0.005,
    coefficient_min: float = 0.0,
    coefficient_max: float = 1.0,
    anneal_updates: int = 0,
) -> Recipe:
    """GRPO on the token mean, with a bonus for entropy and a KL to the reference.

    Args:
      entropy_coefficient: weight of the mean entropy (c_H); with a target where it starts (c_0).
      kl_coefficient: weight of the KL (c_KL); with 0 no reference is needed.
      policy_coefficient: weight of the policy loss (c_pg); 0 trains on the entropy alone if
        `kl_coefficient` and the optimizer's weight decay are 0, too.
      clip_low, clip_high: half-widths of the trust region (ε).
      target: mean entropy that the coefficient steers at, nats; None for a constant coefficient.
      coefficient_step: its change per update (Δ).
      coefficient_min, coefficient_max: its bounds (c_min, c_max).
      anneal_updates: updates over which the bonus falls linearly to nothing; 0 if it stays.
    Raises:
      ValueError: anneal_updates negative, or numbers of the controller without its target.
    """
    check_count(0, "entropy_bonus", anneal_updates=anneal_updates)
    control = (coefficient_step, coefficient_min, coefficient_max)
    if target is None and control != (0.005, 0.0, 1.0):
        raise ValueError(
            "entropy_bonus: target must be given for coefficient_step, coefficient_min and"
            f" coefficient_max to act, got None and {control}"
        )
    if target is None:
        bonus = terms.entropy_bonus(entropy_coefficient)
    else:
        bonus = terms.adaptive_entropy_bonus(
            target, coefficient_step, coefficient_min, coefficient_max, entropy_coefficient
        )
    if anneal_updates:
        bonus = terms.scheduled(bonus, optax.linear_schedule(1.0, 0.0, anneal_updates))
    bonuses = [bonus] if entropy_coefficient or target is not None else []
    kl = [kl_penalty(kl_coefficient)] if kl_coefficient else []
    return Recipe(
        objective=objective(
            advantage=group_normalized(),
            transforms=[scale_weight(policy_coefficient)] if policy_coefficient != 1 else [],
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            regularizers=[*bonuses, *kl],
            aggregation=token_mean(),
        )
    )


METHOD = Method(
    entropy_bonus,
    "Reinforcement Learning for Reasoning in Large Language Models with One Training Example",
    "https://arxiv.org/abs/2504.20571",
    changes="regularizer",
    left_out="training on one prompt that is repeated 128 times per batch, sampled at temperature"
    " 0.6",
    reports="Qwen2.5-Math-1.5B with a single training example: MATH500 from 36.0 to 73.6",
    traps=(
        "too large a coefficient lets entropy explode, as the bonus lifts the whole tail of the "
        "vocabulary; an entropy that is estimated by the mean of -logp has no gradient on "
        "policy"
    ),
)
