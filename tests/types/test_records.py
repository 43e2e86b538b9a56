"""Records that are declared outside of the library are carried like the library's own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from devices import NEEDS_EIGHT_DEVICES
from jaxtyping import Array, Float, Int
from numpy.testing import assert_allclose, assert_array_equal

from rlvr_jax import exact_gradient, methods
from rlvr_jax.experience import Batch, concatenate
from rlvr_jax.objectives import Spec, Transform
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.parallel import distribute, make_mesh, row_sharding
from rlvr_jax.rollout import load_rollouts, save_rollouts
from rlvr_jax.runs.composition import writers_of
from rlvr_jax.training.arrangement import Shuffle, arrange
from rlvr_jax.training.plan import BatchPlan
from rlvr_jax.training.update import check_needs
from rlvr_jax.types import Recipe, Rollouts, Signals, TokenStats, declare, part, replace

ROWS, WIDTH, VOCABULARY = 16, 5, 7
ROUNDING = 1e-12  # of sums in another order, float64

declare("difficulty", Float[Array, "B T"], "how hard the token is")
declare("labels", Int[Array, "B F"], "ids of the row's topics", missing=-1)


@part(reads={"difficulty"}, writes={"weight"})
def weigh_by_difficulty() -> Transform:
    def apply(signals: Signals, context, state):
        weight = signals.weight * context.rollouts.records["difficulty"]
        return replace(signals, weight=weight), state, {}

    return apply


def rollouts(rows=ROWS, labels=2, seed=0, **changes):
    random = np.random.default_rng(seed)
    length = random.integers(1, WIDTH + 1, rows)
    records = {
        "old_logp": random.uniform(-3, -1, (rows, WIDTH)),
        "difficulty": random.uniform(0, 1, (rows, WIDTH)),
        "labels": random.integers(0, 9, (rows, labels)).astype(np.int32),
    }
    made = Rollouts.of_responses(
        random.integers(0, VOCABULARY, (rows, WIDTH)).astype(np.int32),
        np.arange(WIDTH) < length[:, None],
        random.integers(0, 2, rows).astype(float),
        np.repeat(np.arange(rows // 4, dtype=np.int32), 4),
        **records | changes,
    )
    return jax.tree.map(np.asarray, made)


def bigrams(params, rows):
    table = jax.nn.log_softmax(params, axis=-1)
    before = jnp.pad(rows.tokens, ((0, 0), (1, 0)))[:, :-1]
    logp = jnp.take_along_axis(table[before], rows.tokens[..., None], axis=-1)[..., 0]
    return TokenStats(logp=jnp.where(rows.mask, logp, 0))


def gradient(own, rows, **how):
    params = jnp.asarray(np.random.default_rng(1).normal(size=(VOCABULARY, VOCABULARY)))
    state, key = own.init(Spec(4, ROWS, WIDTH)), jax.random.key(0)
    return exact_gradient(bigrams, own, params, rows, state, key, **how).grads


@pytest.mark.thorough
def test_a_loss_reads_the_record_in_micro_batches():
    own = clipped_objective(transforms=[weigh_by_difficulty()])
    wanted = gradient(own, rollouts())
    plain = gradient(own, rollouts(difficulty=np.ones((ROWS, WIDTH))))
    assert not np.allclose(wanted, plain)
    for micro_batches in (2, 8):
        found = gradient(own, rollouts(), micro_batches=micro_batches)
        assert_allclose(found, wanted, rtol=0, atol=ROUNDING)


@NEEDS_EIGHT_DEVICES
def test_a_loss_reads_the_record_on_a_mesh():
    own, mesh = clipped_objective(transforms=[weigh_by_difficulty()]), make_mesh("data=8")
    rows = distribute(rollouts(), row_sharding(mesh))
    found = jax.jit(lambda rows: gradient(own, rows, micro_batches=2, mesh=mesh))(rows)
    assert_allclose(found, gradient(own, rollouts()), rtol=0, atol=ROUNDING)


def test_joined_batches_are_padded_with_the_missing_number():
    one, two = rollouts(8, labels=2), rollouts(4, labels=3, seed=1, difficulty=None)
    joined = concatenate([Batch(x, [None] * len(x.group), ()) for x in (one, two)]).rollouts
    assert_array_equal(joined.records["labels"][:8, 2], -1)
    assert_array_equal(joined.records["labels"][8:], two.records["labels"])
    assert_array_equal(joined.records["difficulty"][8:], 0)


def test_empty_rows_of_an_update_have_the_missing_number():
    plan = BatchPlan(prompts=8, samples=4)
    made = arrange(plan, rollouts(), False, None, Shuffle(0, 0))
    assert len(made.rollouts.group) > ROWS
    assert_array_equal(made.rollouts.records["labels"][ROWS:], -1)
    assert_array_equal(made.rollouts.records["difficulty"][ROWS:], 0)


def test_a_file_holds_the_record(tmp_path):
    path, saved = tmp_path / "rollouts.npz", rollouts(old_logsumexp=np.ones((ROWS, WIDTH)))
    save_rollouts(path, saved, TokenStats(logp=saved.old_logp))
    loaded, _, _ = load_rollouts(path)
    assert loaded.arrays.keys() == saved.arrays.keys()
    for name in ("labels", "difficulty", "old_logsumexp"):
        assert_array_equal(loaded.records[name], saved.records[name])
    with np.load(path) as archive:
        np.savez(path, **archive, **{"rollouts/mood": np.zeros(ROWS)})
    with pytest.raises(ValueError, match=r"got rollouts/mood; import the module that declares it"):
        load_rollouts(path)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"dificulty": np.zeros((ROWS, WIDTH))}, "got 'dificulty'; closest: difficulty"),
        ({"difficulty": np.zeros(ROWS)}, r"'difficulty' must have the shape \[16, 5\] .* \[16\]"),
        ({"difficulty": np.zeros((ROWS, WIDTH), int)}, "'difficulty' must be Float .* got int"),
        ({"labels": 3}, r"'labels' must have the shape \[16, F\] .* got no array"),
    ],
)
def test_an_array_that_is_not_as_declared_is_refused(changes, told):
    with pytest.raises(ValueError, match=told):
        rollouts().replace(**changes)


def test_a_name_has_one_declaration():
    with pytest.raises(ValueError, match="'origin' must have one declaration, got one of rlvr_jax"):
        declare("origin", Int[Array, "B T"], "who wrote the token")
    with pytest.raises(ValueError, match="the axes of 'mood' must begin with B, got 'T'"):
        declare("mood", Float[Array, "T"], "of the token")
    # A cell of a notebook that is run again.
    declare("labels", Int[Array, "B F"], "ids of the row's topics", missing=-1)


def test_a_record_that_nothing_writes_is_refused_with_the_parts_that_could():
    with pytest.raises(ValueError, match="reads difficulty, which no part of this run writes") as e:
        own = clipped_objective(transforms=[weigh_by_difficulty()])
        check_needs(Recipe(own), "mine", 1, writers=writers_of)
    assert "difficulty: none" in str(e.value)
    with pytest.raises(ValueError, match=r"formulas: \w+ \(of dsdr\)"):
        check_needs(Recipe(methods.recipe("dsdr").objective), "dsdr", 1, writers=writers_of)
