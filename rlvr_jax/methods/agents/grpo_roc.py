"""GRPO-RoC: learn from all kinds of failures, but from the cleanest successes alone.

"rStar2-Agent: Agentic Reasoning Technical Report", https://github.com/microsoft/rStar

    1. 2 N responses to each prompt; groups of equal outcomes are dropped
    2. n⁻ = round(wrong · N / 2N) and n⁺ = round(right · N / 2N), half to even, but at least 2 of
       each where there are so many
    3. kept are the n⁺ right ones of lowest penalty, and the first n⁻ wrong ones
    4. GRPO over the N kept: A = (R - mean) / (std + 1e-6), std with n - 1
       loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i, at most -3 A where A < 0

The kept rows are no sample of the policy: the share of right ones is about kept, their quality is
not. With tools the penalty is the share of replies that have the word "error", ½ where nothing was
called, plus that of untidy answer tags (`untidy_tool_use`); in the paper right answers are drawn
with a probability that falls with it, the code takes the lowest. Without tools it is what an answer
missed of the task's rewards beside the outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rlvr_jax.experience import experience
from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.grades import component_rewards
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.choices.groups import uniform
from rlvr_jax.experience.stages.choices.rows import select_rows
from rlvr_jax.methods._tools import named_turns
from rlvr_jax.objectives import group_normalized
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.tasks.base import Task
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon, NonNegativeInt
from rlvr_jax.types.parts import part

Penalty = Callable[[Batch, Task], np.ndarray]
"""(batch, task) -> [B], at least 0: how untidy an answer is."""


def missed_rewards(batch: Batch, task: Task) -> np.ndarray:
    """What each row missed of the task's rewards beside the first, Σ_{k>0} (1 - x_k), [B].

    A reward that does not apply (NaN) is missed.
    """
    rewards = batch.rollouts.component_rewards
    rewards = component_rewards(batch, task) if rewards is None else np.asarray(rewards)
    return np.sum(1 - np.nan_to_num(rewards[:, 1:]), axis=1)


def tag_penalty(texts: Sequence[str], turns: np.ndarray, tag: str = "answer") -> np.ndarray:
    """How untidy the answer tags of responses are, [B]: min((answers - 1) / turns, 1).

    1 where tags are missing or do not pair, and where there is no turn.

    Args:
      texts: of the responses.
      turns: of each response.
      tag: its name.
    """
    opened = np.array([text.count(f"<{tag}>") for text in texts])
    closed = np.array([text.count(f"</{tag}>") for text in texts])
    turns = np.asarray(turns)
    untidy = (opened != closed) | (opened == 0) | (turns == 0)
    return np.where(untidy, 1.0, np.minimum((opened - 1) / np.maximum(turns, 1), 1))


def call_penalty(replies: Sequence[Sequence[str]]) -> np.ndarray:
    """The share of a response's replies in which "error" stands, in capitals or not; ½ where it was
    told nothing, [B].

    Args:
      replies: texts that each response was told.
    """
    failed = [["error" in text.lower() for text in own] for own in replies]
    return np.array([np.mean(own) if own else 0.5 for own in failed])


def untidy_tool_use(batch: Batch, task: Task) -> np.ndarray:
    """`call_penalty` of what each row was told plus `tag_penalty` of what it wrote, [B]."""
    del task
    rollouts, replies, written, turns = batch.rollouts, [], [], []
    for row, length in enumerate(rollouts.length):
        tokens = rollouts.tokens[row, :length]
        turn = np.zeros(length, int) if rollouts.turn is None else rollouts.turn[row, :length]
        # An end that nobody wrote is in no turn.
        own, told = ([n for n in np.unique(turn[turn >= 0]) if n % 2 == odd] for odd in (0, 1))
        parts = [tokens[turn == n].tolist() for n in told] + [tokens[np.isin(turn, own)].tolist()]
        *texts, said = batch.tokenizer.batch_decode(parts, clean_up_tokenization_spaces=False)
        replies.append(texts)
        written.append(said)
        turns.append(len(own))
    return call_penalty(replies) + tag_penalty(written, np.array(turns))


def cleanest_rows(
    right: np.ndarray, penalty: np.ndarray, number: int, least_wrong: int, least_right: int
) -> np.ndarray:
    """Which of n answers are kept, bool [n].

    Wrong ones in the share that they have, rounded half to even, and right ones for the rest; but
    at least so many of each as long as there are. Of the right ones those of lowest penalty, of
    equal ones the earlier; of the wrong ones the first, which of exchangeable answers are a uniform
    choice.

    Args:
      right: bool [n].
      penalty: [n].
      number: to keep, at most n.
      least_wrong, least_right: `number` together at most.
    """
    wrongs, rights = np.flatnonzero(~right), np.flatnonzero(right)
    share = number / len(right)
    num_wrong, num_right = round(len(wrongs) * share), round(len(rights) * share)
    if num_wrong <= (least := min(least_wrong, len(wrongs))):
        num_wrong, num_right = least, number - least
    if num_right <= (least := min(least_right, len(rights))):
        num_wrong = number - least
    order = np.argsort(penalty[rights], kind="stable")
    kept = np.zeros(len(right), bool)
    kept[wrongs[:num_wrong]] = True
    kept[rights[order[: number - num_wrong]]] = True
    return kept


@part
def select_cleanest(
    drawn: int = 2,
    penalty: Penalty = missed_rewards,
    least_wrong: NonNegativeInt = 2,
    least_right: NonNegativeInt = 2,
) -> Stage:
    """Keeps wrong answers as they come and the cleanest right ones, of more that were drawn.

    Groups of equal outcomes, and those with too few verdicts, are dropped: their mask is cleared.

    Args:
      drawn: answers drawn for each that is kept.
      penalty: (batch, task) -> [B]; the right answers of lowest penalty are kept.
      least_wrong, least_right: kept of each where there are so many, see `cleanest_rows`.
    Reads: outcome, and what the penalty reads. Metrics: as `select_rows`.
    Raises:
      ValueError: negative minima; when called, more of them than answers to keep.
    """

    def choose(batch, rows, number, turn):
        if least_wrong + least_right > number:
            raise ValueError(
                f"select_cleanest: least_wrong and least_right must be at most {number} together,"
                f" the rows that are kept, got {least_wrong} and {least_right}"
            )
        rows = rows[batch.decided[rows]]
        outcome = batch.rollouts.outcome[rows]
        if len(rows) < number or uniform(outcome[None])[0]:
            return rows[:0]
        told = penalty(batch.take(rows), turn.setting.task)
        return rows[cleanest_rows(outcome > 0, told, number, least_wrong, least_right)]

    return select_rows(choose, drawn)


def grpo_roc(
    drawn: int = 2,
    penalty: Penalty | None = None,
    least_wrong: int = 2,
    least_right: int = 2,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
    dual: float = 3.0,
    epsilon: Epsilon = 1e-6,
    tools: Sequence[str] | None = (),
    style: str = "json",
    max_turns: int = 8,
    reply_tokens: int = 512,
    describe: bool = True,
) -> Recipe:
    """Clip-higher on the token mean, on half of the responses that were drawn.

    Args:
      drawn: responses drawn for each that is kept.
      penalty: (batch, task) -> [B], how untidy a response is; None: that of tools where there are
        any, else what it missed of the task's rewards.
      least_wrong, least_right: kept of each where there are so many.
      dual: bound of the loss of a negative advantage.
      tools: that may be called, by name (`named_toolbox`); none: a response is one text; None: the
        task has an environment.
      style: how calls are written: "json", "tags" or "fenced".
      max_turns: replies of a response at most.
      reply_tokens: of a reply at most.
      describe: a system message says what tools there are; it needs a chat template.
    """
    draw = named_turns(tools, style, max_turns, reply_tokens, describe)
    penalty = penalty or (untidy_tool_use if draw else missed_rewards)
    stage = select_cleanest(drawn, penalty, least_wrong, least_right)
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            advantage=group_normalized(epsilon),
            dual_clip=dual,
        ),
        experience=experience(draw=draw, stages=[stage]),
    )


METHOD = Method(
    grpo_roc,
    "rStar2-Agent: Agentic Reasoning Technical Report",
    "https://github.com/microsoft/rStar",
    changes="selection, sampling",
    reports="Qwen3-14B base, 510 steps: AIME24 80.6, AIME25 69.8",
    traps=(
        "without tools and rewards beside the outcome all penalties tie, and the first right rows "
        "are kept; a program that prints the word counts as failed; half of what is drawn is "
        "thrown away; the released code fails on odd targets"
    ),
)
