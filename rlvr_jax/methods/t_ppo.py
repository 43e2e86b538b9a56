"""T-PPO: PPO on the tokens of a window, whether their responses are finished or not.

Fan et al. 2025, "Truncated Proximal Policy Optimization", https://arxiv.org/abs/2506.15050

    δ_t  = r_t + γ V_{t+1} - V_t;  A_t = δ_t + γλ A_{t+1}
    V after the last token: that of the last token where the window cut, 0 where the response ended
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i over the tokens of the window

The outcome stands on the last token of finished responses. Advantages are not whitened. The critic
is fitted to finished responses alone, to their plain returns (`critic_targets`). A reconstruction
from abstract and reviews: γ = 1, λ = 0.95, ε = 0.2 and windows of a quarter of the budget are ours.
The mask holds the tokens of the current window only, so that each window has old log-probs of its
own. `truncated` are rows that go on in the next window: a response that the whole budget ended has
its reward. Of a finished response the critic is fitted to the last window alone, where the paper
takes all of its tokens.
"""

from rlvr_jax.experience import experience, in_windows
from rlvr_jax.objectives.advantages.windows import critic_of_finished, extended_advantage
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.types import Method, Recipe


def t_ppo(
    discount: float = 1.0,
    trace_decay: float = 0.95,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    window: float = 0.25,
    trunk: str = "own",
) -> Recipe:
    """Generalized advantages that a cut does not disturb, with a clipped ratio on the token mean.

    Args:
      discount: of later rewards, per token (γ).
      trace_decay: of later errors of the critic, per token (λ).
      clip_low, clip_high: half-widths of the trust region (ε_low, ε_high).
      window: share of a response's budget that is written in a step (W).
      trunk: of the critic: "own", or "policy" for a head on the policy's hidden states.
    """
    return Recipe(
        objective=objective(
            advantage=extended_advantage(discount, trace_decay),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        ),
        critic=critic_of_finished(discount, trunk),
        experience=experience(draw=in_windows(window)),
    )


METHOD = Method(
    t_ppo,
    "Truncated Proximal Policy Optimization",
    "https://arxiv.org/abs/2506.15050",
    changes="advantage, sampling",
    evidence="reconstruction",
    left_out="the critic's fit to the earlier windows of a finished response",
    reports="a 32B base model on AIME 2024: up to 2.5 times as efficient as PPO with no loss",
    traps=(
        "responses under a quarter of the budget never meet a cut; the critic learns from "
        "finished ones alone, so a step may leave it as it is; λ = 1 makes the guess at the cut "
        "matter everywhere"
    ),
)
