"""SKILL0: skills in the prompt at first, fewer from phase to phase, and none in the end.

"SKILL0: In-Context Agentic Reinforcement Learning for Skill Internalization",
https://github.com/ZJU-REAL/SkillZero

    phases   at most 6, 3, 0 skills, a third of the run each
    every 10 steps  Δ_k = success with the shown skills - success without any, on prompts of kind k
    next     the general skill, then those with Δ_k ≥ 0 by falling Δ_k, up to the phase's number
    R        = success - 0.1 · invalid actions, of answers in turns
    loss     = PPO's clip on the token mean, A of the group; no KL

Rows are learned from under the prompt that they were drawn from: ratios are exact. The last phase
has the prompts of deployment. With Δ ≥ 0 noise keeps a useless skill every second time; a skill
that was taken away keeps the Δ of when it was last shown, where the authors' code would measure
noise. `skills` are texts as name=text with | between them, the first one general; the others are
judged by the prompts of the kind of their name, and shown to all. With `max_turns` answers are
episodes with the task's environment; an action is invalid if it is malformed or its tool refuses
it (`invalid`). Their bonus is for contexts that are shorter as images than as text, every 8th step
(`skill_reward`): contexts are text here, whose compression is 1 and whose bonus is 0.
"""

from collections.abc import Sequence

from rlvr_jax.experience import experience, shape, shuffled_epochs, turns, withdraw_skills
from rlvr_jax.objectives import (
    group_normalized,
    objective,
    outcome_and_turns,
    ppo_clip,
    token_mean,
)
from rlvr_jax.objectives.arguments import check_at_least
from rlvr_jax.types import Method, Recipe


def skill0(
    skills: str = "general=Work step by step, and check what you have found.",
    sets: Sequence[int] = (6, 3, 0),
    every: int = 10,
    rated: int = 32,
    rating_samples: int = 4,
    max_turns: int = 0,
    reply_tokens: int = 512,
    invalid: Sequence[str] = ("malformed_calls", "tool_errors"),
    invalid_cost: float = 0.1,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    epsilon: float = 1e-6,
) -> Recipe:
    """GRPO on prompts with skills that are withdrawn.

    Args:
      skills: name=text, with | between them; the first one is general.
      sets: skills that each phase may show.
      every: steps between two ratings.
      rated: prompts of a rating.
      rating_samples: answers to each, with and without skills.
      max_turns: of an answer with the task's environment; 0: answers are one text.
      reply_tokens: of the environment's reply, at most.
      invalid: what the environment counts as an invalid action (`Reply.info`).
      invalid_cost: of each, taken off the reward.
      clip_low, clip_high: half-widths of the trust region (ε).
      epsilon: added to the standard deviation of a group's rewards.
    Raises:
      ValueError: a skill without a name; a cost below 0.
    """
    table = {}
    for line in skills.split("|"):
        name, there, text = line.partition("=")
        if not there or not name.strip():
            raise ValueError(f"skill0: skills must be name=text with | between them, got {line!r}")
        table[name.strip()] = text.strip()
    check_at_least(0, "skill0", invalid_cost=invalid_cost)
    costs = dict.fromkeys(invalid, invalid_cost)
    draw = turns(None, max_turns, reply_tokens, costs) if max_turns else None
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        ),
        experience=experience(
            [shuffled_epochs(), withdraw_skills(table, sets, every, rated, rating_samples)],
            draw=draw,
            stages=[shape(outcome_and_turns())] if max_turns else [],
        ),
    )


METHOD = Method(
    skill0,
    "SKILL0: In-Context Agentic Reinforcement Learning for Skill Internalization",
    "https://github.com/ZJU-REAL/SkillZero",
    changes="curriculum, guidance, sampling, reward",
    left_out="contexts that are drawn as images, and their bonus",
    reports=(
        "over RL without skills: ALFWorld 9.7 and Search-QA 6.6 points, with under 0.5k tokens of "
        "context a step"
    ),
    traps=(
        "a rating of 32 prompts is noisy at 0.1, so useless skills stay half of the time; the "
        "general skill is never judged; a skill whose name is no kind of the task is never rated "
        "and stays; the code rates dropped skills by noise"
    ),
)
