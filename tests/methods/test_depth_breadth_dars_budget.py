"""Extra rollouts, counted in integers."""

import math
from fractions import Fraction

import numpy as np
import pytest

from rlvr_jax.methods.exploration.depth_breadth_dars import extra_rollouts


@pytest.mark.parametrize("size", [1, 2, 3, 6, 8, 60])
def test_counts_agree_with_fractions(size):
    for by_hardness in (False, True):
        found = extra_rollouts(np.arange(size + 1), size, 10**6, by_hardness=by_hardness)
        for right in range(size + 1):
            u = Fraction(right, size) if right else Fraction(1, 2 * size)
            spread = 2 * u * (1 - u)
            wanted = Fraction(size, 2) * (2 * (1 - u) if by_hardness else 1)
            more = 0 if u >= Fraction(1, 2) else math.ceil((wanted - size * spread) / spread)
            assert found[right] == more


def test_the_limit_counts_all_rollouts():
    assert extra_rollouts(0, 8, 32) == 24
    assert extra_rollouts(0, 8, 8) == 0


def test_a_group_above_the_limit_is_refused():
    with pytest.raises(ValueError, match=r"group_size must be in \[1, max_rollouts 4\], got 8"):
        extra_rollouts(0, 8, 4)
