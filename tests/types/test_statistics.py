"""A token statistic that is declared outside of the library: one entry is all it needs."""

from dataclasses import replace as changed

import jax
import jax.numpy as jnp
import pytest
from devices import NEEDS_EIGHT_DEVICES
from numpy.testing import assert_allclose
from tiny_batch import BUDGET, ROWS, batch, tiny

from rlvr_jax import exact_gradient
from rlvr_jax.objectives import Spec, Transform, statistic_penalty
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.parallel import distribute, make_mesh, replicated, row_sharding
from rlvr_jax.policy import hidden_states, score
from rlvr_jax.training import objective_gradient
from rlvr_jax.types import STATISTICS, TokenStats, part, replace, statistic
from rlvr_jax.types.hyperparameters import NonNegative
from rlvr_jax.types.token_stats import TOKEN

ROUNDING = 1e-10  # of sums in another order, float64


def negative_log(p_squared):
    return -jnp.log(jnp.maximum(p_squared, 1e-30))  # 0 off the mask


statistic("collision_entropy", TOKEN, "-log Σ p², nats", of=("p_squared",), compute=negative_log)
statistic(
    "entropy_gap",
    TOKEN,
    "Shannon entropy minus collision entropy, nats",
    of=("entropy", "collision_entropy"),
    compute=jnp.subtract,
    gradient=False,
)


@part(reads={"collision_entropy", "entropy_gap", "old_collision_entropy"}, writes={"penalty"})
def collision_bonus(coefficient: NonNegative) -> Transform:
    def apply(signals, context, state):
        stats, old = context.stats.records, context.rollouts.records["old_collision_entropy"]
        bonus = stats["collision_entropy"] * (1 + stats["entropy_gap"]) - old
        return replace(signals, penalty=signals.penalty - coefficient * bonus), state, {}

    return apply


OWN = clipped_objective(regularizers=[collision_bonus(0.5)])


def brute_force(params, rows):
    """All statistics from the logits of the whole vocabulary, without the registry."""
    model = tiny()[0]
    hidden = hidden_states(model, params, rows)
    logits = hidden @ model.unembedding(params).astype(hidden.dtype).T
    logp = jax.nn.log_softmax(logits / rows.temperature[:, :, None])
    p = jnp.exp(logp)
    own = jnp.take_along_axis(logp, rows.tokens[:, :, None], axis=-1)[..., 0]
    collision = -jnp.log(jnp.sum(p * p, axis=-1))
    entropy = -jnp.sum(p * logp, axis=-1)
    gap = jax.lax.stop_gradient(entropy - collision)
    arrays = dict(logp=own, entropy=entropy, collision_entropy=collision, entropy_gap=gap)
    return TokenStats.of_arrays(
        {name: jnp.where(rows.mask, array, 0) for name, array in arrays.items()}
    )


def arguments(rollouts=None):
    rollouts = batch() if rollouts is None else rollouts
    return OWN, tiny()[1], rollouts, OWN.init(Spec(4, ROWS, BUDGET)), jax.random.key(3)


def assert_same(found, wanted):
    assert_allclose(found.loss, wanted.loss, rtol=ROUNDING)
    jax.tree.map(
        lambda x, y: assert_allclose(x, y, rtol=0, atol=ROUNDING), found.grads, wanted.grads
    )


@pytest.mark.thorough
@pytest.mark.parametrize("micro_batches", [1, 2, 4])
def test_training_measures_it_in_micro_batches(micro_batches):
    wanted = exact_gradient(brute_force, *arguments(), fresh=True)
    found = jax.jit(
        lambda: objective_gradient(tiny()[0], *arguments(), fresh=True, micro_batches=micro_batches)
    )()
    assert_same(found, wanted)
    plain = clipped_objective()
    bare = exact_gradient(brute_force, plain, *arguments()[1:], fresh=True)
    assert not any(
        jnp.allclose(x, y)
        for x, y in zip(*map(jax.tree.leaves, (bare.grads, wanted.grads)), strict=True)
    )


@pytest.mark.thorough
@NEEDS_EIGHT_DEVICES
def test_training_measures_it_on_a_mesh():
    mesh = make_mesh("data=8")
    rows = distribute(batch(), row_sharding(mesh))
    own, params, _, state, key = arguments()
    params = distribute(params, replicated(mesh))
    model = changed(tiny()[0], mesh=mesh)
    found = jax.jit(
        lambda params, rows: objective_gradient(model, own, params, rows, state, key, fresh=True)
    )(params, rows)
    assert len(found.stats.records["collision_entropy"].sharding.device_set) == 8
    assert_same(found, exact_gradient(brute_force, *arguments(), fresh=True))


def test_a_policy_scores_it():
    found = score(tiny()[0], tiny()[1], batch(), {"entropy_gap"})
    assert [*found.arrays] == ["entropy_gap"]
    wanted = brute_force(tiny()[1], batch()).records["entropy_gap"]
    assert_allclose(found.records["entropy_gap"], wanted, rtol=0, atol=ROUNDING)


def test_compiled_losses_are_not_shared_where_a_statistic_may_be_declared_again():
    parts = [statistic_penalty(0.1, name) for name in ("varentropy", "collision_entropy")]
    made = [clipped_objective(regularizers=[part]) for part in parts]
    assert [one.lasting for one in made] == [True, False]
    assert parts[1].lasting  # its arguments are plain values


def test_another_shape_than_declared_is_refused():
    statistic("total_entropy", TOKEN, "of a row", of=("entropy",), compute=lambda x: x.sum(1))
    told = r"'total_entropy' must have the shape \[B, T\] with \[B, T\] = \[8, 5\], got \[8\]"
    with pytest.raises(ValueError, match=told):
        score(tiny()[0], tiny()[1], batch(), {"total_entropy"})
    del STATISTICS["total_entropy"]


def test_a_declaration_that_cannot_be_used_is_refused():
    with pytest.raises(ValueError, match="'mine' must have of and compute, got"):
        statistic("mine", TOKEN, "a number")
    with pytest.raises(ValueError, match=r"'mine' must be of declared .* \['entropie'\]"):
        statistic("mine", TOKEN, "a number", of=("entropie",), compute=jnp.negative)
    with pytest.raises(ValueError, match=r"'entropy' must have one declaration, got one of rlvr"):
        statistic("entropy", TOKEN, "mine", of=("logp",), compute=jnp.negative)
    with pytest.raises(ValueError, match=r"a statistic must be declared .* got 'entropie'"):
        TokenStats(records={}).replace(entropie=jnp.zeros((8, 5)))
