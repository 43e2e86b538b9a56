"""Judges that compare by known strengths."""

import numpy as np

from rlvr_jax.experience.rewards import tournaments


def play(players, schedule, judge):
    """The rounds of one group."""
    return tournaments.play([range(players)], schedule, judge)[0]


def by_strength(strength):
    """A judge who always sees the stronger one."""
    return lambda pairs: np.array([[strength[i], strength[j]] for i, j in pairs])


def said(scores):
    """A judge who says what stands in a table; NaN of other pairs."""
    nothing = (np.nan, np.nan)
    return lambda pairs: np.array([scores.get(pair, nothing) for pair in pairs])
