"""The library inside other people's programs, which have their own models and loops."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from everyday import everyday
from other_peoples_models import ROUNDING, ROWS, VOCABULARY, WIDTH, some_rollouts

from rlvr_jax import exact_gradient, methods
from rlvr_jax.experience import all_incorrect, experience, redraw, refill, shuffled_epochs, uniform
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.views import hint
from rlvr_jax.objectives import Spec
from rlvr_jax.types import Rollouts, TokenStats
from rlvr_jax.types.rollouts import kind_and_axes


class Bigrams(nn.Module):
    """Somebody's language model: logits of a token from the one before it."""

    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(VOCABULARY, 8, param_dtype=jnp.float32)(tokens)
        return nn.Dense(VOCABULARY, param_dtype=jnp.float32)(nn.tanh(x))


def statistics(model, params, tokens):
    """What the model says about tokens that follow a 0."""
    before = jnp.pad(tokens, ((0, 0), (1, 0)))[:, :-1]
    logp = jax.nn.log_softmax(model.apply(params, before))
    return TokenStats(
        logp=jnp.take_along_axis(logp, tokens[..., None], axis=-1)[..., 0],
        entropy=-jnp.sum(jnp.exp(logp) * logp, axis=-1),
    )


def draw(model, params, key):
    """Responses to one prompt, [ROWS, WIDTH]."""
    last, sampled = jnp.zeros((ROWS,), jnp.int32), []
    for number in range(WIDTH):
        logits = model.apply(params, last)
        last = jax.random.categorical(jax.random.fold_in(key, number), logits).astype(jnp.int32)
        sampled.append(last)
    return jnp.stack(sampled, axis=1)


@pytest.mark.thorough
def test_a_loop_of_flax_and_optax_learns_with_an_objective():
    model, optimizer = Bigrams(), optax.adam(0.05)
    params = model.init(jax.random.key(0), jnp.zeros((1, 1), jnp.int32))
    own = methods.recipe("forking_tokens", fraction=0.9).objective
    method_state, optimizer_state = own.init(Spec(1, ROWS, WIDTH)), optimizer.init(params)

    @jax.jit
    def step(params, optimizer_state, method_state, key):
        tokens = draw(model, params, key)
        reward = jnp.mean((tokens == 3).astype(jnp.float32), axis=1)
        batch = Rollouts.of_responses(
            tokens, jnp.ones(tokens.shape, bool), reward, jnp.zeros((ROWS,), jnp.int32)
        )

        def loss(params):
            return own.loss(statistics(model, params, tokens), batch, method_state, key)

        gradient, (method_state, _) = jax.grad(loss, has_aux=True)(params)
        with jax.numpy_dtype_promotion("standard"):
            changes, optimizer_state = optimizer.update(gradient, optimizer_state)
        return optax.apply_updates(params, changes), optimizer_state, method_state, reward.mean()

    rewards = []
    for number in range(60):
        key = jax.random.fold_in(jax.random.key(1), number)
        params, optimizer_state, method_state, reward = step(
            params, optimizer_state, method_state, key
        )
        rewards.append(float(reward))
    assert np.mean(rewards[:5]) < 0.35 and np.mean(rewards[-5:]) > 0.8


def of_flax():
    """A score function around somebody's module, and its weights in float64."""
    model = Bigrams()
    params = model.init(jax.random.key(0), jnp.zeros((1, 1), jnp.int32))
    params = jax.tree.map(lambda x: x.astype(jnp.float64), params)

    def score(params, rows):
        with jax.numpy_dtype_promotion("standard"):
            return statistics(model, params, rows.tokens)

    return score, params


def of_plain_jax():
    """The same without a library: a table of logits by the token before."""
    table = jax.random.normal(jax.random.key(2), (VOCABULARY, VOCABULARY), jnp.float64)

    def score(table, rows):
        before = jnp.pad(rows.tokens, ((0, 0), (1, 0)))[:, :-1]
        logp = jax.nn.log_softmax(table[before])
        own = jnp.take_along_axis(logp, rows.tokens[..., None], axis=-1)[..., 0]
        return TokenStats(logp=own, entropy=-jnp.sum(jnp.exp(logp) * logp, axis=-1))

    return score, table


