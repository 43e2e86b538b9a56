"""Drawing more responses than run at once: each is the one that all at once would give."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from devices import NEEDS_EIGHT_DEVICES
from numpy.testing import assert_allclose, assert_array_equal

from rlvr_jax.parallel import make_mesh
from rlvr_jax.policy import Model, cached, named_config
from rlvr_jax.rollout import Processor, Prompts, Sampling, find_stops, sample
from rlvr_jax.rollout.sample import draw_groups
from rlvr_jax.types import replace

VOCABULARY, BUDGET, SAMPLES, STOP = 11, 7, 5, 0
LENGTH = np.array([6, 3, 4, 6, 5, 4], np.int32)
PROMPTS = np.random.default_rng(0).integers(1, VOCABULARY, (6, 6)).astype(np.int32)
PROMPTS[:, :2] = 4, 9  # what they all begin with
# Sums in another order: rows stand in products of other sizes.
ROUNDING = 1e-9


def _later_is_hotter(logits, carry, context):
    """A temperature that grows with the steps of the row, counted by the carry and by the place."""
    hotter = 1 + 0.2 * carry[:, None] + 0.1 * context.position[:, None].astype(float)
    return logits / hotter, carry + 1


HOTTER = Sampling(0.8, top_k=6, processor=Processor(lambda rows: jnp.zeros(rows), _later_is_hotter))


def model_of(**changes):
    config = named_config("tiny", VOCABULARY, num_layers=2, compute_dtype="float64")
    return Model(replace(config, **changes))


def parameters(model):
    """Random weights of a policy that is sure of some tokens and ends responses at any length."""
    random = np.random.default_rng(1)
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    return jax.tree.map(lambda leaf: jnp.asarray(random.normal(0, 0.2, leaf.shape)), shapes)


def draw(model, at_once, prompts=6, **changes):
    settings = dict(samples=SAMPLES, response_tokens=BUDGET, stop_tokens=(STOP, 3))
    return sample(
        model,
        parameters(model),
        Prompts(
            PROMPTS[:prompts],
            LENGTH[:prompts],
            np.array([7, 0, 3, 1, 9, 4], np.int32)[:prompts],
            np.zeros(prompts, np.int32),
        ),
        jax.random.key(1),
        **{**settings, "sampling": Sampling(), "at_once": at_once, **changes},
    )


def assert_same(found, wanted):
    assert found.arrays.keys() == wanted.arrays.keys()
    for name, values in wanted.arrays.items():
        if np.issubdtype(values.dtype, np.floating):
            assert_allclose(found.get(name), values, rtol=0, atol=ROUNDING, err_msg=name)
        else:
            assert_array_equal(found.get(name), values, err_msg=name)


@pytest.mark.thorough
@pytest.mark.parametrize("at_once", [1, 7, 29])
def test_rows_in_turn_are_those_of_all_at_once(at_once):
    model = model_of()
    wanted = draw(model, None)
    assert len(np.unique(wanted.length)) == BUDGET  # rows end at every length
    assert_same(draw(model, at_once), wanted)


@pytest.mark.thorough
def test_a_last_part_of_the_prompts_that_is_not_full():
    model = model_of()
    assert_same(draw(model, 2 * SAMPLES, prompts=5), draw(model, None, prompts=5))


@pytest.mark.thorough
def test_a_carry_begins_anew_with_each_row():
    model = model_of()
    wanted = draw(model, None, sampling=HOTTER)
    assert_same(draw(model, 4, sampling=HOTTER), wanted)


@pytest.mark.thorough
def test_texts_pause_rows_in_turn_as_all_at_once():
    model = model_of()
    sampled = np.asarray(draw(model, None).tokens)
    words = [f"{number:02d};" for number in range(model.config.vocab_size)]
    texts = "".join(words[i] for i in sampled[0, :2])[1:], words[sampled[7, 1]][:-1]
    sampling = Sampling(stops=find_stops(texts, [word.encode() for word in words]))
    wanted = draw(model, None, sampling=sampling)
    cut = np.asarray(wanted.truncated & (wanted.length < BUDGET))
    assert cut.sum() > 2 and not cut.all()
    assert_same(draw(model, 7, sampling=sampling), wanted)


def computed(answers):
    """Tokens of the first answer and of each that leads others, which went apart from it."""
    first, *others = answers
    apart = {}
    for other in others:
        alike = int(np.cumprod([a == b for a, b in zip(first, other, strict=False)]).sum())
        if alike + 1 < len(other):  # else its last token came of what the first one was fed
            apart.setdefault(tuple(other[: alike + 1]), []).append(other)
    return len(first) + sum(map(computed, apart.values()))


@pytest.mark.thorough
@pytest.mark.parametrize("at_once", [1, 4])
def test_responses_that_are_alike_are_computed_once(at_once):
    steps = []

    def counted(logits, carry, context):
        jax.debug.callback(lambda position: steps.append(position), context.position)
        return _later_is_hotter(logits, carry, context)

    model = model_of()
    sharp = Sampling(0.04, processor=Processor(lambda rows: jnp.zeros(rows), counted))
    found = draw(model, at_once, sampling=sharp)
    jax.effects_barrier()
    answers = [tokens[:n] for tokens, n in zip(found.tokens.tolist(), found.length, strict=True)]
    groups = [answers[start : start + SAMPLES] for start in range(0, len(answers), SAMPLES)]
    first = sum(len(group[0]) for group in groups)
    all_led, all_drawn = sum(map(computed, groups)), sum(map(len, answers))
    assert first < all_led < all_drawn  # in some groups there are others than the first
    assert all_led <= len(steps) * at_once < all_drawn
    if at_once == 1:
        assert len(steps) == all_led
    assert_same(found, draw(model, None, sampling=sharp))


def list_scheduled(lengths, slots):
    """Steps until all rows have ended, where each slot takes the next one when its row ends."""
    free = np.zeros(slots, int)
    for length in lengths.tolist():
        free[free.argmin()] += length
    return int(free.max())


@pytest.mark.thorough
@pytest.mark.parametrize(("slots", "samples"), [(6, 1), (24, 1), (6, 2)])
def test_steps_are_those_of_list_scheduling_where_lengths_have_a_tail(slots, samples):
    rows, least, most = 96, 4, 64
    prompts = rows // samples
    random = np.random.default_rng(5)
    wanted = random.integers(least, 9, prompts).astype(np.int32)
    wanted[random.permutation(prompts)[: prompts // 8]] = most  # over ten times the median
    steps = []

    def ends(logits, carry, context):
        jax.debug.callback(lambda position: steps.append(position), context.position)
        last = (context.position + 1 >= context.constants)[:, None]
        stop = jnp.arange(VOCABULARY)[None] == STOP
        return jnp.where(stop == last, logits, -jnp.inf), carry

    found = sample(
        model := model_of(num_layers=1),
        parameters(model),
        Prompts(
            np.tile(PROMPTS, (prompts // 6, 1)),
            np.tile(LENGTH, prompts // 6),
            np.arange(prompts, dtype=np.int32),
            np.zeros(prompts, np.int32),
        ),
        jax.random.key(1),
        samples=samples,
        response_tokens=most,
        stop_tokens=(STOP,),
        sampling=Sampling(processor=Processor(lambda rows: None, ends)),
        constants=wanted,
        at_once=slots,
    )
    jax.effects_barrier()
    lengths = np.asarray(found.length)
    assert_array_equal(lengths, np.repeat(wanted, samples))
    assert len(steps) <= 1.05 * list_scheduled(lengths, slots)
    if rows / slots >= 16:
        assert len(steps) <= 1.4 * lengths.sum() / slots


@pytest.mark.thorough
@pytest.mark.parametrize("at_once", [3, 8])
def test_a_row_takes_along_no_more_than_is_cached(at_once):
    # So sure a policy and so few slots that rows wait with more tokens than those they copy from
    # have been fed again.
    model, sharp = model_of(), Sampling(0.12)
    found = draw(model, at_once, samples=20, sampling=sharp)
    assert_same(found, draw(model, None, samples=20, sampling=sharp))


@pytest.mark.thorough
def test_what_responses_begin_with_is_seldom_computed_again():
    steps = []

    def counted(logits, carry, context):
        jax.debug.callback(lambda position: steps.append(position), context.position)
        return logits, carry

    model, at_once, samples = model_of(), 8, 20
    seen = Sampling(0.3, processor=Processor(lambda rows: (), counted))
    found = draw(model, at_once, samples=samples, sampling=seen)
    jax.effects_barrier()
    answers = [tokens[:n] for tokens, n in zip(found.tokens.tolist(), found.length, strict=True)]
    groups = [answers[start : start + samples] for start in range(0, len(answers), samples)]
    begun = sum(len({tuple(a[:n]) for a in group for n in range(len(a))}) for group in groups)
    # More than `begun`: slots stand empty at the end, and what no row beside it holds is fed again.
    # Here they are 338, the slots' 392, and 473 if each response that leads were fed whole.
    assert begun <= len(steps) * at_once < 0.9 * sum(map(computed, groups))
    assert_same(found, draw(model, None, samples=samples, sampling=seen))


@pytest.mark.thorough
def test_an_opening_is_computed_once_for_all_turns():
    model = model_of()
    assert_same(draw(model, 4, opening=2), draw(model, None))


@pytest.mark.slow
def test_a_window_and_several_blocks_of_slots(monkeypatch):
    monkeypatch.setattr(cached, "SLOTS", 3)
    model = model_of(sliding_window=4, sliding_layers=(0,), local_rope_theta=1e4)
    wanted = draw(model, None)
    assert_same(draw(model, 4), wanted)
    monkeypatch.setattr(cached, "SLOTS", 1024)
    draw_groups.clear_cache()  # the size of a block is not an argument
    assert_same(draw(model, 4), wanted)


@pytest.mark.thorough
@NEEDS_EIGHT_DEVICES
def test_every_device_has_its_own_turns():
    model, mesh = model_of(), make_mesh("data=3", jax.devices()[:3])
    assert_same(draw(replace(model, mesh=mesh), 6), draw(model, None))


def test_as_many_as_there_are_is_all_at_once():
    model = model_of()
    assert_same(draw(model, 6 * SAMPLES), draw(model, None))


@NEEDS_EIGHT_DEVICES
def test_rows_that_are_not_the_devices_own_are_refused():
    model = replace(model_of(), mesh=make_mesh("data=4,tensor=2"))
    with pytest.raises(ValueError, match=r"at_once must come with a mesh .* and 6 prompts"):
        draw(model, 4)


@NEEDS_EIGHT_DEVICES
@pytest.mark.parametrize("at_once", [0, 4])
def test_a_number_that_the_devices_cannot_share_is_refused(at_once):
    model = replace(model_of(), mesh=make_mesh("data=3", jax.devices()[:3]))
    with pytest.raises(ValueError, match=f"at_once must be a multiple of the 3.*got {at_once}"):
        draw(model, at_once)
