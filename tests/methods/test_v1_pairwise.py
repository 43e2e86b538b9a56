"""V_1: ratings of pairs are rows beside the answers."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import training_runs

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.parts import Written
from rlvr_jax.experience.rewards.tournaments import Met, play
from rlvr_jax.methods.judges.v1_pairwise import (
    by_ratings,
    cells_alike,
    next_pairs,
    rate_pairs,
    rating_reward,
    win_rates,
)
from rlvr_jax.objectives import Spec, group_centered, objective, reinforce, token_mean
from rlvr_jax.types import Rollouts, TokenStats


@pytest.mark.parametrize(
    ("words", "correct", "reward"),
    [
        ("Better.\n9, 2", (True, False), 1.0),
        ("9, 2", (False, True), 0.0),
        ("10, 9", (True, False), 0.5),
        ("5, 5", (True, True), 0.0),
        ("8, 2", (True, True), 0.0),
        ("9, 10", (True, True), 1.0),
        ("9", (True, False), np.nan),
        ("9.5, 2", (True, False), np.nan),
        ("0, 2", (True, False), np.nan),
        ("9, 2, 1", (True, False), np.nan),
        ("", (True, False), np.nan),
    ],
)
def test_a_rating_is_paid_if_it_is_near_the_truth(words, correct, reward):
    np.testing.assert_equal(rating_reward(words, correct, 0.2), reward)


def test_pairs_have_a_right_answer_and_are_groups_of_their_own():
    chain = experience(stages=[rate_pairs(pairs=2)])
    total = 0
    for collected, _, _ in numpy_actor.walk(chain, steps=4):
        batch = collected.batch
        ratings = np.asarray(batch.rollouts.records["cell"]) == 1
        outcomes = collected.seen[0].outcomes()
        # Two right ones make a pair, and a right one has three others.
        wanted = sum(2 for group in outcomes if np.any(group > 0.5))
        groups = [rows for rows in batch.groups if ratings[rows].any()]
        assert len(groups) == wanted and all(ratings[rows].all() for rows in groups)
        assert all(len(rows) == 4 for rows in groups)
        labels = {batch.requests[rows[0]].view.label for rows in groups}
        assert len(labels) == len(groups)
        total += wanted
        assert collected.metrics["rated_pairs"] == wanted / 4
        texts = [response.text for response in batch.responses]
        said = {text for row in np.flatnonzero(ratings) for text in [texts[row]]}
        for row in np.flatnonzero(~ratings):
            for own in batch.grades[row].compared:
                assert own.words in said and own.response == texts[own.other]
                assert own.other != row
        met = [grade.compared for grade in batch.grades]
        # Of both answers of each of 4 ratings, where words came.
        words = sum(bool(texts[row]) for row in np.flatnonzero(ratings))
        assert sum(map(len, met)) == 2 * words > 0 or not wanted
    assert total > 0


@pytest.mark.slow  # ten seconds
def test_both_roles_are_trained_and_count_as_wholes(tmp_path):
    model = training_runs.write_policy(tmp_path / "policy", max_positions=64)
    config = training_runs.settings(
        model, tmp_path / "run", method="methods_of_tests:rate_plainly", steps=2, response_tokens=3
    )
    training_runs.quietly(config)
    lines = training_runs.metrics(tmp_path / "run")
    assert max(training_runs.values(lines, "experience/rated_pairs")) > 0
    assert max(training_runs.values(lines, "gradient_norm")) > 0
    assert len(training_runs.values(lines, "experience/unreadable_ratings")) > 0
    kept = (tmp_path / "run" / "samples").glob("*")
    rows = [json.loads(line) for path in kept for line in path.read_text().splitlines()]
    said = [own for row in rows for own in row.get("compared", ())]
    assert said and all(own["words"] for own in said)
    assert "judge, " in (tmp_path / "run" / "report.html").read_text()


@pytest.mark.thorough
def test_the_loss_is_the_sum_of_the_means_of_the_cells():
    mask = np.array([[1, 1, 1], [1, 0, 0], [1, 1, 0], [0, 0, 0]], bool)
    cell = np.array([0, 1, 0, 1])
    batch = Rollouts.of_responses(
        np.ones((4, 3), int), mask, np.array([1.0, 0, 0.5, 1]), np.array([0, 1, 0, 1]), cell=cell
    )
    logp = jnp.asarray(np.where(mask, -np.arange(1.0, 13).reshape(4, 3) / 7, 0))
    own = objective(
        group_centered(), [cells_alike()], surrogate=reinforce(), aggregation=token_mean()
    )
    state, key = own.init(Spec(2, 4, 3)), jax.random.key(0)
    loss, _ = own.loss(TokenStats(logp=logp), batch, state, key)
    advantage = own.signals(TokenStats(logp=logp), batch, state, key).advantage
    terms = np.asarray(-advantage * logp)
    wanted = sum(terms[cell == c][mask[cell == c]].mean() for c in (0, 1))
    np.testing.assert_allclose(loss, wanted, rtol=1e-6)


def test_win_rates_weigh_a_pair_by_the_difference_of_its_ratings():
    rounds = [[(0, 1, 8, 4), (0, 2, 6, 6)], [(1, 2, 3, 9), (0, 1, np.nan, np.nan)]]
    found = win_rates(4, [[Met(*match) for match in own] for own in rounds])
    np.testing.assert_allclose(found, [0.908163, 0, 0.934783, 0], atol=1e-6)


@pytest.mark.parametrize("players", [2, 3, 4, 5, 8, 16])
def test_a_tournament_spends_two_pairs_per_player_and_finds_the_best(players):
    ids, met = list(range(10, 10 + players)), []

    def compare(pairs):
        met.extend(frozenset(pair) for pair in pairs)
        return np.array([[1 + 9 * (own - 10) / players for own in pair] for pair in pairs])

    (rounds,) = play([ids], next_pairs, compare)
    assert len(set(met)) == len(met) == min(2 * players, players * (players - 1) // 2)
    assert all(sum(player in pair for pair in met) >= min(2, players - 1) for player in ids)
    assert int(np.argmax(win_rates(players, rounds))) == players - 1


class Rater(numpy_actor.NumpyActor):
    """Rates the first text by its length, and the second one 5."""

    def write(self, chats, key, attempts, sampling=None):
        assert len(chats) == len(attempts)
        texts = [chat[0]["content"].split("\n\n")[1] for chat in chats]
        return [Written(f"{1 + len(text) % 10}, 5", 4) for text in texts]


def test_the_policy_rates_the_pairs_of_a_prompt_and_their_tokens_count():
    chain = experience(stages=[rate_pairs(pairs=1)])
    batch = next(iter(numpy_actor.walk(chain, steps=1)))[0].seen[0]
    score, tokens = by_ratings(Rater(), jax.random.key(0))(batch)
    groups = len(batch.groups)
    # Four responses have six pairs.
    assert tokens == 4 * 6 * groups
    assert score.shape == (len(batch),) and score.min() >= 0 and 0 < score.max() <= 1
