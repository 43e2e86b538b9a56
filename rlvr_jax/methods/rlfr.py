"""RLFR: tokens whose hidden states leave the flow of good trajectories are charged.

"RLFR: Extending Reinforcement Learning for LLMs with Flow Environment",
https://github.com/Jinghaoleven/RLFR

    q_t  = scores min-max within the response; the 15 largest above 0.6 count
    r_t  = -c q_t on these, and (R - mean) / (std + 1e-9) of the group on the last token
    A_t  = Σ_{s ≥ t} r_s;  loss = Σ PPO clip / Σ n_i

The score of a token is s / (1 - s) times the squared error of the velocity that a small flow
network predicts between noise and the token's hidden state (`flow_scorer`). The network reads the
policy's last hidden states, where the authors read three middle layers, and is fitted after every
batch to its right responses, with the optimizer and the rate of a critic (`--critic-learning-rate`;
the authors' is 1e-4, theirs of the policy 1e-6). The released min-max takes the second smallest
score of a row without padding for its smallest; here it is the smallest of the response's.
"""

from rlvr_jax.objectives import (
    deviation_penalty,
    flow_scorer,
    objective,
    ppo_clip,
    process_to_go,
    standardized_reward,
    token_mean,
)
from rlvr_jax.types import Method, Recipe


def rlfr(
    coefficient: float = 0.01,
    threshold: float = 0.6,
    most: int = 15,
    time: float = 0.8,
    blocks: int = 6,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    epsilon: float = 1e-9,
) -> Recipe:
    """The clipped loss on the token mean, on group-normalized outcomes and charges on the way.

    Args:
      coefficient: of the charge (c).
      threshold: of the scaled score, above which a token is charged.
      most: tokens of a response that are charged.
      time: of the flow, at which scores are made (s).
      blocks: of the flow network.
      clip_low, clip_high: half-widths of the trust region.
      epsilon: added to the standard deviation of a group's rewards.
    """
    process = deviation_penalty(threshold, most)
    return Recipe(
        objective=objective(
            advantage=process_to_go(process, coefficient, standardized_reward(epsilon)),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        ),
        critic=flow_scorer(time, blocks),
    )


METHOD = Method(
    rlfr,
    "RLFR: Extending Reinforcement Learning for LLMs with Flow Environment",
    "https://github.com/Jinghaoleven/RLFR",
    changes="reward, advantage",
    left_out="hidden states of middle layers; pre-training of the flow on expert text",
    reports=(
        "Qwen2.5-1.5B and 7B-Math, Llama-3.1-8B: small steady gains over GRPO and over rewards by "
        "entropy"
    ),
    traps=(
        "a charged token lowers all before it, right answers too; the noise makes rewards random; "
        "the released online fit of the flow may leave it as it was; here it starts untrained"
    ),
)
