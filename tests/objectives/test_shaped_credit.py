"""Edges and limits of what entropy, confidence and agreement do to advantages."""

import golden_vectors as golden
import jax.numpy as jnp
import pytest
from golden_vectors import assert_agrees

from rlvr_jax.methods import recipe

BATCH, STATS = golden.rollouts("b"), golden.stats("b")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("simko", {"fraction": 0.0, "negative_factor": 1.0}),
        ("ppl_position_shaping", {"perplexity_coefficient": 0.0}),
        ("ucas", {"positive_rate": 0.0, "negative_rate": 0.0, "logit_coefficient": 0.0}),
        ("progrpo", {"shift_coefficient": 0.0, "clip_high": 0.2}),
        ("verl_effective_rank", {"divisor": jnp.inf}),
        ("entropy_dynamics", {"batch_deviations": None}),
    ],
)
def test_with_its_strengths_at_0_a_method_is_the_plain_clip(name, arguments):
    plain = recipe("entropy_bonus", entropy_coefficient=0.0, kl_coefficient=0.0).objective
    found = golden.step(recipe(name, **arguments).objective, STATS, BATCH)
    wanted = golden.step(plain, STATS, BATCH)
    assert_agrees(found.loss, wanted.loss)
    assert_agrees(found.dstats.logp, wanted.dstats.logp)
