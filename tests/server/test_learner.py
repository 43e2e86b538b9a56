"""Gradients of a model in training: those of the library, for every division into requests."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tinker_requests as requests

from rlvr_jax import methods, policy
from rlvr_jax.keys import named_key
from rlvr_jax.policy import lora
from rlvr_jax.server import AdamParams, Learner, Refused, Spec
from rlvr_jax.server.published import rollouts_of
from rlvr_jax.server.wire import Datum, ForwardBackward
from rlvr_jax.training import objective_gradient

SMALL = 2e-5
"""Largest difference relative to the largest entry: sums of float32 in another order."""


def request(data, loss, config=None, forward_only=False):
    return ForwardBackward("m", 1, tuple(data), loss, config or {}, forward_only)


def learner(base, rank=4, **spec):
    return Learner(base, Spec("brackets", rank, seed=1, **spec), rows=4)


def moved(base, rank=4):
    """A learner whose adapters are no longer zero."""
    own = learner(base, rank)
    own.forward_backward(request(requests.supervised(4, seed=7), "cross_entropy"))
    own.optim_step(AdamParams(learning_rate=3e-3))
    return own


def assert_close(one, other, tolerance=SMALL):
    largest = max(float(jnp.max(jnp.abs(leaf))) for leaf in jax.tree.leaves(other))
    for ours, wanted in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(ours, wanted, atol=tolerance * largest)


def row_logp(own, trained, datum):
    """Log-probs of a datum's targets from all logits, without padding or tiles."""
    whole = lora.attach(own.base.params, trained) if own.spec.rank else trained
    tokens = jnp.asarray(datum.tokens)[None]
    hidden = own.model.hidden(whole, tokens)
    logits = own.model.to_logits(whole, hidden)[0].astype(jnp.float32)
    logp = jax.nn.log_softmax(logits)
    return jnp.take_along_axis(logp, jnp.asarray(datum.inputs["target_tokens"])[:, None], 1)[:, 0]


@pytest.mark.thorough
@pytest.mark.parametrize("rank", [4, 0])
def test_the_gradient_of_a_protocol_loss_is_that_of_its_formula(brackets, rank):
    own, data = moved(brackets, rank), requests.sampled(6)

    @jax.jit
    @functools.partial(jax.value_and_grad, has_aux=True)
    def formula(trained):
        total, logps = 0.0, [row_logp(own, trained, datum) for datum in data]
        for datum, logp in zip(data, logps, strict=True):
            ratio = jnp.exp(logp - datum.inputs["logprobs"])
            total -= jnp.sum(ratio * datum.inputs["advantages"])
        return total, logps

    outputs = own.forward_backward(request(data, "importance_sampling"))
    gradient, metrics, _ = own.gradient()
    (total, logps), wanted = formula(own.trained)
    assert_close(gradient, wanted)
    np.testing.assert_allclose(metrics["loss"], total, rtol=1e-4)
    np.testing.assert_allclose(outputs.metrics["loss:sum"], metrics["loss"])
    for found, logp in zip(outputs.arrays["logprobs"], logps, strict=True):
        np.testing.assert_allclose(found, logp, atol=2e-5)


@pytest.mark.thorough
def test_the_gradient_of_a_published_objective_is_the_one_in_this_process(brackets):
    own, data = moved(brackets), requests.sampled(6)
    config = {"fraction": 0.2, "covariance_low": 0.0}
    own.forward_backward(request(data, "rlvr:clip_cov", config))
    gradient, metrics, _ = own.gradient()
    objective = methods.recipe("clip_cov", **config).objective
    rollouts = rollouts_of(data, rows=6)
    found = objective_gradient(
        own.model,
        objective,
        own.trained,
        rollouts,
        {},
        named_key(1, "objective", 1),
        fresh=False,
        base=brackets.params,
    )
    assert_close(gradient, found.grads)
    np.testing.assert_allclose(metrics["loss"], found.loss, rtol=1e-4)
    np.testing.assert_allclose(metrics["covariance"], found.metrics["covariance"], rtol=1e-3)
    assert metrics["chosen_fraction"] > 0


@pytest.mark.parametrize("loss", ["rlvr:clip_cov", pytest.param("ppo", marks=pytest.mark.thorough)])
def test_requests_of_a_step_are_one_batch(brackets, loss):
    """Tokens that the objective leaves out are those of the whole batch, not of each request."""
    data = requests.sampled(7)
    config = {"fraction": 0.2, "covariance_low": 0.0} if loss != "ppo" else {}
    gradients, losses = [], []
    for parts in ([data], [data[:1], data[1:4], data[4:]]):
        own = moved(brackets)
        for part in parts:
            own.forward_backward(request(part, loss, config))
        gradient, metrics, _ = own.gradient()
        gradients.append(gradient)
        losses.append(metrics["loss"])
    assert_close(*gradients)
    np.testing.assert_allclose(*losses, rtol=1e-4)