@pytest.mark.thorough
@pytest.mark.parametrize(
    "method", everyday(["grpo", "clip_cov", "forking_tokens", "dapo"], "clip_cov")
)
@pytest.mark.parametrize("made", everyday([of_flax, of_plain_jax], of_flax))
def test_the_gradient_of_anybodys_model_is_that_of_the_whole_batch(made, method):
    """Whatever is decided over the batch: quantiles, groups, token counts."""
    score, params = made()
    own = methods.recipe(method, **({"kl_coefficient": 0.0} if method == "grpo" else {})).objective
    rollouts, key = some_rollouts(score, params), jax.random.key(5)
    state = own.init(Spec(4, ROWS, WIDTH))

    def loss(params):
        return own.loss(score(params, rollouts), rollouts, state, key)[0]

    wanted, grads = jax.jit(jax.value_and_grad(loss))(params)
    largest = max(float(jnp.max(jnp.abs(x))) for x in jax.tree.leaves(grads))
    assert largest > 0
    for pieces in (1, 2, 4, 8, 16):
        gradient = jax.jit(exact_gradient, static_argnums=(0, 1), static_argnames="micro_batches")
        found = gradient(
            score, own, params, rollouts, state, key, fresh=False, micro_batches=pieces
        )
        np.testing.assert_allclose(found.loss, wanted, rtol=ROUNDING)
        for one, other in zip(*map(jax.tree.leaves, (found.grads, grads)), strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=ROUNDING * largest)


def test_a_score_that_lacks_what_the_objective_reads_is_refused():
    score, params = of_plain_jax()
    rollouts = some_rollouts(score, params)
    own = methods.recipe("forking_tokens").objective

    def blind(params, rows):
        return TokenStats(logp=score(params, rows).logp)

    arguments = params, rollouts, own.init(Spec(4, ROWS, WIDTH)), jax.random.key(0)
    with pytest.raises(ValueError, match="exact_gradient: score must return entropy, got none"):
        exact_gradient(blind, own, *arguments)
    with pytest.raises(ValueError, match="micro_batches must divide the 16 rows, got 3"):
        exact_gradient(score, own, *arguments, micro_batches=3)
    with pytest.raises(ValueError, match="micro_batches must be at least 1, got 0"):
        exact_gradient(score, own, *arguments, micro_batches=0)
    with pytest.raises(ValueError, match="score must return TokenStats, got ShapeDtypeStruct"):
        exact_gradient(lambda *given: score(*given).logp, own, *arguments)
    with pytest.raises(
        ValueError, match=r"must be an Objective, .* \(recipe.objective\), got Recipe"
    ):
        exact_gradient(score, methods.recipe("forking_tokens"), *arguments)


@pytest.mark.thorough
def test_recorded_log_probs_are_read_and_rollouts_may_be_of_numpy():
    score, params = of_plain_jax()
    rollouts = some_rollouts(score, params)
    own = methods.recipe("dapo").objective
    rest = own.init(Spec(4, ROWS, WIDTH)), jax.random.key(0)
    found = exact_gradient(score, own, params, rollouts, *rest)
    wanted = own.loss(score(params, rollouts), rollouts, *rest)[0]
    np.testing.assert_allclose(found.loss, wanted, rtol=ROUNDING)
    # Where they are not those of these weights, only who says so gets a ratio of 1.
    fresh = exact_gradient(score, own, params, rollouts, *rest, fresh=True)
    unknown = rollouts.replace(old_logp=None)
    same = exact_gradient(score, own, params, unknown, *rest)
    assert float(fresh.loss) == float(same.loss) != float(found.loss)
    stored = jax.tree.map(np.asarray, rollouts)
    again = exact_gradient(score, own, params, stored, *rest, micro_batches=4)
    np.testing.assert_allclose(again.loss, wanted, rtol=ROUNDING)


