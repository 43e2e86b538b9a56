"""SSP: the policy makes up questions to given answers, and earns by how rarely it answers them.

"Search Self-play: Pushing the Frontier of Agent Capability without Supervision",
https://github.com/Alibaba-Quark/SSP

    question   to a given answer, which is all that is shown and which it must not name; else the
               penalty
    s          = share of right answers of n attempts
    proposer   R = 1 - s, or 4 s (1 - s);  A = (R - mean) / √(var + 1e-8) over proposers' tokens
    solver     GRPO in the group of a question, with 0.01 k3(π ‖ π_ref)
    loss       = PPO's clip-higher on the token mean, both roles in one update, each with its own
                 statistics

With 1 - s a question that nobody can answer is the best one; only its check stands against that.
Questions that are solved at most half of the time replace invalid ones for some steps. With
`max_turns` both roles write in turns with the tools of the task, as those of `lookup`, and a
question is valid that took two different searches; without, in one. The judge that answers from
what was found, noise passages, and whether anything was found are left out.
"""

from rlvr_jax.experience import experience, pose_questions, turns
from rlvr_jax.experience.stages.problems.written import WRITE
from rlvr_jax.objectives import (
    advantage_by_cell,
    group_normalized,
    kl_penalty,
    objective,
    plain_reward,
    ppo_clip,
    scale_of_cell,
    token_mean,
    whitened,
)
from rlvr_jax.types import Method, Recipe


def ssp(
    penalty: float = -1.0,
    intermediate: bool = False,
    reuse_below: float = 0.5,
    capacity: int = 256,
    clear_every: int = 5,
    least_characters: int = 10,
    most_characters: int = 1000,
    least_words: int = 10,
    max_turns: int = 0,
    reply_tokens: int = 512,
    kl_coefficient: float = 0.01,
    clip_low: float = 0.2,
    clip_high: float = 0.285,
    epsilon: float = 1e-6,
) -> Recipe:
    """REINFORCE++ of who asks and GRPO of who answers, on the same weights.

    Args:
      penalty: reward of what is no question.
      intermediate: who asks earns most for questions that are answered half of the time.
      reuse_below: rate up to which a question is stored.
      capacity: questions that are stored.
      clear_every: steps after which they are forgotten.
      least_characters, most_characters, least_words: of a question.
      max_turns: of an answer with the task's tools, and of a question; 0: nobody searches.
      reply_tokens: of what is found, at most.
      kl_coefficient: weight of the KL of who answers (β).
      clip_low, clip_high: half-widths of the trust region.
      epsilon: added to the standard deviation of a group's rewards.
    """
    asked = whitened(plain_reward(), ddof=1, epsilon=1e-8, floor=0.0)
    scale = scale_of_cell({WRITE: 0.0})
    kl = [kl_penalty(kl_coefficient, weight=scale, reads={"cell"})] if kl_coefficient else []
    stage = pose_questions(
        penalty,
        reuse_below,
        capacity,
        clear_every,
        intermediate,
        (least_characters, most_characters),
        least_words,
        searched=max_turns > 0,
    )
    draw = turns(None, limit=max_turns, reply_tokens=reply_tokens) if max_turns else None
    return Recipe(
        objective=objective(
            advantage=advantage_by_cell({WRITE: asked}, other=group_normalized(epsilon)),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            regularizers=kl,
            aggregation=token_mean(),
        ),
        experience=experience(draw=draw, stages=[stage]),
    )


METHOD = Method(
    ssp,
    "Search Self-play: Pushing the Frontier of Agent Capability without Supervision",
    "https://github.com/Alibaba-Quark/SSP",
    changes="advantage, sampling, reward",
    left_out="the judge that answers from what was found, and whether anything was",
    reports=(
        "search agents: gains on several question sets, from scratch and on trained agents (no "
        "number)"
    ),
    traps=(
        "with 1 - s what nobody can answer pays best, and here no judge stands against it; "
        "aliases of the answer pass the test for leaks; config and script differ (penalty -1 or "
        "0, reuse at 0.5 or 1)"
    ),
)
