"""SUPO: an agent whose context is replaced by its own summaries, trained by one reward.

Lu et al. 2025, "Scaling LLM Multi-turn RL with End-to-end Summarization-based Context Management",
https://arxiv.org/abs/2510.06727

    a segment of L tokens that does not end is summed up; the next one begins with the summary
    A    = (R - mean) / (std + 1e-6) over the answers to a prompt, std with n - 1, of all segments
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n over segments of finished answers

A reconstruction: clip, aggregation, L (half a row) and S = 2 summaries are ours. An answer that was
cut, or used up its turns or summaries, is out of the loss and counts in its group's statistics.
Each segment is trained in its own context; the instruction, the copied summary and what tools say
are not learned from. With `tools` an answer is written in turns, as theirs are: after each turn it
is seen whether a segment is beyond L, and the tools go on from one segment to the next.
"""

from collections.abc import Sequence

from rlvr_jax.experience import experience, summaries, summarized_turns
from rlvr_jax.objectives import drop_truncated, objective, ppo_clip, token_mean, trace_normalized
from rlvr_jax.tools import named_toolbox
from rlvr_jax.types import Method, Recipe


def supo(
    most: int = 2,
    instruction: str = " Summarise. ",
    context: int | None = None,
    summary: int | None = None,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
    epsilon: float = 1e-6,
    tools: Sequence[str] | None = (),
    style: str = "json",
    max_turns: int = 8,
    reply_tokens: int = 512,
    describe: bool = True,
) -> Recipe:
    """A clipped ratio on the segments of answers, between which the policy sums up.

    Args:
      most: summaries of an answer at most (S).
      instruction: text that asks for one.
      context: tokens of a segment before it (L); None: half the run's response_tokens.
      summary: tokens of a summary at most; None: a quarter of them.
      clip_low, clip_high: half-widths of the trust region (ε_low, ε_high).
      epsilon: added to the standard deviation of the rewards of a prompt's answers.
      tools: that may be called, by name (`named_toolbox`); none: a segment is one text; None: the
        task has an environment.
      style: how calls are written: "json", "tags" or "fenced".
      max_turns: replies of an answer at most, in all its segments together.
      reply_tokens: of a reply at most.
      describe: a system message says what tools there are; it needs a chat template.
    """
    lengths = (most, instruction, context, summary)
    draw = summaries(*lengths)
    if tools is None or len(tools):
        world = named_toolbox(tools, style, max_turns, describe)
        draw = summarized_turns(world, max_turns, reply_tokens, *lengths)
    return Recipe(
        objective=objective(
            advantage=trace_normalized(epsilon),
            transforms=[drop_truncated()],
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        ),
        experience=experience(draw=draw),
    )


METHOD = Method(
    supo,
    "Scaling LLM Multi-turn RL with End-to-end Summarization-based Context Management",
    "https://arxiv.org/abs/2510.06727",
    changes="sampling, advantage, mask",
    evidence="reconstruction",
    reports=(
        "over GRPO: CodeGym 3.2 % and BrowseComp-Plus 14.0 %, with no larger context; more "
        "summaries at test time help further"
    ),
    traps=(
        "answers that end within half the budget are never summed up, and it is GRPO; a mean over "
        "segments would favour answers of many summaries; answers that use up theirs leave the "
        "loss, not the group; without tools an answer is one text, and with them a call that was "
        "not closed when its segment ended is lost"
    ),
)
