"""The critic: one gradient however the rows are split, fitted to returns, kept with the run."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import training_runs
from everyday import everyday
from numpy.testing import assert_allclose, assert_array_equal
from tiny_batch import ROWS, batch, tiny

from rlvr_jax import methods
from rlvr_jax.methods.credit.ma_rlhf import macro_mean, ngram_macros
from rlvr_jax.methods.entropy.dcpo import mix_in_tempered_policy
from rlvr_jax.methods.off_policy.hybrid_npg import (
    bootstrap_targets,
    hybrid_critic,
)
from rlvr_jax.objectives import (
    critic_of,
    generalized_advantage,
    generalized_advantages,
    masked_count,
    masked_mean,
    token_rewards,
    value_loss,
)
from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.advantages.returns import discounted_returns
from rlvr_jax.pods.abstract import abstract_run
from rlvr_jax.policy import products
from rlvr_jax.runs import run as run_module
from rlvr_jax.runs.checkpoints import Checkpoints
from rlvr_jax.runs.step import collect
from rlvr_jax.training.critic import CriticState, critic_values, fit_critic
from rlvr_jax.training.learning import learn
from rlvr_jax.types import replace

# A model in float64 needs it.
in_float64 = pytest.mark.usefixtures("usual_promotion")
# Sums of some hundred terms in another order, in float64.
ROUNDING = 1e-12
# Adam would hide what a gradient is scaled by.
OPTIMIZER = optax.sgd(0.1)
CRITIC = critic_of(generalized_advantage(trace_decay=0.9), 0.3)


def params(dtype="float64"):
    """A trunk other than the policy's, and a head that is not zero."""
    random = np.random.default_rng(5)
    trunk = jax.tree.map(lambda x: x + random.normal(0, 0.1, x.shape).astype(dtype), tiny(dtype)[1])
    head = {"weight": random.normal(0, 1, tiny()[0].config.width), "bias": np.float64(0.2)}
    return {"trunk": trunk, "head": jax.tree.map(lambda x: jnp.asarray(x, dtype), head)}


def state_of(params, optimizer=OPTIMIZER):
    return CriticState(params, optimizer.init(params))


@functools.cache
def fitted(micro_batches):
    """The state after one update of plain descent, and the metrics."""
    fit = functools.partial(fit_critic, tiny()[0], CRITIC, OPTIMIZER, micro_batches=micro_batches)
    return jax.jit(fit)(state_of(params()), batch())


def test_returns_are_advantages_before_whitening_plus_values():
    rollouts = batch()
    rewards = token_rewards(rollouts.reward, rollouts.mask)
    told = rewards, rollouts.records["values"], rollouts.mask
    wanted = generalized_advantages(*told, 0.9, 0.8) + rollouts.records["values"]
    recipe = methods.recipe("ppo", discount=0.9, trace_decay=0.8)
    assert_allclose(recipe.critic.returns(rollouts), wanted, rtol=1e-12)


@pytest.mark.thorough
def test_returns_of_macros_are_those_of_their_mean_values():
    rollouts, settings = batch(), dict(length=2, trace_decay=0.0, kl_coefficient=0.0)
    found = methods.recipe("ma_rlhf", **settings).critic.returns(rollouts)
    macro = ngram_macros(rollouts.mask, 2)
    value = macro_mean(rollouts.records["values"], macro)
    # With λ = 0 the return of a macro is its reward and the value of the next one: of a row of five
    # tokens the macros are 0 and 1, 2 and 3, 4.
    assert_allclose(found[0, 0], value[0, 2], rtol=1e-12)
    assert_allclose(found[0, 3], value[0, 4], rtol=1e-12)
    assert_allclose(found[0, 4], rollouts.reward[0], rtol=1e-12)
    assert_array_equal(found[~rollouts.mask], 0)


@pytest.mark.thorough
@in_float64
def test_the_update_is_a_step_along_the_gradient_of_the_mean_over_tokens():
    rollouts = batch()
    returns = CRITIC.returns(rollouts)

    def loss(params):
        values = critic_values(tiny()[0], params, rollouts)
        errors = value_loss(values, rollouts.records["values"], returns, CRITIC.clip)
        return jnp.sum(jnp.where(rollouts.mask, errors, 0)) / masked_count(rollouts.mask)

    wanted, grads = jax.jit(jax.value_and_grad(loss))(params())
    state, metrics = fitted(1)
    assert_allclose(metrics["critic/loss"], wanted, rtol=1e-12)
    assert_allclose(metrics["critic/gradient_norm"], optax.tree.norm(grads), rtol=1e-12)
    moved = jax.tree.map(lambda p, g: p - 0.1 * g, params(), grads)
    jax.tree.map(
        functools.partial(assert_allclose, rtol=ROUNDING, atol=ROUNDING), state.params, moved
    )