@pytest.mark.thorough
def test_the_sum_over_parts_of_a_published_objective_is_another_gradient(brackets):
    """Without the wait for the step, chunks would change the loss."""
    own, data = moved(brackets), requests.sampled(7)
    config = {"fraction": 0.2, "covariance_low": 0.0}
    own.forward_backward(request(data, "rlvr:clip_cov", config))
    whole = own.gradient()[0]
    parts = []
    for part in (data[:3], data[3:]):
        own.drop_gradient()
        own.forward_backward(request(part, "rlvr:clip_cov", config))
        parts.append(own.gradient()[0])
    mean = jax.tree.map(lambda a, b: (3 * a + 4 * b) / 7, *parts)
    with pytest.raises(AssertionError):
        assert_close(mean, whole, tolerance=0.01)


@pytest.mark.thorough
def test_rows_of_padding_and_their_order_change_nothing(brackets):
    own, data = moved(brackets), requests.sampled(5)
    gradients = []
    for part in (data, data[::-1]):
        own.drop_gradient()
        own.forward_backward(request(part, "rlvr:gspo"))
        gradients.append(own.gradient()[0])
    assert_close(*gradients)


@pytest.mark.thorough
def test_reward_and_group_make_the_advantage_of_the_method(brackets):
    own, data = moved(brackets), requests.sampled(4)
    sent = []
    for row, datum in enumerate(data):
        inputs = {name: array for name, array in datum.inputs.items() if name != "advantages"}
        inputs |= {"reward": np.float32([row % 2]), "group": np.array([row // 2])}
        sent.append(Datum(datum.tokens, inputs))
    own.forward_backward(request(sent, "rlvr:grpo"))
    by_group, metrics, _ = own.gradient()
    own.drop_gradient()
    for datum, row in zip(data, (-1, 1, -1, 1), strict=True):
        datum.inputs["advantages"][3:] = row * np.sqrt(0.5)
    own.forward_backward(request(data, "rlvr:grpo"))
    # Rewards 0 and 1 have the standard deviation 1/√2.
    assert_close(own.gradient()[0], by_group)
    assert metrics["ratio/max"] > 1


def test_a_step_is_adamw_of_torch(brackets):
    own = learner(brackets)
    adam = AdamParams(0.01, 0.8, 0.9, 1e-6, weight_decay=0.1, grad_clip_norm=0.5)
    moments = [{}, {}]
    weights = {name: array.astype(float) for name, array in own.weights().items()}
    for number in (1, 2):
        own.forward_backward(request(requests.supervised(4, seed=number), "cross_entropy"))
        gradient = {
            f"trained{jax.tree_util.keystr(path)}": np.asarray(leaf, float)
            for path, leaf in jax.tree.leaves_with_path(own.gradient()[0])
        }
        norm = np.sqrt(sum(np.sum(one**2) for one in gradient.values()))
        metrics = own.optim_step(adam)
        np.testing.assert_allclose(metrics["gradient_norm"], norm, rtol=1e-4)
        assert norm > 0.5 and metrics["step"] == number
        for name, one in gradient.items():
            one = one * 0.5 / norm
            first, second = (kept.get(name, 0.0) for kept in moments)
            moments[0][name] = first = 0.8 * first + 0.2 * one
            moments[1][name] = second = 0.9 * second + 0.1 * one**2
            root = np.sqrt(second / (1 - 0.9**number)) + 1e-6
            weights[name] *= 1 - 0.01 * 0.1
            weights[name] -= 0.01 * first / (1 - 0.8**number) / root
    for name, array in own.weights().items():
        np.testing.assert_allclose(array, weights[name], atol=1e-5)


def test_a_forward_pass_leaves_no_gradient(brackets):
    own, data = learner(brackets), requests.sampled(3)
    for loss in ("ppo", "rlvr:clip_cov"):
        outputs = own.forward_backward(request(data, loss, forward_only=True))
        assert [len(one) for one in outputs.arrays["entropy"]] == [len(d.tokens) for d in data]
    with pytest.raises(Refused, match="optim_step: a forward_backward must come before it"):
        own.optim_step(AdamParams())


def test_a_gradient_that_is_not_finite_changes_nothing(brackets):
    own, data = learner(brackets), requests.sampled(2)
    before = own.state()
    data[0].inputs["logprobs"][5:] = -1e5
    own.forward_backward(request(data, "importance_sampling"))
    with pytest.raises(Refused, match=r"must be finite, got a norm of .* it is dropped"):
        own.optim_step(AdamParams())
    for name, array in own.state().items():
        np.testing.assert_array_equal(array, before[name])
    assert not own.pending


def test_a_stored_state_goes_on_as_the_model_itself(brackets):
    own, data = moved(brackets), requests.supervised(4)
    other = learner(brackets)
    other.restore(own.state())
    fresh = learner(brackets)
    fresh.restore(own.weights(), optimizer=False)
    found = []
    for each in (own, other, fresh):
        each.forward_backward(request(data, "cross_entropy"))
        each.optim_step(AdamParams(0.01))
        found.append(each.weights())
    for name, array in found[0].items():
        np.testing.assert_array_equal(found[1][name], array)
    assert any((found[2][name] != array).any() for name, array in found[0].items())


def test_all_weights_or_some_matrices_are_trained(brackets):
    assert "embedding" in learner(brackets, rank=0).trained
    attention = learner(brackets, mlp=False).trained["layers"]
    assert {name.partition("_lora")[0] for name in attention} == {
        *("query", "key", "value", "attention_output")
    }
    merged = policy.lora.attach(brackets.params, learner(brackets).trained)
    assert learner(brackets).params.keys() == merged.keys()
