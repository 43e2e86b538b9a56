"""Temperatures and a processor's constants that move from call to call, in one program."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiling import compilations
from devices import NEEDS_EIGHT_DEVICES
from numpy.testing import assert_allclose, assert_array_equal
from pool_rows import (
    EXACT,
    GREEDY,
    MODEL,
    PARAMS,
    PLAIN,
    PROMPT_LENGTH,
    PROMPTS,
    ROWS,
    STEPS,
    STOP,
    assert_same_rows,
    copy,
    cut_back,
    draw,
    keys,
    run,
    started,
)

from rlvr_jax import policy
from rlvr_jax.parallel import make_mesh
from rlvr_jax.rollout import (
    Processor,
    Prompts,
    Sampling,
    compose,
    decode,
    sample,
    to_rollouts,
    verify,
)
from rlvr_jax.rollout.sample import draw_groups

score = jax.jit(policy.score, static_argnums=(0, 3))

TEMPERATURES = np.array([0.6, 1.0, 1.7, 0.9])
SAMPLES = 3


def answers(model=MODEL, *, sampling=PLAIN, at_once=None, temperature=None, **changes):
    return sample(
        model,
        PARAMS,
        Prompts(
            PROMPTS,
            PROMPT_LENGTH,
            np.arange(ROWS, dtype=np.int32),
            np.zeros(ROWS, np.int32),
            temperature,
        ),
        jax.random.key(2),
        samples=SAMPLES,
        response_tokens=STEPS,
        sampling=sampling,
        stop_tokens=(STOP,),
        at_once=at_once,
        **changes,
    )


def assert_same(found, wanted):
    assert found.arrays.keys() == wanted.arrays.keys()
    for name, values in wanted.arrays.items():
        if np.issubdtype(values.dtype, np.floating):
            assert_allclose(found.get(name), values, err_msg=name, **EXACT)
        else:
            assert_array_equal(found.get(name), values, err_msg=name)


def _annealed(logits, carry, context):
    return logits / _heat(carry, context)[:, None].astype(logits.dtype), carry


def _heat(carry, context):
    """A temperature that falls with the steps of the row, from a start to a floor."""
    del carry
    start, decay = context.constants["start"], context.constants["decay"]
    return jnp.maximum(start * jnp.exp(-decay * context.position.astype(start.dtype)), 0.3)


ANNEALED = Sampling(processor=Processor(lambda rows: None, _annealed, _heat))
CONSTANTS = {"start": TEMPERATURES, "decay": np.float64(0.2)}


def heats(rows, start=TEMPERATURES, decay=0.2):
    """What `_heat` is at each step of rows that answer the prompts."""
    start = np.repeat(start, rows // ROWS)[:, None]
    return np.maximum(start * np.exp(-decay * np.arange(STEPS)), 0.3)


@pytest.mark.thorough
def test_a_temperature_that_is_given_is_that_of_the_settings():
    settings = answers(sampling=Sampling(0.7)).replace(sampled_temperature=None)
    given = answers(temperature=0.7)
    assert_array_equal(given.records["sampled_temperature"], given.temperature)
    assert_same(given.replace(sampled_temperature=None), settings)


@pytest.mark.thorough
def test_each_prompt_has_its_temperature_and_is_scored_at_it():
    sampled = answers(temperature=TEMPERATURES)
    rows = np.repeat(TEMPERATURES, SAMPLES)
    assert_array_equal(sampled.temperature, np.broadcast_to(rows[:, None], sampled.mask.shape))
    for prompt, temperature in enumerate(TEMPERATURES):
        part = slice(prompt * SAMPLES, (prompt + 1) * SAMPLES)
        alone = answers(temperature=float(temperature))
        assert_array_equal(sampled.tokens[part], alone.tokens[part])
    stats = score(MODEL, PARAMS, sampled, ("logp", "entropy"))
    assert_allclose(sampled.behaviour_logp, stats.logp, **EXACT)
    assert_allclose(sampled.entropy, stats.entropy, **EXACT)


@pytest.mark.thorough
def test_a_temperature_or_a_constant_that_moves_is_no_other_program():
    draw_groups.clear_cache()
    with compilations("draw_groups") as compiled:
        for scale in (1.0, 1.1):
            constants = {"start": scale * TEMPERATURES, "decay": np.float64(0.2 * scale)}
            answers(sampling=ANNEALED, temperature=scale * TEMPERATURES, constants=constants)
    assert len(compiled) == 1


@pytest.mark.thorough
def test_what_a_processor_divides_by_is_recorded_beside_what_is_scored():
    sampled = answers(sampling=ANNEALED, constants=CONSTANTS)
    mask = np.asarray(sampled.mask)
    assert_array_equal(sampled.temperature, np.ones(mask.shape))
    assert_allclose(
        sampled.records["sampled_temperature"], np.where(mask, heats(len(mask)), 1), **EXACT
    )
    hot = score(MODEL, PARAMS, sampled.replace(temperature=sampled.records["sampled_temperature"]))
    assert_allclose(sampled.behaviour_logp, hot.logp, **EXACT)
    both = answers(sampling=ANNEALED, constants=CONSTANTS, temperature=0.5)
    mask = np.asarray(both.mask)
    assert_array_equal(both.temperature, np.full(mask.shape, 0.5))
    expected = np.where(mask, 0.5 * heats(len(mask)), 0.5)
    assert_allclose(both.records["sampled_temperature"], expected, **EXACT)


def test_composed_processors_divide_by_the_product_and_see_the_row_s_temperature():
    undone = Processor(
        lambda rows: None,
        lambda logits, carry, context: (logits * context.temperature[:, None], carry),
        lambda carry, context: 1 / context.temperature,
    )
    chain = compose(
        ANNEALED.processor, undone, Processor(lambda rows: None, lambda z, c, _: (z, c))
    )
    found = answers(sampling=Sampling(processor=chain), temperature=0.5, constants=CONSTANTS)
    alone = answers(sampling=ANNEALED, constants=CONSTANTS)
    assert_array_equal(found.tokens, alone.tokens)
    assert_allclose(found.behaviour_logp, alone.behaviour_logp, **EXACT)
    mask = np.asarray(found.mask)
    wanted = np.where(mask, alone.records["sampled_temperature"], 0.5)
    assert_allclose(found.records["sampled_temperature"], wanted, **EXACT)


@pytest.mark.thorough
@NEEDS_EIGHT_DEVICES
@pytest.mark.parametrize("mesh, at_once", [(None, 5), ("data=4", None), ("data=2,tensor=2", None)])
def test_the_same_is_drawn_in_turn_and_over_meshes(mesh, at_once):
    settings = dict(sampling=ANNEALED, temperature=TEMPERATURES, constants=CONSTANTS)
    model = MODEL if mesh is None else replace(MODEL, mesh=make_mesh(mesh, jax.devices()[:4]))
    assert_same(answers(model, at_once=at_once, **settings), answers(**settings))


@pytest.mark.slow
def test_a_row_keeps_its_temperature_and_forks_take_it_along():
    hot = jax.jit(partial(decode, MODEL), static_argnames=("steps", "sampling", "stop_tokens"))
    pool = draw(started(), 2, Sampling(0.8))
    pool = hot(PARAMS, pool, 2, Sampling(0.8), (), temperature=TEMPERATURES)
    source = np.array([2, 0, 0, 3])
    pool = draw(copy(pool, source, PROMPT_LENGTH[source] + 3, keys()), 2, Sampling(0.8))
    rollouts = to_rollouts(pool, PROMPTS[source], STEPS, Sampling(0.8))
    own = np.repeat(TEMPERATURES[source][:, None], STEPS, axis=1)
    own[:, :2] = 0.8
    assert_array_equal(rollouts.temperature, own)
    assert_array_equal(rollouts.records["sampled_temperature"], own)
    assert_allclose(rollouts.behaviour_logp, score(MODEL, PARAMS, rollouts).logp, **EXACT)


@pytest.mark.slow
def test_a_draft_is_recorded_at_the_temperature_of_its_row():
    sampled = run(PARAMS, started(), STEPS, PLAIN, (), temperature=TEMPERATURES)
    draft = to_rollouts(sampled, PROMPTS, STEPS, PLAIN).tokens
    begun = cut_back(sampled, PROMPT_LENGTH)
    count = np.full(ROWS, STEPS)
    taken = verify(MODEL, PARAMS, begun, draft, count, lambda logp, uniform: uniform < 2)
    names = ("logp", "behaviour_logp", "entropy", "token_temperature")
    assert_same_rows(taken, sampled, names)


@pytest.mark.thorough
def test_a_cold_temperature_is_greedy():
    found = run(PARAMS, started(), STEPS, PLAIN, (), temperature=1e-4)
    assert_array_equal(found.tokens, draw(started(), sampling=GREEDY).tokens)
