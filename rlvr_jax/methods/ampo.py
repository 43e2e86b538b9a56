"""AMPO: where all answers fail, the solutions of several teachers that the policy understands best.

"More Than One Teacher: Adaptive Multi-Guidance Policy Optimization for Diverse Exploration",
https://github.com/SII-Enigma/AMPO

    in a group without a right answer, k = min(2, teachers, wrong answers) of them are overwritten
    by the solutions after which the answer is most probable; these have reward 1
    A_i  = R_i - mean over all N rows of the group
    own token:    PPO clip with dual clip, log-ratio clamped to ±20
    teacher's:    -A_i f(π),  f(π) = π / (π + γ)
    loss = Σ over all tokens / L - c_H mean H

This is the released script. The paper divides A by the group's standard deviation, clips f, and
adds the mean over own tokens to the mean over solutions of their token means, so that a long one
does not outweigh: `group_normalized()`, `average_by_origin()` and
`by_origin(ppo_clip(ε, ε), shaped_probability(γ, clip=ε))` on the token mean. The solutions are
those of `Prompt.meta["solutions"]`, the answer is their last step; the code's score also counts the
format with a tenth.
"""

from rlvr_jax.experience import experience, none_above, place_ranked_traces
from rlvr_jax.objectives import (
    by_origin,
    clamped_token_ratio,
    fixed_length_sum,
    group_centered,
    objective,
    ppo_clip,
    shaped_probability,
    statistic_term,
)
from rlvr_jax.types import Method, Recipe


def ampo(
    gamma: float = 0.1,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual_clip: float = 10.0,
    right_above: float = 0.6,
    traces: int = 2,
    entropy_coefficient: float = 0.001,
    max_length: int = 8192,
) -> Recipe:
    """PPO on own tokens, shaped probability on solutions that stand in where all answers fail.

    Args:
      gamma: probability at which a teacher's token is learned from most (γ).
      clip_low, clip_high, dual_clip: trust region of own tokens (ε, c).
      right_above: outcome above which an answer is right.
      traces: solutions of a group at most (k_0).
      entropy_coefficient: weight of the mean entropy (c_H).
      max_length: budget of response tokens (L).
    """
    bonus = [statistic_term(-entropy_coefficient, "entropy")] if entropy_coefficient else []
    own = ppo_clip(low=clip_low, high=clip_high, ratio=clamped_token_ratio, dual=dual_clip)
    return Recipe(
        objective=objective(
            advantage=group_centered(),
            surrogate=by_origin(own=own, foreign=shaped_probability(gamma)),
            regularizers=bonus,
            aggregation=fixed_length_sum(max_length),
        ),
        experience=experience(
            stages=[place_ranked_traces(none_above(right_above), traces, right_above)]
        ),
    )


METHOD = Method(
    ampo,
    "More Than One Teacher: Adaptive Multi-Guidance Policy Optimization for Diverse Exploration",
    "https://github.com/SII-Enigma/AMPO",
    changes="advantage, surrogate, aggregation, guidance",
    left_out="solutions in other groups by chance; the format's part in the ranking",
    reports=(
        "Qwen2.5-7B-Instruct on 8.5k problems: 4.3 points in maths and 12.2 out of domain over "
        "GRPO; like one strong teacher on 46k"
    ),
    traps=(
        "acts only where every answer of a group fails; the loss is a sum over tokens, not the "
        "paper's two means, so a long solution outweighs others; give max_length the run's budget"
    ),
)
