"""LUFFY: a verified worked solution in every group, trained on by its shaped probability.

"Learning to Reason under Off-Policy Guidance", https://github.com/ElliottYan/LUFFY

    A_i  = R_i - mean over all N rows of the group, including the teacher's
    own token:      -A_i π / π_old
    teacher's:      -A_i f(π),  f(π) = π / (π + γ)
    loss = Σ over all tokens / L - c_H mean H

The teacher's probability of its tokens is assumed to be 1, so the ratio is π itself. Its gradient A
π ∇log π vanishes for tokens that the policy finds unlikely. The gradient of f is largest where π =
γ. If all own responses are incorrect, only the solution has a positive advantage. If all are
correct, all advantages are 0. An incorrect solution has a negative advantage. The published run has
no clip, no standard deviation and no division by the rows. The loss is a sum over the update; the
authors' is over a micro-batch. Two other forms of their code are compositions. A clip on own tokens
is `by_origin(ppo_clip(0.2, 0.2), shaped_probability(γ))`. "RL + SFT" is PPO with
`drop_off_policy()` and `imitate` on the off-policy tokens.

Reports: Qwen2.5-Math-7B: above on-policy RL on the mean of six maths benchmarks (no numbers).
Traps: A clip makes it another method, although the released settings name one. The loss is a sum
over rows, so a larger batch is a larger step. Set `max_length` to the run's budget.
"""

from typing import Any

from rlvr_jax.experience import add_traces, experience
from rlvr_jax.objectives import mixed_objective, shaped_probability
from rlvr_jax.types import Method, Recipe, Shown, arguments_of
from rlvr_jax.types.hyperparameters import Count, Positive


@arguments_of(mixed_objective, "max_length", "entropy_coefficient")
def luffy_mixed(gamma: Positive = 0.1, traces: Count = 1, **mixed: Any) -> Recipe:
    """Applies the policy gradient to own tokens, a shaped probability to `traces` solutions.

    Args:
      gamma: probability at which the shaped probability of a token is ½ (γ).
      traces: number of worked solutions of each group.
    """
    objective = mixed_objective(shaped_probability(gamma), **mixed)
    return Recipe(objective, experience(stages=[add_traces(traces)]))


METHOD = Method(
    luffy_mixed,
    changes="advantage, surrogate, aggregation, guidance",
    ratio="other",
    shown=Shown("brackets", "experience/traces_alone", steps=300),
)
