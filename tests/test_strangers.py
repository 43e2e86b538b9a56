"""The library inside other people's programs, which have their own models and loops."""

import dataclasses
from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from everyday import everyday

from rlvr_jax import exact_gradient, methods
from rlvr_jax.experience import all_incorrect, experience, redraw, refill, shuffled_epochs, uniform
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.views import hint
from rlvr_jax.objectives import Spec
from rlvr_jax.types import Rollouts, TokenStats
from rlvr_jax.types.rollouts import kind_and_axes

VOCABULARY, ROWS, WIDTH = 7, 16, 3


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


# Sums of some hundred terms in another order, against the largest.
ROUNDING = 1e-12


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


def some_rollouts(score, params):
    """Four groups of four, of several lengths, drawn by a policy a little off."""
    random = np.random.default_rng(3)
    tokens = jnp.asarray(random.integers(0, VOCABULARY, (ROWS, WIDTH)))
    mask = jnp.asarray(np.arange(WIDTH) < random.integers(1, WIDTH + 1, (ROWS, 1)))
    reward = jnp.asarray(random.integers(0, 2, ROWS), jnp.float64)
    group = jnp.arange(ROWS, dtype=jnp.int32) // 4
    made = Rollouts.of_responses(tokens, mask, reward, group)
    then = score(params, made).logp + jnp.asarray(random.normal(0, 0.2, mask.shape))
    return made.replace(old_logp=jnp.where(mask, then, 0))


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


def tunix_loss(objective):
    """An objective under the signature that Tunix registers policy losses with."""
    from flax import nnx
    from tunix.rl import common

    def policy_loss(model, train_example, algo_config, pad_id, eos_id, **kwargs):
        del kwargs
        graph, weights = nnx.split(model)
        logp = common.compute_per_token_logps(
            graph,
            weights,
            prompt_tokens=train_example.prompt_ids,
            completion_tokens=train_example.completion_ids,
            pad_id=pad_id,
            eos_id=eos_id,
            stop_gradient=False,
            temperature=algo_config.temperature,
        )
        mask = train_example.completion_mask.astype(bool)
        rows = mask.shape[0]
        batch = Rollouts.of_responses(
            train_example.completion_ids,
            mask,
            jnp.zeros((rows,)),
            jnp.zeros((rows,), jnp.int32),
            old_logp=train_example.old_per_token_logps,
            # Tunix has estimated the advantages; the objective then does not.
            advantage=jnp.broadcast_to(train_example.advantages[:, None], mask.shape),
        )
        state = objective.init(Spec(1, *mask.shape))
        loss, (_, metrics) = objective.loss(TokenStats(logp=logp), batch, state, jax.random.key(0))
        return loss, metrics

    return policy_loss


def small_tunix_model(dtype):
    """A model with the arguments that Tunix's losses and trainers call one with."""
    from flax import nnx

    class Small(nnx.Module):
        def __init__(self):
            self.embed = nnx.Embed(VOCABULARY, 8, param_dtype=dtype, rngs=nnx.Rngs(0))
            self.head = nnx.Linear(8, VOCABULARY, param_dtype=dtype, rngs=nnx.Rngs(1))

        def __call__(self, tokens, positions, cache, attention_mask, **kwargs):
            return self.head(jnp.tanh(self.embed(tokens))), cache

    return Small()


def qwen2_of_tunix(dtype):
    from flax import nnx
    from tunix.models.qwen2.model import ModelConfig, Qwen2

    config = ModelConfig(
        num_layers=2,
        vocab_size=VOCABULARY,
        embed_dim=16,
        hidden_dim=24,
        num_heads=2,
        head_dim=8,
        num_kv_heads=1,
        rope_theta=10_000,
        norm_eps=1e-6,
        dtype=dtype,
        param_dtype=dtype,
    )
    return Qwen2(config, rngs=nnx.Rngs(0))


