"""AEPO (arbitrary entropy): steer the entropy with rollouts of another temperature.

"Arbitrary Entropy Policy Optimization: Entropy Is Controllable in Reinforcement Fine-tuning",
https://github.com/597358816/DCPO

    H      = -mean logp of the sampled tokens in the last update, 0 at first
    T      = T_high if H ≤ H_0 else T_low       a quarter of the prompts is drawn again at T
    k      = min(sample_num, redrawn rows with A > 0.05), halved if H > H_0
    update = k of those rows with A = 1, and the own rows but the first k
    loss   = Σ PPO clip with dual clip / Σ n_i

Both kinds of rows have their own group statistics. Both are drawn from the likeliest tokens of mass
0.99, and their old log-probs are those at temperature 1 over the whole vocabulary, with which the
ratio begins at 1: temperature and cut enter only by which rollouts are seen. In effect GRPO plus a
REINFORCE term. The redrawn rows are those marked `off_policy`. Where nothing qualifies the authors'
code fails; ours trains on the own rows. Their log-space clip is the same function. Evaluations are
drawn with the same cut.
"""

from rlvr_jax.experience import draw_controllers, experience, plain
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.arguments import check_within
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.objectives.transforms.entropy_control import imitate_controllers, normalized_by_origin
from rlvr_jax.types import Method, Recipe


def arbitrary_entropy(
    target: float = 0.5,
    threshold: float = 0.05,
    max_samples: int = 60,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual_clip: float = 3.0,
    epsilon: float = 1e-6,
    high: float = 1.2,
    low: float = 0.8,
    share: float = 0.25,
    top_p: float = 0.99,
) -> Recipe:
    """GRPO on the token mean with some rollouts replaced by right ones of another temperature.

    Args:
      target: entropy to hold (H_0), nats.
      threshold: advantage above which a redrawn rollout is imitated.
      max_samples: rollouts that are replaced at most, of the 2560 of a batch (sample_num).
      clip_low, clip_high, dual_clip: trust region.
      epsilon: added to the standard deviation of a group's rewards.
      high, low: temperatures of the redrawn rows while the entropy is low, and above its target.
      share: of the prompts, that are drawn again.
      top_p: mass that is sampled from.
    Raises:
      ValueError: top_p outside [0, 1].
    """
    check_within(0, 1, "arbitrary_entropy", top_p=top_p)
    return Recipe(
        objective=objective(
            advantage=normalized_by_origin(epsilon),
            transforms=[imitate_controllers(target, threshold, max_samples)],
            surrogate=ppo_clip(low=clip_low, high=clip_high, dual=dual_clip),
            aggregation=token_mean(),
        ),
        experience=experience(
            draw=plain(top_p=top_p),
            stages=[draw_controllers(target, high, low, share, threshold, max_samples, epsilon)],
        ),
    )


METHOD = Method(
    arbitrary_entropy,
    "Arbitrary Entropy Policy Optimization: Entropy Is Controllable in Reinforcement Fine-tuning",
    "https://github.com/597358816/DCPO",
    changes="sampling, advantage, mask",
    reports=(
        "Qwen2.5-Math-7B, mean of 7 sets: 53.87 (GRPO 51.60, entropy bonus 51.10); scores rise, "
        "then fall with the entropy held"
    ),
    traps=(
        "its entropy is -logp of drawn tokens, not the full one; it is 0 at first, so the first "
        "step heats; near the target the temperature flips every step; 60 rows are meant for a "
        "batch of 2560; top_p 0.99 is not corrected for"
    ),
)
