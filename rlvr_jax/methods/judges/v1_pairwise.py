"""V_1: one policy writes answers and rates them in pairs, and learns both in every step.

"V_1: Unifying Generation and Self-Verification for Parallel Reasoners"

    pairs   of the answers of a group, at least one of them right
    R       = outcome of an answer; of a rating of two answers the share of the ratings, scaled to
              [0, 1], that are within τ of the outcomes
    A_i     = (R_i - mean) / (std + 1e-6), over the answers to a prompt, over the ratings of a pair
    loss    = mean of PPO clip over the tokens of answers + the same over those of ratings

A reconstruction from the abstract. Pairs of a group, weights of the two losses, the mean over the
two ratings and the constants of the clip are ours; τ is recollected. The reward is sparse, so that
rating everything in the middle earns nothing. At test time a tournament of ratings chooses
(`play` with `swiss`, `win_rates`).
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from rlvr_jax.experience import experience
from rlvr_jax.experience.batch import Batch, concatenate
from rlvr_jax.experience.heard import Heard, with_heard
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.views import showing
from rlvr_jax.judges.parse import two_numbers
from rlvr_jax.objectives import group_normalized
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.statistics.groups import group_sum
from rlvr_jax.objectives.statistics.masked import masked_count, masked_sum
from rlvr_jax.tasks.base import Grade
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Count, Epsilon, Unit
from rlvr_jax.types.parts import part

RIGHT = 0.5
"""An outcome above this counts as right."""


LEAST, MOST = 1, 10


Show = Callable[[str, str, str], str]
"""(text of the prompt, two answers) -> what the policy is shown."""


def ask_to_rate(prompt: str, first: str, second: str) -> str:
    """Asks for two ratings on the last line."""
    return (
        f"{prompt}\n\nFirst answer:\n{first}\n\nSecond answer:\n{second}\n\nRate both answers from"
        f" {LEAST} to {MOST}. End with a line of the two ratings, a comma between them."
    )


def rating_reward(words: str, right: tuple[bool, bool], tolerance: float) -> float | None:
    """The share of the two ratings that are near the truth; None if they cannot be read.

    A rating from 1 to 10, scaled to [0, 1], is near if it is within the tolerance of 1 for a right
    answer and of 0 for a wrong one.
    """
    read = _ratings(words)
    if read is None:
        return None
    scaled = [(value - LEAST) / (MOST - LEAST) for value in read]
    near = [abs(own - truth) <= tolerance for own, truth in zip(scaled, right, strict=True)]
    return sum(near) / 2


def _ratings(words: str) -> tuple[float, ...] | None:
    """The two ratings; None if they cannot be read."""
    read = two_numbers(LEAST, MOST)(words)
    return None if read is None or any(value != round(value) for value in read) else tuple(read)


@part(by_row=True, counts=True)
def rate_pairs(pairs: Count = 2, tolerance: Unit = 0.2, show: Show = ask_to_rate) -> Stage:
    """Adds rows in which the policy rates two answers of a group.

    Pairs are drawn among those with a right answer, in a random order of the two; each is rated as
    often as a group has rows, and these are a group of their own, whose outcome and reward is the
    share of the ratings that are near the truth (`rating_reward`), 0 where they cannot be read.
    Rows of answers have the cell 0, ratings the cell 1.

    Args:
      pairs: of a group at most.
      tolerance: of a rating, in [0, 1].
      show: (prompt, first answer, second answer) -> what the policy is shown.
    Reads: outcome, the texts of answers. Draws: a group for each pair. Writes: cell; what was
      said of each answer into its grade.
    Metrics: rated_pairs (per group), unreadable_ratings (share), rating_reward (mean).
    Source: V_1; the mean of the two ratings is ours.
    """

    def apply(batch, actor, state, turn):
        random, texts = turn.random(), [response.text for response in batch.responses]
        right = np.asarray(batch.rollouts.outcome) > RIGHT
        asks, met, truths = [], [], []
        for rows in batch.groups:
            for first, second in _drawn(rows[batch.decided[rows]], right, pairs, random):
                shown = show(batch.asks[first].prompt.text, texts[first], texts[second])
                ask = batch.asks[first]
                asks.append(
                    replace(ask, view=showing(shown), samples=turn.setting.samples, given=())
                )
                met.append((first, second))
                truths.append((bool(right[first]), bool(right[second])))
        batch = batch.with_rollouts(cell=np.zeros(len(batch), np.int32))
        told = {"rated_pairs": len(asks) / len(batch.groups)}
        if not asks:
            return batch, state, told
        drawn = actor.draw(asks, turn.key)
        rated, earned = _graded(drawn, truths, tolerance)
        unread = np.isnan(earned)
        told["unreadable_ratings"] = float(unread.mean())
        told["rating_reward"] = float(np.where(unread, 0, earned).mean())
        return with_heard(concatenate([batch, rated]), _heard(drawn, met)), state, told

    views = (showing(show("", "", "")),)
    return Stage(apply, views=views, writes={"cell"}, most=1.0 + pairs)


def _drawn(rows, right, pairs, random) -> list[tuple[int, int]]:
    """Some pairs of rows, not both of them wrong, in a random order of the two."""
    known = [
        (int(i), int(j))
        for place, i in enumerate(rows)
        for j in rows[place + 1 :]
        if right[i] or right[j]
    ]
    chosen = random.permutation(len(known))[:pairs]
    swapped = random.uniform(size=len(chosen)) < 0.5
    return [known[n][::-1] if swap else known[n] for n, swap in zip(chosen, swapped, strict=True)]


def _heard(drawn: Batch, met) -> list[Heard]:
    """What each pair was rated, the first rating of every pair before all second ones."""
    words = [response.text for response in drawn.responses]
    ratings = [
        (place, pair, words[row])
        for pair, rows in zip(met, drawn.groups, strict=True)
        for place, row in enumerate(rows)
    ]
    ratings.sort(key=lambda rating: rating[0])
    return [Heard(pair, _ratings(said), said) for _, pair, said in ratings]


def _graded(drawn: Batch, truths, tolerance: float) -> tuple[Batch, np.ndarray]:
    """Rows of ratings with their grades, and what each earned, NaN where it cannot be read."""
    earned = np.full(len(drawn), np.nan)
    responses = drawn.responses
    for rows, truth in zip(drawn.groups, truths, strict=True):
        for row in rows:
            found = rating_reward(responses[row].text, truth, tolerance)
            earned[row] = np.nan if found is None else found
    reward = np.where(np.isnan(earned), 0, earned).astype(drawn.rollouts.reward.dtype)
    rated = drawn.with_rollouts(outcome=reward, reward=reward, cell=np.ones(len(drawn), np.int32))
    return replace(rated, grades=[Grade(value) for value in reward.tolist()]), earned


def rating_rewards(
    ratings: Float[np.ndarray, "N N"],
    right: Bool[np.ndarray, "N"],
    tolerance: float,
    least: float = 1.0,
    most: float = 10.0,
) -> tuple[Float[np.ndarray, "N N"], Bool[np.ndarray, "N N"]]:
    """1 for a rating near the outcome of what is rated, else 0; and which pairs are used at all.

    Pairs of two wrong answers are not, nor is a rating of an answer beside itself.

    Args:
      ratings: of i beside j, in [least, most]; NaN: unreadable, worth 0.
      right: of the answers.
      tolerance: distance of the rating, scaled to [0, 1], from the outcome.
      least, most: ends of the scale.
    Source: V_1.
    """
    used = (right[:, None] | right[None]) & ~np.eye(len(right), dtype=bool)
    distance = np.abs((ratings - least) / (most - least) - right[:, None])
    return np.where(used & (distance <= tolerance), 1.0, 0.0), used


@part(reads={"cell", "batch_statistics"}, writes={"weight"})
def cells_alike() -> Transform:
    """w'_t = w_t N / N_c: under `token_mean` the loss is the sum of the means of the cells.

    N is the number of tokens of all rows, N_c that of the rows with the same `cell`. A row without
    tokens counts nothing.
    """

    def apply(signals, context, state):
        count = masked_sum(jnp.ones_like(signals.weight), signals.mask, axis=1)
        own = group_sum(count, context.rollouts.cell)
        whole = masked_count(signals.mask).astype(count.dtype)
        factor = jnp.where(own > 0, whole / jnp.maximum(own, 1), 0)
        return replace(signals, weight=signals.weight * factor[:, None]), state, {}

    return apply


def v1_pairwise(
    pairs: int = 2,
    tolerance: float = 0.2,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO for answers and for ratings of pairs of them.

    Args:
      pairs: of a group that are rated.
      tolerance: of a rating (τ).
    """
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            advantage=group_normalized(epsilon),
            transforms=[cells_alike()],
        ),
        experience=experience(stages=[rate_pairs(pairs, tolerance)]),
    )


METHOD = Method(
    v1_pairwise,
    "V_1: Unifying Generation and Self-Verification for Parallel Reasoners",
    "",
    changes="reward, sampling",
    evidence="reconstruction",
    left_out="the tournament at test time",
    reports=(
        "code, AIME, HMMT: up to 10 % of pass@1 over rating answers singly; 7 to 9 % more at test "
        "time than RL"
    ),
    traps=(
        "all-wrong groups give no pair; a rating that cannot be read earns 0; a place in the "
        "prompt may be favoured, so the order of a pair is random; all-right groups train ratings "
        "alone"
    ),
)