@pytest.mark.thorough
@in_float64
@pytest.mark.parametrize("micro_batches", [2, 4, 8])
def test_micro_batches_change_nothing(micro_batches):
    found, wanted = fitted(micro_batches), fitted(1)
    jax.tree.map(functools.partial(assert_allclose, rtol=ROUNDING, atol=ROUNDING), found, wanted)


@in_float64
def test_a_value_is_told_before_its_token_is_drawn_and_is_0_off_the_mask():
    rollouts = batch()
    values = jax.jit(functools.partial(critic_values, tiny()[0]))
    before = values(params(), rollouts)
    assert_array_equal(before[~rollouts.mask], 0)
    last = rollouts.replace(tokens=rollouts.tokens.at[:, 2].set(7))
    after = values(params(), last)
    assert_array_equal(after[:, :3], before[:, :3])
    assert np.all(after[0, 3:] != before[0, 3:])


@pytest.mark.thorough
@in_float64
def test_a_critic_comes_to_explain_the_returns_of_a_batch():
    # Returns that do not depend on the critic, with no bound on how far it may go.
    critic = critic_of(generalized_advantage(), np.inf)
    optimizer = optax.adam(0.02)
    fit = jax.jit(functools.partial(fit_critic, tiny()[0], critic, optimizer))
    values = jax.jit(functools.partial(critic_values, tiny()[0]))
    state, explained = state_of(params(), optimizer), []
    for _ in range(60):
        rollouts = batch().replace(values=values(state.params, batch()))
        state, metrics = fit(state, rollouts)
        explained.append(float(metrics["critic/explained_variance"]))
    assert explained[0] < 0 and explained[-1] > 0.9


@pytest.mark.thorough
@in_float64
@pytest.mark.parametrize("reward", [np.nan, np.inf])
def test_a_reward_that_is_not_finite_leaves_the_critic_as_it_is(reward):
    rollouts = batch().replace(reward=jnp.full(ROWS, reward))
    fit = jax.jit(functools.partial(fit_critic, tiny()[0], CRITIC, OPTIMIZER))
    state, metrics = fit(state_of(params()), rollouts)
    assert not np.isfinite(metrics["critic/loss"])
    jax.tree.map(assert_array_equal, state, state_of(params()))


def test_a_clip_that_holds_nothing_is_refused():
    with pytest.raises(ValueError, match="critic_of: clip must be positive, got 0"):
        critic_of(generalized_advantage(), 0)
    with pytest.raises(ValueError, match="value_clip must be positive, got -1"):
        methods.recipe("ppo", value_clip=-1.0)


def stepped(model, **changes):
    """A prepared run, its state before, and what a step of it gives."""
    settings = training_runs.settings(model, "unused", method="ppo", **changes)
    run = training_runs.prepared(settings)
    state = run.initial_state()
    before = jax.tree.map(np.asarray, state.device.critic)
    batch = collect(run, state, 0).batch
    device, metrics, _ = learn(run.learner, state.device, batch.rollouts, 0)
    return run, before, replace(state, device=device), metrics


@pytest.mark.thorough
def test_a_step_fits_the_critic_in_each_pass(model):
    run, before, state, metrics = stepped(model, minibatches=2, critic_epochs=3)
    assert_array_equal(before.params["head"]["weight"], 0)
    jax.tree.map(assert_array_equal, before.params["trunk"], run.start_params())
    # The first batch has values of 0, so that none of its returns is explained.
    assert metrics["critic/value"] == 0 and metrics["critic/explained_variance"] == 0
    assert metrics["critic/return"] > 0 and metrics["critic/loss"] > 0
    counts = [x for x in jax.tree.leaves(state.device.critic.optimizer_state) if x.ndim == 0]
    assert max(int(count) for count in counts) == 6
    assert np.any(state.device.critic.params["head"]["weight"] != 0)
    assert int(state.device.updates) == 2


@pytest.mark.slow
def test_the_critic_has_a_learning_rate_of_its_own(model):
    moved = {}
    for rate in (0.0, 1e-3):
        _, before, state, _ = stepped(model, learning_rate=1e-3, critic_learning_rate=rate)
        bias = state.device.critic.params["head"]["bias"] - before.params["head"]["bias"]
        moved[rate] = float(jnp.abs(bias))
    # The first step of Adam is as long as the rate.
    assert_allclose(moved[0.0], 5e-3, rtol=1e-3)
    assert_allclose(moved[1e-3], 1e-3, rtol=1e-3)