# `pip install -e .[test,tunix]` in an environment of its own: Tunix wants older packages than we.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # what Tunix's own imports warn of
@pytest.mark.parametrize(
    ("made", "tolerance"),
    # Tunix's norms and rotations are float32 in any dtype.
    [(small_tunix_model, ROUNDING), (qwen2_of_tunix, 1e-6)],
)
def test_the_gradient_of_a_tunix_model_is_that_of_the_whole_batch(made, tolerance):
    pytest.importorskip("tunix", reason="requires older packages: CONTRIBUTING.md")
    from flax import nnx
    from tunix.rl import common

    graph, params = nnx.split(made(jnp.float64))

    def score(params, rows):
        before = jnp.full((rows.tokens.shape[0], 1), 2)  # a prompt of one token
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            _, logits = common.compute_per_token_logps(
                graph, params, before, rows.tokens, 0, 1, stop_gradient=False, return_logits=True
            )
        logs = jax.nn.log_softmax(logits.astype(jnp.float64))  # its own log-probs are float32
        logp = jnp.take_along_axis(logs, rows.tokens[..., None], axis=-1)[..., 0]
        return TokenStats(logp=logp, entropy=-jnp.sum(jnp.exp(logs) * logs, axis=-1))

    own = methods.recipe("clip_cov", fraction=0.2).objective
    rollouts = some_rollouts(score, params)
    # Ids 0 and 1 are Tunix's padding and its end.
    rollouts = rollouts.replace(tokens=jnp.maximum(rollouts.tokens, 2))
    state, key = own.init(Spec(4, ROWS, WIDTH)), jax.random.key(5)

    def loss(params):
        return own.loss(score(params, rollouts), rollouts, state, key)[0]

    wanted = jax.tree.leaves(jax.grad(loss)(params))
    largest = max(float(jnp.max(jnp.abs(x))) for x in wanted)
    assert largest > 0
    for pieces in (1, 2, 4, 8, 16):
        found = exact_gradient(
            score, own, params, rollouts, state, key, fresh=False, micro_batches=pieces
        )
        for one, other in zip(jax.tree.leaves(found.grads), wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * largest)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # what Tunix's own imports warn of
def test_tunix_trains_with_a_registered_objective():
    pytest.importorskip("tunix", reason="requires older packages: CONTRIBUTING.md")
    from flax import nnx
    from tunix.rl import algo_core, common, function_registry as registry

    ours = methods.recipe("grpo", kl_coefficient=0.0).objective
    registry.register_policy_loss_fn("rlvr_jax_grpo")(tunix_loss(ours))
    random = np.random.default_rng(0)
    example = common.TrainExample(
        prompt_ids=jnp.asarray(random.integers(2, VOCABULARY, (ROWS, 2))),
        prompt_mask=jnp.ones((ROWS, 2), bool),
        completion_ids=jnp.asarray(random.integers(2, VOCABULARY, (ROWS, WIDTH))),
        completion_mask=jnp.asarray(np.arange(WIDTH) < random.integers(1, WIDTH + 1, (ROWS, 1))),
        advantages=jnp.asarray(random.normal(size=ROWS), jnp.float32),
        ref_per_token_logps=None,
        old_per_token_logps=jnp.asarray(random.normal(-2, 0.3, (ROWS, WIDTH)), jnp.float32),
    )

    @dataclasses.dataclass
    class Settings:
        beta: float = 0.0
        epsilon: float = 0.2
        epsilon_high: float = 0.2
        loss_algo: str = "grpo"
        loss_agg_mode: str = "sequence-mean-token-mean"
        temperature: float = 1.0

    with jax.numpy_dtype_promotion("standard"):
        results = []
        for loss in (registry.get_policy_loss_fn("rlvr_jax_grpo"), algo_core.grpo_loss_fn):
            call = partial(loss, train_example=example, algo_config=Settings(), pad_id=0, eos_id=1)
            (value, _), grads = nnx.value_and_grad(call, has_aux=True)(
                small_tunix_model(jnp.float32)
            )
            results.append((value, jax.tree.leaves(grads)))
    (ours_value, ours_grads), (theirs_value, theirs_grads) = results
    # float32, some forty tokens
    np.testing.assert_allclose(ours_value, theirs_value, rtol=1e-5)
    for found, wanted in zip(ours_grads, theirs_grads, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-5 * np.abs(wanted).max())


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