def test_a_record_of_responses_is_checked_and_may_be_completed():
    mask = np.array([[True, True, False], [False, True, True]])
    arguments = dict(tokens=np.zeros((2, 3), int), mask=mask, reward=[0.0, 1.0], group=[0, 0])
    made = Rollouts.of_responses(
        **arguments, old_logp=np.full((2, 3), -1.0), truncated=[True, False]
    )
    assert made.length.tolist() == [2, 3] and made.truncated.tolist() == [True, False]
    assert made.outcome.tolist() == [0.0, 1.0] and made.old_logp[0, 0] == -1
    made = Rollouts.of_responses(**arguments, component_rewards=np.zeros((2, 5)))
    assert made.records["component_rewards"].shape == (2, 5)
    with pytest.raises(ValueError, match=r"must be declared .* got 'oldlogp'"):
        Rollouts.of_responses(**arguments, oldlogp=mask)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"reward": np.zeros(3)}, r"reward must have the shape \(2,\) .* \(2, 3\), got \(3,\)"),
        ({"tokens": np.zeros((2, 4), int)}, r"tokens must have the shape \(2, 3\) .* got \(2, 4\)"),
        ({"old_logp": np.zeros((3, 3))}, r"old_logp must have the shape \(2, 3\) .* got \(3, 3\)"),
        ({"outcome": np.zeros((2, 1))}, r"outcome must have the shape \(2,\) .* got \(2, 1\)"),
        ({"component_rewards": np.zeros(2)}, r"component_rewards must have the shape \(2, 'K'\)"),
        ({"mask": np.ones(3, bool)}, r"mask must have the shape \[B, T\], got \(3,\)"),
    ],
)
def test_records_of_responses_that_do_not_fit_are_refused(change, message):
    arguments = dict(tokens=np.zeros((2, 3), int), mask=np.ones((2, 3), bool), group=[0, 0])
    with pytest.raises(ValueError, match=f"Rollouts.of_responses: {message}"):
        Rollouts.of_responses(**{**arguments, "reward": [0.0, 1.0], **change})


@pytest.mark.parametrize("kind", [bool, int])
def test_rewards_that_are_no_floats_become_floats(kind):
    made = Rollouts.of_responses(
        np.zeros((3, 2), int),
        np.ones((3, 2), bool),
        np.array([0, 1, 1], kind),
        np.zeros(3, int),
        process_reward=np.ones((3, 2), kind),
    )
    assert made.outcome.tolist() == made.reward.tolist() == [0.0, 1.0, 1.0]
    for name, array in made.arrays.items():
        if kind_and_axes(name)[0] == "Float":
            assert array.dtype == jnp.float32, name


@pytest.mark.thorough
def test_an_experience_collects_in_a_program_with_an_actor_of_its_own():
    """Prompts, draws and stages around somebody else's engine, and its own update."""
    chain = experience(
        shuffled_epochs(), stages=[refill(uniform, rounds=3), redraw(all_incorrect, hint(0.5))]
    )
    engine, setting = numpy_actor.NumpyActor(), numpy_actor.setting(chain)
    state = chain.init(setting)
    sampled = 0
    for step in range(3):
        collected = chain.collect(engine, state, step, setting)
        batch = collected.batch
        assert len(batch.groups) == setting.prompts
        own = methods.recipe("grpo", kl_coefficient=0).objective
        stats = TokenStats(*(jnp.asarray(x) for x in [batch.rollouts.behaviour_logp]))
        rows = jax.tree.map(jnp.asarray, batch.rollouts)
        loss, _ = own.loss(stats, rows, own.init(Spec(12, *rows.mask.shape)), jax.random.key(step))
        assert np.isfinite(loss)
        state, _ = chain.observe(collected, batch, step, setting)
        sampled += collected.metrics["sampled_tokens"]
    assert sampled > 0
