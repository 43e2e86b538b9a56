"""ReTool and VerlTool: responses that call tools, from what is learned of them to whole runs."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import training_runs

from rlvr_jax.experience import replies_read
from rlvr_jax.methods import recipe
from rlvr_jax.methods.agents.retool import fit_critic_first, tool_use_reward
from rlvr_jax.types import Rollouts


def read(turns, outcome):
    rows = np.array([outcome], float).reshape(-1)
    batch = Rollouts.of_responses(
        np.ones((1, len(turns)), int), np.ones((1, len(turns)), bool), rows, np.zeros(1)
    )
    return batch.replace(turn=np.array([turns]), outcome=rows)


@pytest.mark.parametrize(
    ("turns", "outcome", "calls", "reward"),
    [
        ([0, 0, 0], 0, 0, -1.0),
        ([0, 1, 2], 0, 1, -0.9),
        ([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 0, 5, -0.6),
        ([0, 1, 2], 1, 1, 1.0),
    ],
)
def test_a_wrong_answer_is_paid_for_calls_up_to_the_ceiling(turns, outcome, calls, reward):
    batch = read(turns, outcome)
    assert float(replies_read(batch)[0]) == calls
    np.testing.assert_allclose(tool_use_reward()(batch), [reward], rtol=1e-6)
    plain = 1.0 if outcome else -1.0
    np.testing.assert_allclose(tool_use_reward(bonus=0)(batch), [plain])


@dataclass(frozen=True)
class Weighted:
    """Signals of which only the weight is read."""

    weight: jax.Array


def test_only_the_critic_is_fitted_in_the_first_steps():
    held = recipe("retool", critic_steps=2, updates=3, describe=False).objective
    plain = recipe("retool", critic_steps=0, describe=False).objective
    (wait,) = set(held.labels) - set(plain.labels)
    assert wait == "fit_critic_first(steps=2, updates=3)"
    state = jnp.zeros((), jnp.int32)
    weight = jnp.ones((1, 2))
    for update in range(8):
        signals, state, metrics = fit_critic_first(2, 3).apply(Weighted(weight), None, state)
        held_now = update < 6
        assert (float(signals.weight.max()), float(metrics["critic_only"])) == (
            (0, 1) if held_now else (1, 0)
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "given", "curves"),
    [
        ("retool", ("critic_steps=1",), ["experience/malformed_calls", "experience/tool_tokens"]),
        ("verltool", ("mask_void_rows=true",), ["experience/tool_tokens"]),
    ],
)
def test_it_trains_on_responses_that_call_tools(tmp_path, monkeypatch, method, given, curves):
    # A random policy writes both tags now and then.
    monkeypatch.setattr(training_runs, "WORDS", [*training_runs.WORDS, "<words>", "</words>"])
    policy = training_runs.write_policy(tmp_path / "policy")
    config = training_runs.settings(
        policy,
        tmp_path / "run",
        method=method,
        response_tokens=16,
        hyperparameters=("tools=small_environments:words", "style=tags", "describe=false", *given),
    )
    training_runs.quietly(config)
    steps = training_runs.metrics(tmp_path / "run")
    for curve in ("experience/turns", *curves):
        assert max(training_runs.values(steps, curve)) > 0
    assert sum(training_runs.values(steps, "experience/calls")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0
