"""States of parts keep their fields, shapes and dtypes, in losses and in experiences."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.parts import Curriculum, Draw, Stage
from rlvr_jax.objectives import Transform, group_normalized, objective, reinforce, token_mean

FLOAT, COUNT = jnp.zeros((), jnp.float32), jnp.zeros((), jnp.int32)
PAIR, THREE = jnp.zeros(2, jnp.float32), jnp.zeros(3, jnp.float32)

# What a part begins with, what an update makes of it, and how both are told.
CHANGED = {
    "a shape": (FLOAT, lambda s: THREE, "float32[]", "float32[3]"),
    "a smaller shape": (THREE, lambda s: s.mean(), "float32[3]", "float32[]"),
    "a further axis": (THREE, lambda s: s[None], "float32[3]", "float32[1, 3]"),
    "counts to floats": (COUNT, lambda s: s.astype(jnp.float32), "int32[]", "float32[]"),
    "floats to counts": (PAIR, lambda s: s.astype(jnp.int32), "float32[2]", "int32[2]"),
    "half the digits": (PAIR, lambda s: s.astype(jnp.bfloat16), "float32[2]", "bfloat16[2]"),
    "a lost field": ({"a": FLOAT, "b": PAIR}, lambda s: {"a": s["a"]}, "float32[2]", "nothing"),
    "a new field": ({"a": FLOAT}, lambda s: {**s, "b": PAIR}, "nothing", "float32[2]"),
    "a state of nothing": ((), lambda s: PAIR, "nothing", "float32[2]"),
}
KEPT = {
    "as it was": (THREE, lambda s: s + 1),
    "a number of Python": (FLOAT, lambda s: 1.0),
    "fields": ({"a": PAIR, "b": COUNT}, lambda s: {**s, "b": s["b"] + 1}),
}


def loss_with(start, change):
    def remember(signals, context, state):
        return signals, change(state), {}

    part = Transform(remember, lambda spec: start)
    return objective(
        group_normalized(), transforms=[part], surrogate=reinforce(), aggregation=token_mean()
    )


@pytest.mark.parametrize("name", CHANGED)
def test_a_loss_names_the_part_and_both_kinds(name):
    start, change, before, after = CHANGED[name]
    made, batch = loss_with(start, change), golden.rollouts("b")
    state = made.init(golden.spec(batch))
    step = jax.jit(lambda stats, state: made.loss(stats, batch, state, jax.random.key(0)))
    with pytest.raises(ValueError, match=r"state.* of loss_with must stay .* got ") as told:
        step(golden.stats("b"), state)
    assert before in str(told.value) and after in str(told.value)


@pytest.mark.parametrize("name", KEPT)
def test_a_state_that_is_kept_goes_on(name):
    start, change = KEPT[name]
    made, batch = loss_with(start, change), golden.rollouts("b")
    state = made.init(golden.spec(batch))
    _, (new, _) = made.loss(golden.stats("b"), batch, state, jax.random.key(0))
    assert jax.tree.structure(new) == jax.tree.structure(state)


def in_numpy(tree):
    return jax.tree.map(np.asarray, tree)


def part_with(kind, start, change):
    start = in_numpy(start)

    def new(state):
        return in_numpy(change(jax.tree.map(jnp.asarray, state)))

    def init(setting):
        return start

    if kind == "stage":

        def staged(batch, actor, state, turn):
            return batch, new(state), {}

        return {"stages": [Stage(staged, init)]}
    if kind == "draw":

        def sampled(requests, actor, state, turn):
            return actor.draw(requests, turn.key), new(state), {}

        return {"draw": Draw(sampled, init)}

    def observed(state, turn, seen, learned):
        return new(state), {}

    def propose(requests, state, turn):
        return experience().curricula["shuffled_epochs"].propose(requests, state, turn)

    return {"curriculum": Curriculum(propose, init, observed)}


@pytest.mark.parametrize("kind", ["stage", "draw", "curriculum"])
@pytest.mark.parametrize("name", CHANGED)
def test_an_experience_names_the_part_and_both_kinds(kind, name):
    start, change, before, after = CHANGED[name]
    chain = experience(**part_with(kind, start, change))
    with pytest.raises(ValueError, match=r"part_with: state.* must .* got ") as told:
        numpy_actor.walk(chain, steps=1)
    assert before in str(told.value) and after in str(told.value)
