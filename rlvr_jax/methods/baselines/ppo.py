"""PPO with a critic, as Open-Reasoner-Zero runs it: returns minus values, whitened.

Schulman et al. 2017, "Proximal Policy Optimization Algorithms", https://arxiv.org/abs/1707.06347,
in the form of https://github.com/Open-Reasoner-Zero/Open-Reasoner-Zero

    δ_t  = r_t + γ V_{t+1} - V_t, the outcome as r of the last token
    Â_t  = δ_t + γλ Â_{t+1};  A = (Â - mean) / √(max(var, 1e-8)) over the tokens of the batch
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / Σ n_i

With γ = λ = 1, its defaults, the critic is a plain baseline: Â = R - V. Log ratios are clamped to
±20. There is no KL and no entropy bonus. verl also has λ = 1, whitens with n - 1 and 1e-8 inside
the root, and adds a dual clip of 3: `whitened(…, ddof=1, epsilon=1e-8, floor=0)` and
`ppo_clip(…, dual=3)`. A KL in the reward is `generalized_advantage(kl_coefficient=…)`. `value_loss`
fits the critic to Â + V before whitening. Theirs makes 12 updates per update of the policy, ours
passes `critic_epochs` times (1) over the batch.

Reports: Qwen2.5-32B base with γ = λ = 1 and no KL (ORZ): above R1-Zero of that size in a tenth of
its steps
Traps: with γ = λ = 1 the critic is only a baseline of each token; whitening amplifies the noise of
a batch of equal rewards
"""

from rlvr_jax.objectives import clipped_objective, critic_of, generalized_advantage, whitened
from rlvr_jax.objectives.statistics.ratios import clamped_token_ratio
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import Bound, ClipHigh, ClipLow, Discount, TraceDecay


def ppo(
    discount: Discount = 1.0,
    trace_decay: TraceDecay = 1.0,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    value_clip: Bound = 0.2,
    trunk: str = "own",
) -> Recipe:
    """Whitened generalized advantages with a clipped ratio on the token mean.

    Args:
      value_clip: half-width of the critic's trust region (ε_v).
      trunk: of the critic: "own", or "policy" for a head on the policy's hidden states, which it
        does not train.
    """
    estimator = generalized_advantage(discount, trace_decay)
    objective = clipped_objective(
        clip_low, clip_high, advantage=whitened(estimator), ratio=clamped_token_ratio
    )
    return Recipe(objective, critic=critic_of(estimator, value_clip, trunk=trunk))


METHOD = Method(ppo, changes="advantage, surrogate", baseline="other")
