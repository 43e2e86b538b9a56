"""DeepSearch: rollouts are the paths of a Monte Carlo tree search, credited node by node.

"DeepSearch: Overcome the Bottleneck of RLVR via Monte Carlo Tree Search",
https://github.com/smiles724/DeepSearch

    a node is 256 tokens and has 8 children; one terminal of an expansion is backed up, ±1
    v    ← v + γ r along its path, γ = max((d + 1) / (L + 1), 0.1); a solved path stays above 0
    r_t  = tanh(v) of the token's node, v itself at the last one, + the overlong term
    A_t  = r_t - mean of the last tokens' rewards of the prompt's rows
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i, at most -10 A where A < 0

The code takes the sum v of what was backed up, not v / N, hence the tanh. The search chooses by
reward and confidence, so that the rows are no samples of the policy; nothing corrects for it.
With an `epsilon` A is divided by the deviation of the same rewards, which the code has, but off.
"""

from rlvr_jax.experience import experience, search_tree
from rlvr_jax.objectives import last_token_centered, objective, ppo_clip, token_mean
from rlvr_jax.types import Method, Recipe


def deepsearch(
    node_tokens: int = 256,
    width: int = 8,
    exploration: float = 2.0,
    least: float = 0.1,
    value_weight: float = 0.4,
    depth_weight: float = 0.01,
    overlong: int = 4096,
    most_expansions: int = 256,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
    dual: float = 10.0,
    epsilon: float | None = None,
) -> Recipe:
    """A clipped ratio on the paths of a search, each token credited with its node's value.

    Args:
      node_tokens: tokens of a node.
      width: children of a node.
      exploration: of the choice among the children of an expansion.
      least: share of a reward that reaches the root (γ).
      value_weight, depth_weight: of the choice among all open nodes.
      overlong: last tokens of the budget, over which the reward falls to -1; 0: off.
      most_expansions: of a prompt's tree.
      clip_low, clip_high: half-widths of the trust region (ε_low, ε_high).
      dual: bound of the loss where A < 0, in units of -A.
      epsilon: advantages are divided by the deviation of the last tokens' rewards plus this; None:
        they are not.
    """
    return Recipe(
        objective=objective(
            advantage=last_token_centered(epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high, dual=dual),
            aggregation=token_mean(),
        ),
        experience=experience(
            draw=search_tree(
                node_tokens,
                width,
                exploration,
                least,
                value_weight,
                depth_weight,
                overlong,
                most_expansions,
            )
        ),
    )


METHOD = Method(
    deepsearch,
    "DeepSearch: Overcome the Bottleneck of Reinforcement Learning with Verifiable Rewards via"
    " Monte Carlo Tree Search",
    "https://github.com/smiles724/DeepSearch",
    changes="sampling, advantage, aggregation",
    left_out="the choice of hard problems, and the replay of solved rollouts in place of a search",
    reports=(
        "a 1.5B model: 62.95 % on the mean of six maths sets, with 5.7 times fewer GPU hours than "
        "longer plain training"
    ),
    traps=(
        "rows are chosen by reward and confidence, so they are no samples of the policy and their "
        "share of right ones says nothing about it; paths that do not end are thrown away"
    ),
)
