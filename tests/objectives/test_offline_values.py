"""Implicit Q-learning on an agent's tokens, and imagined dialogues."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rlvr_jax.objectives.advantages.offline_values import (
    ValueHeads,
    implicit_q_losses,
    moved_targets,
    next_action,
    value_perturbed,
)
from rlvr_jax.tasks.derived.dialogues import imagine, split_by_persona

PRINTED = 5e-7  # half a unit of the sixth digit


def example(human=0.0):
    """The worked example, with a token of the other side between the agent's two."""

    def table(one, other):
        return jnp.array([[one, [human] * 3, other]])

    q = table([0.2, 0.6, 0.1], [0.9, 0.3, 0]), table([0.1, 0.5, 0.3], [0.7, 0.2, 0.4])
    targets = table([0.2, 0.7, 0.1], [0.8, 0.3, 0]), table([0.3, 0.4, 0.3], [1.0, 0.2, 0.4])
    return {
        "heads": ValueHeads(q, targets, jnp.array([[0.5, human, 0.4]])),
        "logp": jnp.array([[-1.0, human, -3.0]]),
        "tokens": jnp.array([[1, 2, 0]], jnp.int32),
        "mask": jnp.array([[True, False, True]]),
        "reward": jnp.array([[0.0, human, 1.0]]),
        "expectile": 0.8,
    }


def test_the_worked_example():
    found = implicit_q_losses(**example(), conservatism=0.5)
    assert_allclose(found.action, 0.076216, atol=PRINTED)
    assert_allclose(found.state, 0.065, atol=PRINTED)
    assert_allclose(found.conservative, 1.629283, atol=PRINTED)
    assert_allclose(found.policy, 2.0)
    total = found.action + found.state + 0.5 * found.conservative + found.policy
    assert_allclose(found.total, total)


def test_the_next_state_is_behind_the_other_sides_turn():
    value, there = next_action(example()["heads"].value, example()["mask"])
    assert_allclose(value[0, 0], 0.4)
    assert_array_equal(there[0], [True, True, False])


def test_the_other_sides_tokens_change_no_loss():
    one, other = (implicit_q_losses(**example(human)) for human in (0.0, 7.0))
    for a, b in zip(one, other, strict=True):
        assert_array_equal(a, b)


def test_targets_get_no_gradient_and_imitation_is_weighed():
    own = example()

    def loss(targets):
        heads = own["heads"]._replace(target_q=targets)
        return implicit_q_losses(**{**own, "heads": heads}, sharpness=2.0).total

    slopes = jax.tree.leaves(jax.grad(loss)(own["heads"].target_q))
    assert not any(np.asarray(slope).any() for slope in slopes)
    weighed = implicit_q_losses(**own, sharpness=2.0).policy
    wanted = (np.exp(2 * (0.4 - 0.5)) * 1 + np.exp(2 * (0.8 - 0.4)) * 3) / 2
    assert_allclose(weighed, wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("beta", "wanted"),
    [
        (0, [0.7, 0.2, 0.1]),
        (1, [0.819005, 0.128423, 0.052572]),
        (4, [0.969234, 0.025122, 0.005644]),
    ],
)
def test_the_worked_example_of_decoding(beta, wanted):
    targets = jnp.array([0.8, 0.3, 0]), jnp.array([1.0, 0.2, 0.4])
    logits = jnp.log(jnp.array([0.7, 0.2, 0.1]))
    found = jax.nn.softmax(value_perturbed(logits, targets, jnp.array(0.4), beta))
    assert_allclose(found, wanted, atol=2 * PRINTED)


def test_targets_follow_slowly():
    found = moved_targets({"w": jnp.array(1.0)}, {"w": jnp.array(3.0)}, 0.005)
    assert_allclose(found["w"], 1.01)


def stitched(expectile):
    """Q(s_0, ask), from dialogues of which none did the right thing all the way.

    States are one-hot rows of a table; the tabular minimum of the losses is found by descent.
    """
    # Rows: a token of s_0 (guess 0, ask 1), then of s_1 (wrong 0, right 1).
    rows = [([0], [0], [0.3])] * 6 + [([1, 0], [0, 1], [0.0, 0.0])] * 6
    rows += [([1], [1], [1.0])] * 2
    width = 2
    tokens, states, reward, mask = (
        np.zeros((len(rows), width), int),
        np.zeros((len(rows), width), int),
        np.zeros((len(rows), width)),
        np.zeros((len(rows), width), bool),
    )
    for place, (actions, where, earned) in enumerate(rows):
        size = len(actions)
        tokens[place, :size], states[place, :size] = actions, where
        reward[place, :size], mask[place, :size] = earned, True
    known = dict(tokens=jnp.asarray(tokens, jnp.int32), mask=jnp.asarray(mask))
    known |= dict(reward=jnp.asarray(reward), logp=jnp.zeros(mask.shape))

    def loss(tables):
        q, value = tables["q"][states], tables["v"][states]
        heads = ValueHeads((q, q), (q, q), value)
        return implicit_q_losses(heads, expectile=expectile, conservatism=0.0, **known).total

    tables = {"q": jnp.zeros((2, 2)), "v": jnp.zeros(2)}
    descend = jax.jit(lambda t: jax.tree.map(lambda x, g: x - 0.5 * g, t, jax.grad(loss)(t)))
    for _ in range(4000):
        tables = descend(tables)
    return tables


def test_a_high_expectile_stitches_what_no_dialogue_did():
    best, mean = stitched(0.9), stitched(0.5)
    assert_allclose(best["v"][1], 0.75, atol=1e-3)
    assert_allclose(best["q"][0, 1], 0.7425, atol=1e-3)
    assert_allclose(mean["v"][1], 0.25, atol=1e-3)
    assert_allclose(mean["q"][0, 1], 0.2475, atol=1e-3)
    assert_allclose(best["q"][0, 0], 0.3, atol=1e-3)


def scripted(description, persona, dialogues):
    assert description == "guess"
    return [
        ((("agent", "ask"), ("human", f"p{persona}"), ("agent", "guess")), float(number % 2))
        for number in range(dialogues)
    ]


def test_imagined_dialogues_are_split_by_persona():
    found = imagine(scripted, "guess", 4, 3)
    assert len(found) == 12
    train, test = split_by_persona(found, 0.5)
    sides = [{dialogue.persona for dialogue in part} for part in (train, test)]
    assert len(sides[0]) == len(sides[1]) == 2 and not sides[0] & sides[1]
    assert sorted(sides[0] | sides[1]) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("turn", "outcome", "message"),
    [
        (("judge", "x"), 0.0, r"turns must be of 'agent' or 'human', got \['judge'\]"),
        (("agent", "x"), 2.0, r"outcome must be in \[0, 1\], got 2"),
    ],
)
def test_dialogues_that_cannot_be_are_refused(turn, outcome, message):
    with pytest.raises(ValueError, match=message):
        imagine(lambda *_: [((turn,), outcome)], "x", 1, 1)
