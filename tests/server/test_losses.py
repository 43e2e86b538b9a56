"""The protocol's losses against their formulas in numpy, and the refusal of other config."""

import numpy as np
import pytest

from rlvr_jax.server import Refused
from rlvr_jax.server.losses import LOSSES, protocol_loss

RNG = np.random.default_rng(0)
LOGP = -RNG.uniform(0.01, 3, (2, 5))
INPUTS = {
    "logprobs": -RNG.uniform(0.01, 3, (2, 5)),
    "advantages": RNG.normal(size=(2, 5)),
    "weights": RNG.uniform(size=(2, 5)),
}
RATIO, A = np.exp(LOGP - INPUTS["logprobs"]), INPUTS["advantages"]
WANTED = {
    "cross_entropy": ({}, -INPUTS["weights"] * LOGP),
    "importance_sampling": ({}, -A * RATIO),
    "ppo": ({}, np.where(A > 0, -A * np.minimum(RATIO, 1.2), -A * np.maximum(RATIO, 0.8))),
    "cispo": ({}, -A * np.minimum(RATIO, 4) * LOGP),
    "dro": ({"beta": 0.3}, -A * LOGP + 0.15 * np.log(RATIO) ** 2),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_its_formula_token_by_token(name):
    config, wanted = WANTED[name]
    loss = protocol_loss(name)
    found = loss.token_loss(LOGP, INPUTS, loss.numbers(name, config))
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_the_thresholds_of_the_config_bound_the_ratio():
    loss = protocol_loss("ppo")
    config = loss.numbers("ppo", {"clip_low_threshold": 0.0, "clip_high_threshold": 1e9})
    plain = protocol_loss("importance_sampling").token_loss(LOGP, INPUTS, {})
    np.testing.assert_allclose(loss.token_loss(LOGP, INPUTS, config), plain, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "config", "message"),
    [
        ("ppo", {"epsilon": 0.2}, "numbers among clip_low_threshold, .* got epsilon=0.2"),
        ("cross_entropy", {"beta": 1.0}, "among none, got beta"),
        ("dro", {}, "loss_fn_config of dro must have beta, got none"),
        ("dro", {"beta": "large"}, "must have numbers among beta, got beta='large'"),
    ],
)
def test_other_config_is_refused(name, config, message):
    with pytest.raises(Refused, match=message):
        protocol_loss(name).numbers(name, config)


@pytest.mark.parametrize("name", ["gspo", "stable_reinforce", "custom", "", "PPO"])
def test_another_loss_is_refused_with_those_that_there_are(name):
    with pytest.raises(Refused, match=r"one of cross_entropy, .* or rlvr:METHOD, such as"):
        protocol_loss(name)
