"""Edges and limits of what entropy, confidence and agreement do to advantages."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from adapters.common import recipe_of
from golden_vectors import array, assert_agrees

from rlvr_jax.methods import recipe
from rlvr_jax.methods.entropy.dcpo import mixture_weight
from rlvr_jax.methods.entropy.hapo import entropy_score, token_normalized
from rlvr_jax.methods.entropy.ppl_position_shaping import relative_position
from rlvr_jax.methods.exploration.progrpo import low_probability_tokens
from rlvr_jax.methods.exploration.seed_grpo import relative_semantic_entropy
from rlvr_jax.objectives import reinforce, semantic_entropy
from rlvr_jax.types import replace

BATCH, STATS = golden.rollouts("b"), golden.stats("b")


def test_semantic_entropy_is_0_for_one_answer_and_largest_for_equally_likely_ones():
    group = array([0, 0, 0, 1, 1, 1, 2], np.int32)
    answer = array([4, 4, 4, 0, 1, 2, 9], np.int32)
    loglik = array([-1.0, -2.0, -0.3, -0.5, -0.5, -0.5, -3.0], float)
    found = semantic_entropy(loglik, answer, group)
    np.testing.assert_allclose(found, [0, 0, 0, *3 * [np.log(3)], 0], rtol=1e-15)
    share = relative_semantic_entropy(loglik, answer, group)
    np.testing.assert_allclose(share, [0, 0, 0, 1, 1, 1, 0], rtol=1e-15)


def test_low_probability_tokens_are_at_least_one_and_the_earlier_of_equals():
    logp = array([[-1, -3, -3, -2, 0], [-1, -1, -1, -1, -1], [0, 0, 0, 0, 0]], float)
    mask = array([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]], bool)
    chosen = low_probability_tokens(logp, mask, 0.2)
    np.testing.assert_array_equal(chosen, [[0, 1, 0, 0, 0], [1, 0, 0, 0, 0], [0] * 5])
    np.testing.assert_array_equal(low_probability_tokens(logp, mask, 0.4).sum(axis=1), [2, 2, 0])


def test_relative_position_counts_the_tokens_on_the_mask():
    mask = array([[0, 1, 0, 1], [0, 0, 0, 0]], bool)
    np.testing.assert_array_equal(relative_position(mask, float), [[0, 0.5, 0, 1], [0] * 4])


def test_entropy_scores_of_equal_entropies_are_0():
    assert not entropy_score(jnp.full_like(BATCH.entropy, 0.3), BATCH.mask, BATCH, 0.8).any()


def test_a_lonely_reward_against_many_tokens_falls_back_to_the_rollouts():
    mask = array(np.arange(9)[None] < np.array([9] * 11 + [0])[:, None], bool)
    mask = mask.at[11, 0].set(True)
    reward = jnp.zeros(12).at[11].set(1.0)
    batch = replace(BATCH, mask=mask, reward=reward, group=jnp.zeros_like(BATCH.group))

    def normalized(limit):
        own = recipe_of(token_normalized(limit), reinforce()).objective
        done = golden.step(own, STATS, batch)
        return done.metrics["fell_back_fraction"], done.signals.advantage[11, 0]

    fell_back, advantage = normalized(limit=5.0)
    assert fell_back == 1
    np.testing.assert_allclose(advantage, (11 / 12) / (np.sqrt(1 / 12) + 1e-6))
    assert normalized(limit=50.0)[0] == 0


def test_without_a_good_rollout_nothing_is_mixed_in():
    four = jnp.ones(4, bool)
    none = mixture_weight(jnp.asarray(0.0), 0.5, jnp.zeros(4, bool), four, 0.1)
    assert none == 0
    half = mixture_weight(jnp.asarray(0.0), 0.5, jnp.arange(4) < 2, four, 0.1)
    np.testing.assert_allclose(half, 0.2 / 1.2)


def test_the_entropy_estimate_follows_the_batch_and_stays_without_tokens():
    own = recipe("dcpo").objective
    first = golden.step(own, STATS, BATCH)
    assert_agrees(first.state["mix_in_tempered_policy"].entropy, -BATCH.old_logp[BATCH.mask].mean())
    empty = replace(BATCH, mask=jnp.zeros_like(BATCH.mask))
    after = golden.step(own, STATS, empty, state=first.state)
    assert after.state == first.state


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("simko", {"share": 0.0, "negative_factor": 1.0}),
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


def test_the_gradient_without_prompt_goes_through_its_own_log_probs_alone():
    found = golden.step(recipe("prerl").objective, STATS, BATCH).dstats
    trained = {name for name in vars(found) if np.any(getattr(found, name))}
    assert trained == {"second_prompt_logp"}
    assert jax.tree.leaves(golden.step(recipe("prerl").objective, STATS, BATCH).state) == []
