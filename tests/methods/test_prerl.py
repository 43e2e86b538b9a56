"""NSR-PreRL: lower the probability of incorrect responses as texts without the prompt."""

import golden_vectors as golden
import jax
import numpy as np

from rlvr_jax.methods import recipe

BATCH, STATS = golden.rollouts("b"), golden.stats("b")


def test_the_gradient_without_prompt_goes_through_its_own_log_probs_alone():
    found = golden.step(recipe("prerl").objective, STATS, BATCH).dstats
    trained = {name for name, slope in found.arrays.items() if np.any(slope)}
    assert trained == {"second_prompt_logp"}
    assert jax.tree.leaves(golden.step(recipe("prerl").objective, STATS, BATCH).state) == []
