"""Dr.SCI: mastered prompts leave the set, the easiest waiting ones enter it; rubrics for the rest.

"Improving Data and Reward Design for Scientific Reasoning in Large Language Models", of which the
text was read.

    d(x)   success of a reference model in 8 tries; d ≥ 1 is discarded, d ≤ 0.625 waits
    epoch  every x with accuracy above 0.9 leaves and the easiest waiting prompt takes its place
    R      = (w_a j_a + Σ_i w_i j_i) / (w_a + Σ_i w_i) for open answers, else the verifier's word
    loss   = PPO's clip-higher on the token mean + 0.001 k3(π ‖ π_ref)

`rubric` are the criteria of open answers, columns of the task's rewards: the paper weighs essential
ones 1, important ones 0.7, optional ones 0.3, pitfalls that were avoided 0.9 and the final answer
4; one without a score leaves the mean. A soft reward never has a spread of 0: filter by outcomes.
The formula in print says argmin for the easiest; the text is followed. Where prompts have no
`meta["difficulty"]`, the policy that the run begins with is the reference model. Which responses
to imitate before: `rlvr_jax.tasks.synthesis.coverage.most_new_ngrams`.
"""

from collections.abc import Sequence

from rlvr_jax.experience import experience, mastery_pool, shape
from rlvr_jax.objectives import (
    Criterion,
    by_rubric,
    group_normalized,
    kl_penalty,
    objective,
    ppo_clip,
    token_mean,
)
from rlvr_jax.types import Method, Recipe


def dr_sci(
    mastered: float = 0.9,
    pending: float = 0.625,
    discard: float = 1.0,
    rating_samples: int = 8,
    rubric: Sequence[Criterion] = (),
    clip_low: float = 0.2,
    clip_high: float = 0.28,
    kl_coefficient: float = 0.001,
    epsilon: float = 1e-6,
) -> Recipe:
    """GRPO on a set of prompts that trades what is mastered for what comes next.

    Args:
      mastered: accuracy in an epoch above which a prompt leaves.
      pending: pass rate of the reference model up to which a prompt waits.
      discard: pass rate from which on a prompt is left out.
      rating_samples: answers that the pass rate is estimated from, where the task does not say it.
      rubric: criteria of open answers; none: the outcome is the reward.
      clip_low, clip_high: half-widths of the trust region.
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
        experience=experience(
            mastery_pool(mastered, pending, discard, rating_samples),
            stages=[shape(by_rubric(rubric))] if rubric else [],
        ),
    )


METHOD = Method(
    dr_sci,
    "Improving Data and Reward Design for Scientific Reasoning in Large Language Models",
    "",
    changes="curriculum, reward",
    evidence="reconstruction",
    left_out="fine-tuning on responses of most new 4-grams before",
    reports=(
        "Qwen3-4B base: 63.2 on GPQA-diamond, 32.4 on its open form; 13.1k prompts an epoch are "
        "about as good as all 100k"
    ),
    traps=(
        "8 of 8 in one visit counts as mastered, which is noisy; rewards of a rubric are hardly "
        "ever equal, so filter groups by outcomes; a pitfall's score is 1 where it was avoided, "
        "else its sign flips"
    ),
)
