"""V_1: one policy writes responses and rates them in pairs, and trains on both in every step.

"V_1: Unifying Generation and Self-Verification for Parallel Reasoners"

    pairs   of the responses of a group, at least one of them correct
    R       = outcome of a response; for two ratings, scaled to [0, 1], the fraction of them that
              are within τ of the outcomes
    A_i     = (R_i - mean) / (std + 1e-6) over the responses to a prompt, or the ratings of a pair
    loss    = mean of PPO clip over the tokens of responses + that over the tokens of ratings

At test time the policy chooses one of N responses by a tournament of 2N rated pairs. First each
response meets two others, then neighbours by μ that have not met.

    μ_i     = Σ_j w_ij [s_i > s_j] / Σ_j w_ij, a tie counts ½;  w_ij = max(0.1, |s_i - s_j| / 9)

    python -m rlvr_jax evaluate --model FOLDER --choose best_of_n --scorer ratings

A reconstruction from the abstract. Ours are the number of pairs, the weights of the two losses, the
mean over the two ratings and the constants of the clip. So is the schedule of the tournament. The
value of τ (`tolerance`) and the least weight are from memory. The reward is sparse, so ratings in
the middle of the scale earn nothing. The base model of `discussed_sums` reads the request.

Reports: code, AIME, HMMT: pass@1 up to 10 % above ratings of single answers; 7 to 9 % at test time.
Traps: Groups without a correct response have no pair. An unreadable rating earns 0. The policy may
favour one place in the prompt, so the order of a pair is random. All-correct groups train only
ratings.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.experience import Actor, Batch, Stage, concatenate, experience, part
from rlvr_jax.experience.choosing import Score
from rlvr_jax.experience.heard import Heard, with_heard
from rlvr_jax.experience.rewards.tournaments import Pairs, Rounds, Scores, play, scored_matches
from rlvr_jax.experience.views import showing
from rlvr_jax.judges.parse import two_numbers
from rlvr_jax.objectives import Transform, clipped_objective, group_sum, masked_count, masked_sum
from rlvr_jax.types import Method, Recipe, Shown, arguments_of, is_correct, replace
from rlvr_jax.types.hyperparameters import Count, Unit
from rlvr_jax.verifiers.grade import Grade

LEAST, MOST = 1, 10  # ends of the scale of ratings

Show = Callable[[str, str, str], str]
"""(text of the prompt, two responses) -> the text of the prompt that requests ratings."""


def request_rating(prompt: str, first: str, second: str) -> str:
    """Asks for two ratings on the last line."""
    return (
        f"{prompt}\n\nFirst answer:\n{first}\n\nSecond answer:\n{second}\n\nRate both answers from"
        f" {LEAST} to {MOST}. End with a line of the two ratings, a comma between them."
    )


@part(by_row=True, counts=True)
def rate_pairs(pairs: Count = 2, tolerance: Unit = 0.2, show: Show = request_rating) -> Stage:
    """Adds rows in which the policy rates two responses of a group.

    Pairs are sampled among those with a correct response, in a random order of the two. Each is
    rated as often as a group has rows. The ratings of a pair are a separate group, with
    `rating_reward` as outcome and reward, 0 where they cannot be read. Rows of responses have the
    cell 0, ratings the cell 1.

    Args:
      show: (prompt, first response, second response) -> the prompt of the rating.
    Samples: a group for each pair. Writes: the ratings of a response into its grade.
    Metrics: rated_pairs (per group), unreadable_ratings (fraction), rating_reward (mean).
    """

    def apply(batch, actor, state, turn):
        random, texts = turn.random(), [response.text for response in batch.responses]
        correct = is_correct(np.asarray(batch.rollouts.outcome))
        requests, compared = [], []
        for rows in batch.groups:
            for first, second in _sampled_pairs(rows[batch.decided[rows]], correct, pairs, random):
                request = batch.requests[first]
                shown = showing(show(request.prompt.text, texts[first], texts[second]))
                requests.append(
                    replace(request, view=shown, samples=turn.setting.samples, given=())
                )
                compared.append((first, second))
        batch = batch.with_rollouts(cell=np.zeros(len(batch), np.int32))
        metrics = {"rated_pairs": len(requests) / len(batch.groups)}
        if not requests:
            return batch, state, metrics
        sampled = actor.draw(requests, turn.key)
        rated, earned = _graded(sampled, correct[np.array(compared)].tolist(), tolerance)
        unread = np.isnan(earned)
        metrics["unreadable_ratings"] = float(unread.mean())
        metrics["rating_reward"] = float(np.where(unread, 0, earned).mean())
        batch = with_heard(concatenate([batch, rated]), _heard(sampled, compared))
        return batch, state, metrics

    views = (showing(show("", "", "")),)
    return Stage(apply, views=views, writes={"cell"}, most=1.0 + pairs)


def _sampled_pairs(rows, correct, pairs, random) -> list[tuple[int, int]]:
    """Some pairs of rows with a correct one, in a random order of the two."""
    known = [
        (int(i), int(j))
        for place, i in enumerate(rows)
        for j in rows[place + 1 :]
        if correct[i] or correct[j]
    ]
    chosen = random.permutation(len(known))[:pairs]
    swapped = random.uniform(size=len(chosen)) < 0.5
    return [known[n][::-1] if swap else known[n] for n, swap in zip(chosen, swapped, strict=True)]


def _graded(sampled: Batch, truths, tolerance: float) -> tuple[Batch, np.ndarray]:
    """Rows of ratings with their grades, and the reward of each, NaN where it cannot be read."""
    earned = np.full(len(sampled), np.nan)
    responses = sampled.responses
    for rows, truth in zip(sampled.groups, truths, strict=True):
        earned[rows] = [rating_reward(responses[row].text, truth, tolerance) for row in rows]
    reward = np.where(np.isnan(earned), 0, earned).astype(sampled.rollouts.reward.dtype)
    cell = np.ones(len(sampled), np.int32)
    rated = sampled.with_rollouts(cell=cell)
    return rated.graded([Grade(value) for value in reward.tolist()]), earned


def rating_reward(words: str, correct: tuple[bool, bool], tolerance: float) -> float:
    """The fraction of the two ratings near the truth; NaN if they cannot be read.

    Ratings are scaled to [0, 1]. The truth is 1 for a correct response and 0 for an incorrect one.
    A rating is near if its distance is within the tolerance.
    """
    read = _ratings(words)
    if read is None:
        return np.nan
    scaled = [(value - LEAST) / (MOST - LEAST) for value in read]
    near = [abs(own - truth) <= tolerance for own, truth in zip(scaled, correct, strict=True)]
    return sum(near) / 2


def _ratings(words: str) -> tuple[float, ...] | None:
    """The two ratings; None if they cannot be read."""
    read = two_numbers(LEAST, MOST)(words)
    return None if read is None or any(value != round(value) for value in read) else tuple(read)


def _heard(sampled: Batch, compared) -> list[Heard]:
    """The ratings of each pair, the first rating of every pair before all second ones."""
    words = [response.text for response in sampled.responses]
    ratings = [
        (place, pair, words[row])
        for pair, rows in zip(compared, sampled.groups, strict=True)
        for place, row in enumerate(rows)
    ]
    ratings.sort(key=lambda rating: rating[0])
    return [Heard(pair, _ratings(text), text) for _, pair, text in ratings]


def by_ratings(actor: Actor, key: jax.Array) -> Score:
    """The win rates of the responses to a prompt in a tournament that a policy rates.

    Args:
      actor: the policy that rates.
      key: random key of its replies.
    """

    def score(batch):
        texts, spent = [response.text for response in batch.responses], []

        def compare(pairs):
            chats = []
            for first, second in pairs:
                text = request_rating(
                    batch.requests[first].prompt.text, texts[first], texts[second]
                )
                chats.append([{"role": "user", "content": text}])
            replies = actor.write(chats, key, [0] * len(chats))
            spent.extend(reply.tokens for reply in replies if reply is not None)
            read = [None if reply is None else _ratings(reply.text) for reply in replies]
            return np.array([(np.nan, np.nan) if own is None else own for own in read])

        found = np.zeros(len(batch))
        rounds = play([rows.tolist() for rows in batch.groups], next_pairs, compare)
        for rows, own in zip(batch.groups, rounds, strict=True):
            found[rows] = win_rates(len(rows), own)
        return found, float(sum(spent))

    return score


def next_pairs(players: int, rounds: Rounds) -> Pairs:
    """A ring, then neighbours by `win_rates` that have not met, until 2N pairs have met."""
    met = [match[:2] for matches in rounds for match in matches]
    if not met:
        return [(k, (k + 1) % players) for k in range(players if players > 2 else 1)]
    left = np.argsort(-win_rates(players, rounds), kind="stable").tolist()
    pairs: Pairs = []
    while left:
        player = left.pop(0)
        new = (p for p in left if (player, p) not in met and (p, player) not in met)
        if (other := next(new, None)) is not None:
            left.remove(other)
            # The better response is shown first in every other pair.
            pairs.append((player, other) if len(pairs) % 2 else (other, player))
    return pairs[: max(0, 2 * players - len(met))]


def win_rates(players: int, rounds: Rounds) -> Scores:
    """μ of each player; 0 without a pair that has a result."""
    won, weights = np.zeros(players), np.zeros(players)
    for first, second, one, two in scored_matches(rounds):
        weight = max(0.1, abs(one - two) / (MOST - LEAST))
        for player, own, other in ((first, one, two), (second, two, one)):
            won[player] += weight * (own > other) + weight * (own == other) / 2
            weights[player] += weight
    return won / np.where(weights > 0, weights, 1)


@part(reads={"cell", "batch_statistics"}, writes={"weight"})
def cells_alike() -> Transform:
    """w'_t = w_t N / N_c: under `token_mean` the loss is the sum of the means of the cells.

    N is the number of tokens of all rows, N_c that of the rows with the same `cell`.
    """

    def apply(signals, context, state):
        count = masked_sum(jnp.ones_like(signals.weight), signals.mask, axis=1)
        own = group_sum(count, context.rollouts.records["cell"])
        whole = masked_count(signals.mask).astype(count.dtype)
        factor = jnp.where(own > 0, whole / jnp.maximum(own, 1), 0)
        return replace(signals, weight=signals.weight * factor[:, None]), state, {}

    return apply


@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon")
def v1_pairwise(pairs: Count = 2, tolerance: Unit = 0.2, **clip: Any) -> Recipe:
    """Applies GRPO to responses and to ratings of pairs of them.

    Args:
      pairs: largest number of rated pairs per group.
      tolerance: largest rewarded distance of a rating from the outcome (τ).
    """
    return Recipe(
        objective=clipped_objective(transforms=[cells_alike()], **clip),
        experience=experience(stages=[rate_pairs(pairs, tolerance)]),
    )


METHOD = Method(
    v1_pairwise,
    changes="reward, sampling",
    evidence="reconstruction",
    shown=Shown("discussed_sums", "experience/rating_reward"),
)
