"""SAFE: PPO with two pessimistic critics and a KL threshold that follows the reward.

"SAFE: Stable Alignment Finetuning with Entropy-Aware Predictive Control for RLHF",
https://github.com/ryyzn9/SAFE

    V    = -α (logsumexp(-v_1 / α, -v_2 / α) - log 2)
    A_i  = (R_i - V_i - mean) / (std + 1e-8), over the batch, std with B - 1
    loss = Σ max(-A ρ, -A clip(ρ, 1 ± ε)) / Σ n_i - c_H mean H + P
    P    = 0.1 max(KL_short - τ, 0)² max(½, 2 / (H_old + 0.1))

KL_short is a running mean of the KL to the reference; the threshold τ comes from a controller
(`control_kl`: PID on the reward's velocity, wider while the reward climbs). In the authors' code P
is a number without gradient, so the controller changes nothing but the logged loss;
`trained_penalty=True` puts the KL of the batch into the square and lets it act. They call the
controller once per pass over a batch, and average the entropy over pads too; we average over the
tokens. Defaults are theirs (Qwen2.5-3B, hh-rlhf, learning rate 1e-5, 2 passes per batch of 16).
The critics are two heads on the policy's hidden state at the last token, fitted after each batch
by `huber_value_loss` with weight ½, which leaves the policy alone: that they have no network below
them is ours. In the authors' code they read the last column, padding or not.
"""

from rlvr_jax.objectives.advantages.pessimistic_critics import pessimistic_advantage
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.regularizers.predictive_kl import predictive_kl_penalty
from rlvr_jax.objectives.regularizers.token_penalties import entropy_bonus
from rlvr_jax.objectives.scorers import pessimistic_scorer
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.types import Method, Recipe


def safe(
    temperature: float = 0.3,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    entropy_coefficient: float = 0.01,
    penalty_coefficient: float = 0.1,
    base_threshold: float = 0.3,
    penalty_strength: float = 2.0,
    trained_penalty: bool = False,
    value_clip: float = 0.2,
    huber_width: float = 0.5,
) -> Recipe:
    """PPO on rewards minus the soft minimum of two critics, with a controlled KL penalty.

    Args:
      temperature: of the soft minimum (α).
      clip_low, clip_high: half-widths of the trust region (ε).
      entropy_coefficient: weight of the mean entropy (c_H).
      penalty_coefficient: weight of the penalty; with 0 there is no controller and no reference.
      base_threshold: of the KL before the controller moves it, nats; the threshold stays within
        0.1 and 0.6 whatever it is.
      penalty_strength: of the penalty where the entropy is low.
      trained_penalty: whether the penalty has a gradient.
      value_clip, huber_width: of the critics' loss (`pessimistic_scorer`).
    """
    bonus = entropy_bonus(entropy_coefficient)
    control = predictive_kl_penalty(
        penalty_coefficient, base_threshold, penalty_strength, trained=trained_penalty
    )
    return Recipe(
        objective=objective(
            advantage=pessimistic_advantage(temperature),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            regularizers=[bonus, control] if penalty_coefficient else [bonus],
            aggregation=token_mean(),
        ),
        critic=pessimistic_scorer(temperature, value_clip, huber_width),
    )


METHOD = Method(
    safe,
    "SAFE: Stable Alignment Finetuning with Entropy-Aware Predictive Control for RLHF",
    "https://github.com/ryyzn9/SAFE",
    changes="advantage, regularizer",
    left_out="running normalisation of the reward",
    reports="a 3B model: training reward 0.725, PPO's 0.689, with hardly any crash",
    traps=(
        "by default, as in their code, the KL penalty has no gradient and its controller changes "
        "nothing: `trained_penalty=True`; the entropy may raise it 20 times; their phases count "
        "passes, not steps"
    ),
)
