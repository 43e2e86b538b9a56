"""Draws at a temperature."""

import pytest

from rlvr_jax.experience import plain


def test_without_a_temperature_nothing_can_be_scored_as_it_was_drawn():
    with pytest.raises(ValueError, match="plain: scored_as_sampled must be False without"):
        plain(scored_as_sampled=True)
