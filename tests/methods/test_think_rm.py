"""Think-RM: a judge compares responses by strength, and the differences are advantages."""

import numpy as np
from comparisons import by_strength, play, said

from rlvr_jax.experience import round_robin
from rlvr_jax.methods.judges.think_rm import difference_advantage, difference_table

ROUNDED = 1e-6  # the examples have six digits


def test_the_strengths_of_the_worked_example():
    rounds = play(3, round_robin, said({(0, 1): (2, 0), (0, 2): (-1, 0), (1, 2): (3, 0)}))
    table = difference_table(3, rounds)
    np.testing.assert_array_equal(table, [[0, 2, -1], [-2, 0, 3], [1, -3, 0]])
    np.testing.assert_allclose(
        difference_advantage(table), [0.218218, 0.218218, -0.436435], atol=ROUNDED
    )
    unreadable = difference_table(3, play(3, round_robin, said({})))
    np.testing.assert_array_equal(difference_advantage(unreadable), 0)


def test_differences_of_rewards_are_their_normalized_advantage():
    reward = np.random.default_rng(0).normal(size=5)
    table = difference_table(5, play(5, round_robin, by_strength(reward)))
    wanted = (reward - reward.mean()) / np.sqrt(reward.var(ddof=1) + 1e-6)
    np.testing.assert_allclose(difference_advantage(table), wanted, rtol=1e-12)  # float64
