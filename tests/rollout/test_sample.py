"""Plain sampling: what a rollout depends on, and what is recorded about it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiling import compilations
from devices import NEEDS_EIGHT_DEVICES
from numpy.testing import assert_allclose, assert_array_equal
from pool_rows import sequences
from scipy.stats import chi2

from rlvr_jax.parallel import make_mesh
from rlvr_jax.policy import Model, named_config, products, score
from rlvr_jax.rollout import Processor, Prompts, Sampling, row_keys, sample
from rlvr_jax.types import replace

VOCABULARY, WIDTH, BUDGET, SAMPLES = 11, 4, 6, 1000
STOP = 0
PROMPTS = np.random.default_rng(0).integers(1, VOCABULARY, (3, WIDTH)).astype(np.int32)
PROMPT_LENGTH = np.array([4, 2, 3], np.int32)
PROMPT_ID = np.array([7, 0, 3], np.int32)

MODEL = Model(named_config("tiny", VOCABULARY, num_layers=1))

# float32 log-probs of tokens of logits below 20 in size: what the sampler's cached pass and the
# scorer's full pass may differ by
SINGLE = dict(rtol=1e-5, atol=1e-5)


def _parameters():
    """Random weights of a policy that is sure of some tokens and not of others."""
    random = np.random.default_rng(1)
    shapes = jax.eval_shape(MODEL.init, jax.random.key(0))
    params = jax.tree.map(lambda leaf: jnp.asarray(random.normal(0, 0.2, leaf.shape)), shapes)
    return jax.tree.map(lambda leaf: leaf.astype(jnp.float32), params)


PARAMS = _parameters()


def _later_is_hotter(logits, carry, context):
    """A temperature that grows with the steps of the row, which the carry counts."""
    del context
    return logits / (1 + 0.2 * carry[:, None].astype(logits.dtype)), carry + 1


HOTTER = Processor(lambda rows: jnp.zeros(rows, jnp.int32), _later_is_hotter)
SETTINGS = {
    "plain": Sampling(),
    "top-k": Sampling(temperature=0.5, top_k=3),
    "top-p": Sampling(temperature=2.0, top_p=0.7),
    "min-p": Sampling(min_p=0.1),
    "everything": Sampling(0.8, top_k=6, top_p=0.9, min_p=0.05, processor=HOTTER),
}
every_setting = pytest.mark.parametrize("name", SETTINGS)


def draw(rows=slice(None), *, sampling=SETTINGS["plain"], first_sample=0, seed=1, **changes):
    """One program for each sampling, compiled once for all tests; `changes` compile another."""
    prompt_id = PROMPT_ID[rows]
    settings = dict(samples=SAMPLES, response_tokens=BUDGET, stop_tokens=(STOP,))
    return sample(
        MODEL,
        PARAMS,
        Prompts(
            PROMPTS[rows], PROMPT_LENGTH[rows], prompt_id, np.full_like(prompt_id, first_sample)
        ),
        jax.random.key(seed),
        sampling=sampling,
        **{**settings, "weight_version": jnp.asarray(0, jnp.int32), **changes},
    )


to_logits = jax.jit(MODEL.logits)
to_stats = jax.jit(lambda rollouts: score(MODEL, PARAMS, rollouts, ("logp", "entropy")))


def response_logits(rollouts):
    """Logits at every response position from full passes, at the temperature, in float64."""
    logits = np.asarray(to_logits(PARAMS, sequences(rollouts)), np.float64)
    index = np.asarray(rollouts.prompt_length)[:, None] - 1 + np.arange(BUDGET)
    logits = np.take_along_axis(logits, index[:, :, None], axis=1)
    return logits / np.asarray(rollouts.temperature, np.float64)[:, :, None]


def processed(logits, sampling, step):
    """The distribution that is drawn from, token by token, from its definition."""
    if sampling.processor is not None:
        logits = logits / (1 + 0.2 * step)
    p = np.exp(logits - logits.max())
    p /= p.sum()
    if sampling.top_k:
        p = np.where(p >= np.sort(p)[-sampling.top_k], p, 0)
        p /= p.sum()
    if sampling.top_p < 1:
        order = np.argsort(-p)
        size = 1 + np.argmax(np.cumsum(p[order]) >= sampling.top_p)
        p = np.where(np.isin(np.arange(len(p)), order[:size]), p, 0)
        p /= p.sum()
    if sampling.min_p:
        p = np.where(p >= sampling.min_p * p.max(), p, 0)
        p /= p.sum()
    return p


@every_setting
def test_log_probs_and_entropies_are_the_scorer_s(name):
    rollouts = draw(sampling=SETTINGS[name])
    stats = to_stats(rollouts)
    assert_allclose(rollouts.entropy, stats.entropy, **SINGLE)
    if SETTINGS[name].chain() is None:
        assert_allclose(rollouts.behaviour_logp, stats.logp, **SINGLE)


@every_setting
def test_the_behaviour_is_the_distribution_that_was_drawn_from(name):
    sampling = SETTINGS[name]
    rollouts = draw(sampling=sampling)
    logits, tokens = response_logits(rollouts), np.asarray(rollouts.tokens)
    some = np.arange(0, 3 * SAMPLES, 50)
    for row, step in zip(*np.nonzero(np.asarray(rollouts.mask)[some]), strict=True):
        p = processed(logits[some[row], step], sampling, step)
        sampled = p[tokens[some[row], step]]
        assert sampled > 0
        assert_allclose(rollouts.behaviour_logp[some[row], step], np.log(sampled), **SINGLE)


@every_setting
def test_frequencies_are_the_probabilities(name):
    sampling = SETTINGS[name]
    rollouts = draw(sampling=sampling)
    # The first tokens of a prompt's responses are independent draws, and the key is fixed.
    logits = response_logits(rollouts)[::SAMPLES, 0]
    tokens = np.asarray(rollouts.tokens)[:, 0].reshape(3, SAMPLES)
    recorded = np.asarray(rollouts.behaviour_logp)[:, 0].reshape(3, SAMPLES)
    statistic, freedom = 0.0, 0
    for prompt in range(3):
        p = processed(logits[prompt], sampling, 0)
        counts = np.bincount(tokens[prompt], minlength=VOCABULARY)
        assert not np.any(counts[p == 0])
        likely = p * SAMPLES >= 5
        expected = np.append(p[likely], p[~likely].sum()) * SAMPLES
        seen = np.append(counts[likely], counts[~likely].sum())[expected > 0]
        expected = expected[expected > 0]
        statistic += np.sum((seen - expected) ** 2 / expected)
        freedom += len(expected) - 1
        # exp of the recorded log-probs of the kept tokens is their distribution
        kept, first = np.unique(tokens[prompt], return_index=True)
        assert_allclose(np.exp(recorded[prompt, first]).sum(), p[kept].sum(), **SINGLE)
    assert freedom > 3
    # a right sampler fails for one key in 10 000
    assert statistic < chi2.ppf(1 - 1e-4, freedom)


def assert_same_rollouts(rollouts, expected):
    for field in ("tokens", "length", "mask", "truncated", "prompt_length"):
        assert_array_equal(rollouts.get(field), getattr(expected, field), err_msg=field)
    for field in ("behaviour_logp", "entropy"):
        assert_allclose(rollouts.get(field), getattr(expected, field), **SINGLE)


def rows_of(rollouts, rows):
    return jax.tree.map(lambda leaf: leaf[np.asarray(rows)], rollouts)


SOME = np.arange(50)  # samples of a prompt that are compared token by token


def test_a_rollout_does_not_depend_on_the_order_of_the_prompts():
    order = np.array([2, 0, 1])
    together, turned = draw(), draw(order)
    for place, prompt in enumerate(order):
        ours = rows_of(turned, place * SAMPLES + SOME)
        assert_same_rollouts(ours, rows_of(together, prompt * SAMPLES + SOME))


@pytest.mark.thorough
def test_an_opening_computed_once_changes_nothing():
    first = np.array([[3, 8, 1]] * 3, np.int32)
    each, once = (
        sample(
            MODEL,
            PARAMS,
            Prompts(
                np.concatenate([first, PROMPTS], axis=1),
                PROMPT_LENGTH + 3,
                PROMPT_ID,
                np.zeros(3, np.int32),
            ),
            jax.random.key(1),
            samples=len(SOME),
            response_tokens=BUDGET,
            sampling=Sampling(),
            stop_tokens=(STOP,),
            opening=opening,
        )
        for opening in (0, 3)
    )
    assert_same_rollouts(once, each)
    for name in ("prompt_tokens", "parent", "branch_position", "group"):
        assert_array_equal(getattr(once, name), getattr(each, name), err_msg=name)


@pytest.mark.parametrize("opening", [-1, WIDTH])
def test_an_opening_leaves_something_of_the_prompts(opening):
    with pytest.raises(
        ValueError, match=f"opening must be in 0 … 3 for prompts of 4, got {opening}"
    ):
        draw(opening=opening)


def test_a_rollout_does_not_depend_on_other_prompts_or_the_room_for_its_tokens():
    alone = sample(
        MODEL,
        PARAMS,
        Prompts(
            np.pad(PROMPTS[1:2], ((0, 0), (0, 2)), constant_values=9),
            PROMPT_LENGTH[1:2],
            PROMPT_ID[1:2],
            np.zeros(1, np.int32),
        ),
        jax.random.key(1),
        samples=len(SOME),
        response_tokens=BUDGET + 2,
        sampling=Sampling(),
        stop_tokens=(STOP,),
    )
    expected = rows_of(draw(), SAMPLES + SOME)
    begun = np.asarray(alone.mask)[:, :BUDGET]
    assert_array_equal(begun, expected.mask)
    assert_array_equal(np.asarray(alone.tokens)[:, :BUDGET], expected.tokens)
    for field in ("behaviour_logp", "entropy"):
        ours = np.asarray(getattr(alone, field))[:, :BUDGET]
        assert_allclose(ours, getattr(expected, field), **SINGLE)


def test_later_samples_go_on_where_earlier_ones_ended():
    early, late = draw(), draw(first_sample=SAMPLES - 50)
    for prompt in range(3):
        begin = prompt * SAMPLES
        ended = rows_of(early, begin + SAMPLES - 50 + SOME)
        assert_same_rollouts(rows_of(late, begin + SOME), ended)
        assert not np.array_equal(late.tokens[begin + 50 :][:50], early.tokens[begin:][:50])


def test_keys_of_prompts_and_samples_are_all_different():
    keys = row_keys(jax.random.key(0), jnp.arange(5), 4, jnp.zeros(5, jnp.int32))
    assert len(np.unique(jax.random.key_data(keys).reshape(20, -1), axis=0)) == 20


def test_another_key_draws_other_rollouts():
    assert not np.array_equal(draw().tokens, draw(seed=2).tokens)


def test_a_response_ends_with_its_stop_token_or_with_the_budget():
    rollouts = draw()
    tokens, length = np.asarray(rollouts.tokens), np.asarray(rollouts.length)
    written = np.arange(BUDGET) < length[:, None]
    last = tokens[np.arange(len(tokens)), length - 1]
    assert_array_equal(rollouts.mask, written)
    assert_array_equal(rollouts.truncated, last != STOP)
    assert np.all(length[last != STOP] == BUDGET)
    assert_array_equal(np.sum(written & (tokens == STOP), axis=1), last == STOP)
    # all three endings are seen: early, by the budget, and by a stop token that is the last
    assert np.any(length < BUDGET)
    assert np.any(last != STOP)
    assert np.any((length == BUDGET) & (last == STOP))
    for field in ("tokens", "behaviour_logp", "entropy"):
        assert not np.any(np.asarray(rollouts.get(field))[~written])


def test_any_of_several_stop_tokens_ends_a_response():
    one, two = rows_of(draw(), SOME), rows_of(draw(stop_tokens=[STOP, 5]), SOME)
    stops = np.isin(np.asarray(one.tokens), (STOP, 5)) & np.asarray(one.mask)
    length = np.where(stops.any(axis=1), stops.argmax(axis=1) + 1, BUDGET)
    assert np.any(length < np.asarray(one.length))
    assert_array_equal(two.length, length)
    assert_array_equal(two.truncated, ~stops.any(axis=1))
    assert_array_equal(two.tokens, np.where(two.mask, one.tokens, 0))


def test_what_belongs_to_the_rollout_is_filled_in():
    rollouts = draw(sampling=SETTINGS["everything"], weight_version=jnp.asarray(4, jnp.int32))
    assert_array_equal(rollouts.group, np.repeat(np.arange(3), SAMPLES))
    assert_array_equal(rollouts.rollout_id, np.arange(3 * SAMPLES))
    assert_array_equal(rollouts.prompt_tokens, np.repeat(PROMPTS, SAMPLES, axis=0))
    assert_array_equal(rollouts.prompt_length, np.repeat(PROMPT_LENGTH, SAMPLES))
    assert_array_equal(rollouts.weight_version, np.full(3 * SAMPLES, 4))
    assert_array_equal(rollouts.temperature, np.full((3 * SAMPLES, BUDGET), np.float32(0.8)))
    assert_array_equal(rollouts.parent, np.full(3 * SAMPLES, -1))
    assert_array_equal(rollouts.branch_position, np.full(3 * SAMPLES, -1))
    assert not np.any(rollouts.reward) and not np.any(rollouts.outcome)
    # of one call there is nothing more to say
    for name in ("trace", "version", "origin", "supervised", "cell", "sampled_temperature"):
        assert rollouts.get(name) is None


@pytest.mark.thorough
def test_a_shape_is_compiled_once():
    jax.clear_caches()
    with compilations("draw_groups") as compiled:
        draw()
        draw(seed=3)
        draw(np.array([1, 2, 0]), first_sample=9, seed=4)
        draw(sampling=Sampling())
    assert len(compiled) == 1


@pytest.mark.thorough
def test_float32_on_a_gpu_has_options_of_the_compiler(monkeypatch):
    usual = draw()
    monkeypatch.setattr(products, "platform", lambda mesh: "gpu")
    assert products.compiler_options("bfloat16") is None
    assert products.compiler_options("float32") == {"xla_gpu_enable_triton_gemm": False}
    jax.clear_caches()  # on a GPU the program is there
    with compilations("draw_groups") as compiled:
        assert_array_equal(draw().tokens, usual.tokens)
        draw(seed=3)
    assert len(compiled) == 1


def test_options_of_the_compiler_reach_it_but_from_within_a_program(monkeypatch):
    monkeypatch.setattr(products, "compiler_options", lambda dtype: {"no_such_option": True})
    with pytest.raises(Exception, match="no_such_option"):
        draw()
    # JAX takes those of the outermost program alone; also where all that is given is known.
    known = jax.random.key(1)
    monkeypatch.setattr(jax.random, "key", lambda seed: known)
    assert jax.jit(lambda: draw().tokens)().shape == (3 * SAMPLES, BUDGET)


@pytest.mark.thorough
@NEEDS_EIGHT_DEVICES
def test_a_cut_at_the_k_th_token_is_compiled_for_several_devices():
    # In float32, which has a routine of its own for the largest of a row.
    model = replace(MODEL, mesh=make_mesh("data=3", jax.devices()[:3]))
    settings = dict(samples=5, sampling=SETTINGS["top-k"])
    one, several = (
        sample(
            each,
            PARAMS,
            Prompts(PROMPTS, PROMPT_LENGTH, PROMPT_ID, np.zeros(3, np.int32)),
            jax.random.key(1),
            response_tokens=BUDGET,
            stop_tokens=(STOP,),
            **settings,
        )
        for each in (MODEL, model)
    )
    assert_same_rollouts(several, one)


@pytest.mark.thorough
def test_a_nearly_cold_policy_takes_the_most_probable_token():
    rollouts = draw(sampling=Sampling(temperature=1e-4))
    # the order of the logits, at a temperature at which they can be told apart
    logits = response_logits(rollouts.replace(temperature=np.ones((3 * SAMPLES, BUDGET))))
    best = np.where(rollouts.mask, logits.argmax(axis=-1), 0)
    assert_array_equal(rollouts.tokens, best)


def test_bfloat16_samples_and_records_in_float32():
    model = Model(named_config("tiny", VOCABULARY, num_layers=1, compute_dtype="bfloat16"))
    rollouts = sample(
        model,
        PARAMS,
        Prompts(PROMPTS, PROMPT_LENGTH, PROMPT_ID, np.zeros(3, np.int32)),
        jax.random.key(1),
        samples=5,
        response_tokens=BUDGET,
        sampling=Sampling(),
        stop_tokens=(STOP,),
    )
    assert rollouts.behaviour_logp.dtype == jnp.float32
    # the policy that draws, computed in float32: bfloat16 has steps of 2^-8
    exact = to_stats(rollouts).logp
    assert np.abs(rollouts.behaviour_logp - exact).max() < 0.2
