"""PPO with a critic, as Open-Reasoner-Zero runs it: returns minus values, whitened.

Schulman et al. 2017, "Proximal Policy Optimization Algorithms", https://arxiv.org/abs/1707.06347,
in the form of https://github.com/Open-Reasoner-Zero/Open-Reasoner-Zero

    δ_t  = r_t + γ V_{t+1} - V_t, the outcome as r of the last token
    Â_t  = δ_t + γλ Â_{t+1};  A = (Â - mean) / √(max(var, 1e-8)) over the tokens of the batch
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / Σ n_i

With the defaults γ = λ = 1, the critic is a plain baseline: Â = R - V. Log-ratios are clamped to
±20. There is no KL and no entropy bonus. verl's form is `whitened(…, ddof=1, epsilon=1e-8,
floor=0)` with `ppo_clip(…, dual=3)`: n - 1, 1e-8 inside the root, and a dual clip. A KL in the
reward is `generalized_advantage(kl_coefficient=…)`. `value_loss` fits the critic to Â + V before
whitening. Open-Reasoner-Zero makes 12 critic updates per update of the policy. Here,
`critic_epochs` (default: 1) passes are made over the batch.

Reports: Qwen2.5-32B base with γ = λ = 1 and no KL (ORZ): above R1-Zero of its size in a tenth of
the steps.
Traps: Whitening amplifies the noise of a batch of equal rewards.
"""

from typing import Any

from rlvr_jax.objectives import clamped_token_ratio, clipped_with_critic, generalized_advantage
from rlvr_jax.types import LOSS_ON_BRACKETS, Method, Recipe, arguments_of
from rlvr_jax.types.hyperparameters import Discount, TraceDecay


@arguments_of(clipped_with_critic, "clip_low", "clip_high", "value_clip", "trunk")
def ppo(discount: Discount = 1.0, trace_decay: TraceDecay = 1.0, **clips: Any) -> Recipe:
    """Applies a clipped ratio with the token mean to whitened generalized advantages."""
    estimator = generalized_advantage(discount, trace_decay)
    return Recipe(**clipped_with_critic(estimator, ratio=clamped_token_ratio, **clips))


METHOD = Method(ppo, changes="advantage, surrogate", baseline="other", shown=LOSS_ON_BRACKETS)
