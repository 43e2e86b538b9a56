"""The predicted step against the matrices that it avoids."""

import numpy as np
import pytest
from golden_vectors import array, assert_agrees

from rlvr_jax.methods.clipping.capo_curvature import drop_unstable_steps, predicted_step

RATE = 0.3


def case(width=5, k=4):
    random = np.random.default_rng(3)
    logits = random.normal(0, 2, (2, 3, width))
    ids = np.argsort(-logits, axis=-1)[..., :k]
    logp = np.take_along_axis(logits, ids, axis=-1)
    tokens = random.integers(0, width, (2, 3))
    tokens[0, 0] = np.argmin(logits[0, 0])  # outside the k largest
    return random.normal(0, 1, (2, 3)), logp, ids, tokens, random.normal(0, 1, (2, 3, 2))


def predict(advantage, logp, ids, tokens, hidden):
    floats = [array(x, float) for x in (advantage, logp, hidden)]
    return predicted_step(
        floats[0], floats[1], array(ids, np.int32), array(tokens, np.int32), floats[2], RATE
    )


def test_closed_forms_are_those_of_explicit_matrices():
    advantage, logp, ids, tokens, hidden = case()
    predicted_change, shift = predict(advantage, logp, ids, tokens, hidden)
    for b, t in np.ndindex(2, 3):
        p = np.exp(logp[b, t]) / np.exp(logp[b, t]).sum()
        v = (ids[b, t] == tokens[b, t]) - p
        gradient = advantage[b, t] * np.outer(v, hidden[b, t])
        u = gradient @ hidden[b, t]
        fisher = np.diag(p) - np.outer(p, p)
        curvature = advantage[b, t] * ((v @ u) ** 2 - u @ fisher @ u)
        change = RATE * (gradient**2).sum() + RATE**2 * curvature / 2
        assert_agrees(predicted_change[b, t], change)
        assert_agrees(shift[b, t], RATE**2 * (v @ u) ** 2 / 2)


def test_without_advantage_nothing_changes():
    _, logp, ids, tokens, hidden = case()
    change, shift = predict(np.zeros((2, 3)), logp, ids, tokens, hidden)
    assert not np.asarray(change).any() and not np.asarray(shift).any()


def test_a_limit_that_is_not_positive_is_refused():
    with pytest.raises(ValueError, match="change_limit must be positive, got 0"):
        drop_unstable_steps(0, 1e-4, 1e-5, 50)
