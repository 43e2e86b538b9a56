"""OLR: where labels may be wrong, a prompt is graded by the answer that the policy settles on.

"Can LLMs Learn to Reason Robustly under Noisy Supervision?", https://github.com/ShenzhiYang2000/OLR

    at every visit e of a prompt
    M_e   = the most frequent of its n answers, if only one is;  p_e = its share
    slope = least squares of p_1 … p_e;  mode = the most frequent of M_1 … M_e, if only one is
    if e > start, slope ≥ 0.05 and mode = M_e: this step's label is M_e, else the given one
    loss  = GRPO's clip on the token mean + 0.001 k3(π ‖ π_ref)

Nothing is stored but the history, so a label reverts when the test fails; a share that saturates
has a falling slope, and late repair stops by itself. Equal answers are those that the task names
alike (`Grade.answer`). The authors' script has a slope of 0.025, too.
"""

from rlvr_jax.experience import experience, relabel
from rlvr_jax.objectives import (
    group_normalized,
    kl_penalty,
    objective,
    ppo_clip,
    token_mean,
)
from rlvr_jax.types import Method, Recipe


def olr(
    start: int = 4,
    slope: float = 0.05,
    visits: int = 10,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    kl_coefficient: float = 0.001,
    epsilon: float = 1e-6,
) -> Recipe:
    """GRPO on groups that are graded by their majority once that has settled.

    Args:
      start: visits of a prompt before its label can be replaced.
      slope: least rise of the majority's share, each visit.
      visits: that are remembered.
      clip_low, clip_high: half-widths of the trust region (ε).
      kl_coefficient: weight of the KL; with 0 no reference is needed.
      epsilon: added to the standard deviation of a group's rewards.
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            regularizers=[kl_penalty(kl_coefficient)] if kl_coefficient else [],
            aggregation=token_mean(),
        ),
        experience=experience(stages=[relabel(start, slope, visits)]),
    )


METHOD = Method(
    olr,
    "Can LLMs Learn to Reason Robustly under Noisy Supervision?",
    "https://github.com/ShenzhiYang2000/OLR",
    changes="reward",
    reports=(
        "Qwen3-4B base, 10 to 90 % of labels wrong: 3.6 to 3.9 points on six maths sets, 3.3 to "
        "4.6 on three others"
    ),
    traps=(
        "the share is that of each visit's own majority, so a change of majority does not show; "
        "nothing is relabelled in the first visits or where answers tie; a saturated share gives "
        "the wrong label back"
    ),
)
