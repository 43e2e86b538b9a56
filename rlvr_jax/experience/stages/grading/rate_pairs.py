"""The policy rates its own answers, two at a time, and learns to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rlvr_jax.experience.batch import Batch, concatenate
from rlvr_jax.experience.heard import Heard, with_heard
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.views import showing
from rlvr_jax.judges import two_numbers
from rlvr_jax.tasks import Grade
from rlvr_jax.types.hyperparameters import Count, Unit
from rlvr_jax.types.parts import part

__all__ = ["ask_to_rate", "rate_pairs", "rating_reward"]

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
    Raises:
      ValueError: no pairs, or a tolerance out of range; when called, answers that leave no room.
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