HEAD = ("trunk=policy",)


@pytest.mark.thorough
@pytest.mark.parametrize("lora_rank", everyday([0, 2], 0))
def test_a_head_on_the_policys_hidden_states_is_fitted_alone(model, lora_rank):
    run, before, state, metrics = stepped(
        model, hyperparameters=HEAD, minibatches=2, critic_epochs=3, lora_rank=lora_rank
    )
    assert before.params.keys() == state.device.critic.params.keys() == {"head"}
    assert metrics["critic/value"] == 0 and metrics["critic/loss"] > 0
    assert np.any(state.device.critic.params["head"]["weight"] != 0)
    counts = [x for x in jax.tree.leaves(state.device.critic.optimizer_state) if x.ndim == 0]
    assert max(int(count) for count in counts) == 6
    # Its values are read off the policy as it is now.
    again = collect(run, state, 1).batch
    told, _, _ = learn(run.learner, state.device, again.rollouts, 1)
    assert np.all(np.isfinite(told.critic.params["head"]["weight"]))


@pytest.mark.thorough
def test_a_head_leaves_the_policy_alone(model):
    """Whatever the rate of the critic, a first update of the policy is the same."""
    found = [
        stepped(model, hyperparameters=HEAD, critic_learning_rate=rate)[2].device.params
        for rate in (1e-4, 1e-1)
    ]
    jax.tree.map(assert_array_equal, *found)


@pytest.mark.thorough
@in_float64
def test_the_head_takes_a_step_along_its_own_gradient():
    critic = critic_of(generalized_advantage(trace_decay=0.9), 0.3, trunk="policy")
    own = params()
    state = state_of({"head": own["head"]})
    after, _ = fit_critic(tiny()[0], critic, OPTIMIZER, state, batch(), own["trunk"])
    whole, _ = fit_critic(tiny()[0], CRITIC, OPTIMIZER, state_of(own), batch())
    same = functools.partial(assert_allclose, rtol=ROUNDING)
    jax.tree.map(same, after.params["head"], whole.params["head"])


@pytest.mark.slow
def test_a_head_on_a_mesh_changes_nothing_but_rounding(model, monkeypatch):
    monkeypatch.setattr(run_module, "make_optimizer", lambda config, rate: optax.sgd(1.0))
    how = {"hyperparameters": HEAD, "minibatches": 2}
    _, _, alone, told = stepped(model, **how)
    _, _, split, found = stepped(model, mesh="data=2,fsdp=4", **how)
    assert_allclose(found["critic/loss"], told["critic/loss"], rtol=1e-6)
    # Plain descent takes the weights to 16; float32 sums differ in the seventh digit of that.
    same = functools.partial(assert_allclose, rtol=1e-5, atol=16 * 1e-6)
    jax.tree.map(same, *(jax.device_get(state.device.critic.params) for state in (split, alone)))


@pytest.mark.slow
@in_float64
def test_the_means_over_own_and_others_rows_count_alike():
    """One update descends the sum of both means, though the kinds differ in tokens."""
    rollouts = batch()
    others = jnp.arange(len(rollouts.group)) % 3 == 0
    rollouts = rollouts.replace(off_policy=others)
    own = params()
    state, told = fit_critic(tiny()[0], hybrid_critic(), OPTIMIZER, state_of(own), rollouts)
    rewards = token_rewards(rollouts.reward, rollouts.mask)
    returns = discounted_returns(rewards, rollouts.mask, 1.0)
    targets = bootstrap_targets(rewards, rollouts.records["values"], rollouts.mask)

    def loss(params):
        values, other = critic_values(tiny()[0], params, rollouts), others[:, None]
        own = masked_mean((values - returns) ** 2, rollouts.mask & ~other)
        return own + masked_mean((values - targets) ** 2, rollouts.mask & other)

    wanted, grads = jax.value_and_grad(loss)(own)
    assert_allclose(told["critic/loss"], wanted, rtol=ROUNDING)
    after = jax.tree.map(lambda x, g: x - 0.1 * g, own, grads)
    same = functools.partial(assert_allclose, rtol=ROUNDING, atol=ROUNDING)
    jax.tree.map(same, state.params, after)


def test_another_trunk_is_refused():
    with pytest.raises(ValueError, match="trunk must be one of 'own', 'policy', got 'shared'"):
        methods.recipe("ppo", trunk="shared")


