"""Soft thinking: what was fed is what is scored, and where it ends tokens are sampled as ever."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rlvr_jax import policy
from rlvr_jax.objectives import GumbelNoise, soft_token_logp
from rlvr_jax.rollout import Prompts, Sampling, SoftThinking, sample
from rlvr_jax.training.statistics import statistics

FLOAT32 = 1e-5  # log-probs and densities of a float32 sampler and scorer, of some nats
STOP, END, VOCABULARY = 3, 5, 11


@pytest.fixture(scope="module")
def model():
    config = policy.named_config("tiny", VOCABULARY, max_positions=32)
    made = policy.Model(config)
    return made, jax.jit(made.init)(jax.random.key(2))


def sampled(model, how, samples=16, **sampling):
    prompts = jnp.array([[1, 2, 4], [6, 7, 0]], jnp.int32)
    return sample(
        *model,
        Prompts(prompts, jnp.array([3, 2]), jnp.arange(2), jnp.zeros(2, jnp.int32)),
        jax.random.key(0),
        samples=samples,
        response_tokens=8,
        sampling=Sampling(soft=how, **sampling),
        stop_tokens=(STOP,),
    )


@partial(jax.jit, static_argnums=0)
def measured(own, params, rollouts):
    return statistics(own, params, rollouts, {"logp", "candidate_logp", "entropy"})


def scored(model, rollouts):
    return measured(*model, rollouts)


@pytest.mark.thorough
def test_mixtures_are_scored_in_the_context_they_were_fed_in(model):
    how = SoftThinking((END,), candidates=4)
    rollouts = sampled(model, how, temperature=0.8)
    stats = scored(model, rollouts)
    soft, mask = np.asarray(rollouts.records["soft"]), np.asarray(rollouts.mask)
    assert soft.sum() > 50 and (mask & ~soft).sum() > 20 and not soft[~mask].any()
    density = soft_token_logp(
        stats.records["candidate_logp"], rollouts.records["candidate_noisy_logp"], how.noise
    )
    found = np.where(soft, density, stats.logp)
    assert_allclose(np.asarray(rollouts.behaviour_logp)[mask], found[mask], atol=FLOAT32)
    assert_allclose(np.asarray(rollouts.entropy)[mask], stats.entropy[mask], atol=FLOAT32)


@pytest.mark.thorough
def test_without_the_mixtures_the_scores_are_others(model):
    rollouts = sampled(model, SoftThinking((END,), candidates=4))
    hard = rollouts.replace(soft=jnp.zeros_like(rollouts.records["soft"]))
    one, other = scored(model, rollouts).logp, scored(model, hard).logp
    assert np.abs(one - other).max() > 1e-3


def test_candidates_stand_by_weight_and_the_token_is_the_first(model):
    rollouts = jax.tree.map(np.asarray, sampled(model, SoftThinking((END,), candidates=4)))
    soft = rollouts.records["soft"]
    weight = rollouts.records["candidate_weight"][soft]
    assert np.all(np.diff(weight, axis=-1) <= 0)
    assert_allclose(weight.sum(axis=-1), 1, rtol=1e-6)
    assert_array_equal(rollouts.records["candidate_ids"][soft][:, 0], rollouts.tokens[soft])
    assert not rollouts.records["candidate_weight"][~soft].any()


def test_thinking_ends_with_its_token_and_with_the_response(model):
    rollouts = jax.tree.map(np.asarray, sampled(model, SoftThinking((END,), candidates=4)))
    ends = np.isin(rollouts.tokens, (END, STOP)) & rollouts.mask
    before = np.cumsum(ends, axis=1) == 0
    assert_array_equal(rollouts.records["soft"], before & rollouts.mask)
    assert ends.any()


@pytest.mark.thorough
def test_one_candidate_is_greedy_sampling(model):
    """A mixture of one token is that token, and its noise says nothing."""
    soft = sampled(model, SoftThinking(candidates=1), samples=2)
    greedy = sampled(model, None, samples=2, top_k=1)
    assert_array_equal(soft.tokens, greedy.tokens)
    assert_array_equal(soft.length, greedy.length)
    assert_allclose(soft.entropy, greedy.entropy, atol=FLOAT32)


@pytest.mark.slow  # ten seconds
def test_the_gradient_goes_through_candidates_and_inputs(model):
    rollouts = sampled(model, SoftThinking(candidates=4), samples=2)

    def total(params):
        stats = statistics(model[0], params, rollouts, {"candidate_logp"})
        assert "logsumexp" not in stats.records and "hidden" not in stats.records
        own = soft_token_logp(
            stats.records["candidate_logp"], rollouts.records["candidate_noisy_logp"], GumbelNoise()
        )
        return jnp.sum(jnp.where(rollouts.records["soft"], own, 0))

    step, leaves = 1e-3, jax.tree.map(lambda x: x.astype(float), model[1])
    slope = jax.grad(total)(leaves)
    direction = jax.tree.map(lambda x: jax.random.normal(jax.random.key(1), x.shape), slope)
    ahead, back = (
        total(jax.tree.map(lambda p, d, size=size: p + size * d, leaves, direction))
        for size in (step, -step)
    )
    products = jax.tree.map(lambda x, d: jnp.sum(x * d), slope, direction)
    # A difference quotient through a model that computes in float32.
    along = float(sum(jax.tree.leaves(products)))
    assert (ahead - back) / (2 * step) == pytest.approx(along, rel=0.02)
    assert jax.tree.all(jax.tree.map(lambda x: bool(jnp.any(x != 0)), slope["embedding"]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"candidates": 0}, "SoftThinking: candidates must be at least 1, got 0"),
        ({"top_p": 0}, r"SoftThinking: top_p must be in \(0, 1\], got 0"),
        ({"temperature": 0}, "SoftThinking: temperature must be positive, got 0"),
    ],
)
def test_what_cannot_be_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        SoftThinking(**settings)
