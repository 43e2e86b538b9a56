"""RLSP: reasoning is paid for by its length and effort, whether the answer is right or not.

"On the Emergence of Thinking in LLMs I: Searching for the Right Intuition",
https://arxiv.org/abs/2502.06773

    v    = 1 right, 0 wrong, -½ no answer;  e = -min(C / L, 10), L tokens of the response
    R    = v + e, or (1 - w) (v + e) + w g with the effort g that a judge sees
    r_t  = R on the last token, -β (log π_old - log π_ref) on every one
    Â    = GAE of these with λ = 0.95, whitened over the batch; loss = Σ PPO clip / Σ n_i

Where no answer is right, longer ones are still preferred. The cap is ours: with the published clip
of the sum (`cap=None, clip=10`) right and wrong are the same for short responses. C is a quarter of
the budget (theirs is 1000 of 4096); they count characters up to the first box, divided by four. A
response that was cut gains no more than the shortest finished one. `out_of_order` is a curve of
whether length can outweigh being right. Nothing stops length from growing to the budget.
"""

from rlvr_jax.experience import experience, shape
from rlvr_jax.objectives import (
    critic_of,
    decoupled_exploration,
    generalized_advantage,
    objective,
    ppo_clip,
    token_mean,
    whitened,
)
from rlvr_jax.types import Method, Recipe


def rlsp(
    max_length: int = 4096,
    scale: float | None = None,
    cap: float | None = 10.0,
    effort_weight: float = 0.0,
    judge: int | None = None,
    clip: float | None = None,
    kl_coefficient: float = 0.05,
    trace_decay: float = 0.95,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    value_clip: float = 0.2,
) -> Recipe:
    """PPO with a critic, on outcomes and what exploring earns.

    Args:
      max_length: budget of response tokens.
      scale: length that costs 1 (C); None: a quarter of the budget.
      cap: the most that a short response costs; None: no cap.
      effort_weight: of the judge's effort (w).
      judge: column of the task's rewards with that effort; None: nobody judges.
      clip: bound of the reward on both sides; None: none.
      kl_coefficient: price of the divergence from the reference (β); with 0 none is needed.
      trace_decay: of later errors of the critic (λ).
      clip_low, clip_high: half-widths of the trust region.
      value_clip: half-width of the critic's.
    """
    reward = decoupled_exploration(
        max_length / 4 if scale is None else scale, cap, effort_weight, judge, clip=clip
    )
    estimator = generalized_advantage(1.0, trace_decay, kl_coefficient)
    return Recipe(
        objective=objective(
            advantage=whitened(estimator),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        ),
        experience=experience(stages=[shape(reward)]),
        critic=critic_of(estimator, value_clip),
    )


METHOD = Method(
    rlsp,
    "On the Emergence of Thinking in LLMs I: Searching for the Right Intuition",
    "https://arxiv.org/abs/2502.06773",
    changes="reward, advantage",
    left_out=(
        "demonstrations before RL; the authors' judge (`--judge` brings one); "
        "the critic's first steps alone"
    ),
    reports=(
        "Llama-3.1-8B-Instruct: 23 % on MATH-500; Qwen2.5-32B-Instruct: 10 % on AIME 2024; "
        "backtracking appears from the length reward alone"
    ),
    traps=(
        "short right answers may earn less than long wrong ones; padding and repetition pay in "
        "full; the release pays 0, its best, where its grader fails; no price on length goes "
        "beside it"
    ),
)