@pytest.mark.slow
def test_beside_adapters_the_critic_has_all_weights(model):
    run, before, state, _ = stepped(model, lora_rank=2)
    trunk = before.params["trunk"]
    assert jax.tree.structure(state.device.params) != jax.tree.structure(trunk)
    jax.tree.map(assert_array_equal, trunk, run.start.params)
    moved = jax.tree.map(
        lambda now, then: np.any(now != then), state.device.critic.params, before.params
    )
    assert moved["head"]["weight"] and moved["head"]["bias"]


@pytest.mark.slow
def test_a_mesh_changes_nothing_but_rounding(model, monkeypatch):
    # Adam would turn rounding into whole steps.
    monkeypatch.setattr(run_module, "make_optimizer", lambda config, rate: optax.sgd(1.0))
    _, _, alone, told = stepped(model, minibatches=2)
    _, _, split, found = stepped(model, minibatches=2, mesh="data=2,fsdp=4")
    trunk = jax.tree.leaves(split.device.critic.params["trunk"])
    assert any(not leaf.sharding.is_fully_replicated for leaf in trunk)
    assert_allclose(found["critic/loss"], told["critic/loss"], rtol=1e-6)
    # The second of two updates pulls at the trunk too. Weights are float32 of at most 1.
    same = functools.partial(assert_allclose, rtol=1e-5, atol=1e-6)
    jax.tree.map(same, *(jax.device_get(state.device.critic.params) for state in (split, alone)))


def test_critic_settings_of_a_method_without_one_are_remarked(model):
    for method, remarks in ("grpo", 1), ("ppo", 0):
        config = training_runs.settings(model, "unused", method=method, critic_epochs=2)
        said = [line for line in training_runs.prepared(config).remarks() if "critic" in line]
        assert len(said) == remarks


@pytest.mark.thorough
def test_a_checkpoint_holds_the_critic(model, tmp_path):
    run, _, state, _ = stepped(model)
    saved = jax.tree.map(np.asarray, state.device.critic)
    writing = Checkpoints(tmp_path, state)
    writing.save(1, state)
    writing.close()
    reading = Checkpoints(tmp_path, state)
    restored = reading.restore(1, run.initial_state())
    reading.close()
    jax.tree.map(assert_array_equal, restored.device.critic, saved)


@pytest.mark.slow
def test_the_program_compiled_from_shapes_is_the_run_s(model):
    run, _, state, _ = stepped(model)
    given = []

    def fit(critic, rollouts, policy):
        given.append(rollouts)
        return run.programs.fit_critic(critic, rollouts, policy)

    spying = replace(run, programs=replace(run.programs, fit_critic=fit))
    learn(spying.learner, run.initial_state().device, collect(run, state, 1).batch.rollouts, 1)
    config = run.config.replace(
        mesh="data=1",
        prompt_tokens=run.start.train_table.tokens.shape[1],
        response_tokens=run.start.sampler.response_tokens,
    )
    shape = run.start.model.config
    made = abstract_run(config, shape, run.recipe, jax.devices()[:1], run.start.sampler.opening)

    def told(tree):
        return jax.tree.map(lambda x: (x.shape, x.dtype), tree)

    assert told(made.critic()) == told(state.device.critic)
    assert told(made.rollouts()) == told(given[0])
    assert told(made.lower_fit().out_info[0]) == told(state.device.critic)


@pytest.mark.thorough
def test_options_of_the_compiler_reach_the_programs_of_training(model, monkeypatch):
    monkeypatch.setattr(products, "compiler_options", lambda *given: {"no_such_option": True})
    config = training_runs.settings(model, "unused", method="ppo", minibatches=2)
    run = training_runs.prepared(config)
    sampler = run.start.sampler
    given = dict(mesh="data=1", prompt_tokens=8, response_tokens=sampler.response_tokens)
    config = run.config.replace(**given)
    shape = run.start.model.config
    made = abstract_run(config, shape, run.recipe, jax.devices()[:1], sampler.opening)
    for lowered in (made.lower_score(), made.lower_update(), made.lower_fit()):
        with pytest.raises(Exception, match="no_such_option"):
            lowered.compile()


@pytest.mark.parametrize("estimator", [group_normalized(), mix_in_tempered_policy(0, 1, 1, 0, 1)])
def test_a_critic_of_who_reads_no_values_is_refused(estimator):
    with pytest.raises(ValueError, match="estimator must read values and no statistic of a policy"):
        critic_of(estimator, 0.2)
