"""Token statistics of rollouts against all logits, row by row."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from everyday import everyday
from numpy.testing import assert_allclose, assert_array_equal
from pool_rows import sequences

from rlvr_jax.policy import Model, named_config, score, score_prompts, scoring
from rlvr_jax.types import Rollouts

ROWS, WIDTH, BUDGET, VOCABULARY = 4, 5, 6, 11
PROMPT_LENGTH = np.array([5, 1, 3, 2])
LENGTH = np.array([6, 4, 0, 1])

# float64 on both sides, some hundred roundings of 1e-16 on numbers of order one
EXACT = dict(rtol=1e-11, atol=1e-12)


def policy(**overrides):
    config = dict(num_layers=1, compute_dtype="float64") | overrides
    model = Model(named_config("tiny", VOCABULARY, **config))
    random = np.random.default_rng(0)
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    params = jax.tree.map(lambda leaf: jnp.asarray(random.normal(size=leaf.shape)), shapes)
    return model, params


def rollouts():
    """Ragged rows: arbitrary padding, holes in the mask, a temperature of its own per token."""
    random = np.random.default_rng(1)
    prompt_tokens = random.integers(0, VOCABULARY, (ROWS, WIDTH))
    tokens = random.integers(0, VOCABULARY, (ROWS, BUDGET))
    mask = np.arange(BUDGET) < LENGTH[:, None]
    mask[0, 2:4] = False
    zero, zeros = jnp.zeros(ROWS), jnp.zeros((ROWS, BUDGET))
    none = jnp.full(ROWS, -1)
    return Rollouts(
        prompt_tokens=jnp.asarray(prompt_tokens, jnp.int32),
        prompt_length=jnp.asarray(PROMPT_LENGTH, jnp.int32),
        tokens=jnp.asarray(tokens, jnp.int32),
        length=jnp.asarray(LENGTH, jnp.int32),
        mask=jnp.asarray(mask),
        group=jnp.arange(ROWS),
        rollout_id=jnp.arange(ROWS),
        parent=none,
        branch_position=none,
        truncated=jnp.zeros(ROWS, bool),
        behaviour_logp=zeros,
        entropy=zeros,
        temperature=jnp.asarray(random.uniform(0.5, 2.0, (ROWS, BUDGET))),
        outcome=zero,
        reward=zero,
        valid=jnp.ones(ROWS, bool),
        weight_version=none,
    )


NEEDS = ("logp", "logsumexp", "entropy", "p_squared", "p_squared_logp")
# Compiled once for each model and shape, for all tests.
score_all = jax.jit(partial(score, needs=NEEDS), static_argnums=0)
to_logits = jax.jit(Model.logits, static_argnums=0)


def by_brute_force(model, params, rollouts):
    """All statistics from the logits of every row's own tokens, without padding."""
    stats = {name: np.zeros((ROWS, BUDGET)) for name in NEEDS}
    for row, (start, length) in enumerate(zip(PROMPT_LENGTH, LENGTH, strict=True)):
        response = rollouts.tokens[row, :length]
        line = jnp.concatenate([rollouts.prompt_tokens[row, :start], response])
        line = jnp.pad(line, (0, WIDTH + BUDGET - len(line)))
        logits = np.asarray(to_logits(model, params, line[None])[0])
        for t in range(length):
            if rollouts.mask[row, t]:
                z = logits[start - 1 + t] / rollouts.temperature[row, t]
                logsumexp = np.log(np.sum(np.exp(z)))
                logp = z - logsumexp
                p = np.exp(logp)
                stats["logp"][row, t] = logp[response[t]]
                stats["logsumexp"][row, t] = logsumexp
                stats["entropy"][row, t] = -np.sum(p * logp)
                stats["p_squared"][row, t] = np.sum(p**2)
                stats["p_squared_logp"][row, t] = np.sum(p**2 * logp)
    return stats


def test_sequences_are_prompt_and_response_without_a_gap():
    given = rollouts()
    lines = sequences(given)
    assert lines.shape == (ROWS, WIDTH + BUDGET)
    for row, start in enumerate(PROMPT_LENGTH):
        assert_array_equal(lines[row, :start], given.prompt_tokens[row, :start])
        assert_array_equal(lines[row, start : start + BUDGET], given.tokens[row])


@pytest.mark.thorough
@pytest.mark.parametrize("logit_softcap", [None, 1.5])
def test_every_statistic_is_that_of_all_logits(logit_softcap):
    model, params = policy(logit_softcap=logit_softcap)
    stats = score_all(model, params, rollouts())
    for name, expected in by_brute_force(model, params, rollouts()).items():
        assert_allclose(stats.get(name), expected, **EXACT, err_msg=name)


@pytest.mark.slow
def test_log_probs_at_other_temperatures_carry_no_gradient():
    model, params = policy(logit_softcap=1.5)
    given, temperatures = rollouts(), (0.7, 2.5)
    options = (("temperatures", temperatures),)

    def tempered(params):
        return score(model, params, given, {"logp", "tempered_logp"}, options).records[
            "tempered_logp"
        ]

    found = tempered(params)
    assert found.shape == (ROWS, BUDGET, 2)
    for place, factor in enumerate(temperatures):
        rows = given.replace(temperature=factor * given.temperature)
        assert_allclose(found[..., place], by_brute_force(model, params, rows)["logp"], **EXACT)
    grads = jax.grad(lambda params: jnp.sum(tempered(params)))(params)
    assert not any(np.any(leaf) for leaf in jax.tree.leaves(grads))


def test_other_temperatures_must_be_named():
    model, params = policy()
    with pytest.raises(ValueError, match="options must have temperatures for tempered_logp"):
        score(model, params, rollouts(), {"logp", "tempered_logp"})


@pytest.mark.thorough
@pytest.mark.parametrize("shared", everyday([1, 2], 2))
def test_prompts_are_scored_from_their_second_token_on(shared):
    model, params = policy()
    given = rollouts()
    first = np.arange(ROWS) // shared * shared
    tokens, length = given.prompt_tokens[first], given.prompt_length[first]
    given = given.replace(prompt_tokens=tokens, prompt_length=length)
    logits = jax.nn.log_softmax(to_logits(model, params, tokens))
    wanted = np.zeros((ROWS, WIDTH))
    for row in range(ROWS):
        for place in range(1, int(length[row])):
            wanted[row, place] = logits[row, place - 1, tokens[row, place]]
    assert_allclose(score_prompts(model, params, given, shared), wanted, **EXACT)


def test_a_prompt_of_one_token_has_nothing_to_score():
    model, params = policy()
    one = {"prompt_tokens": rollouts().prompt_tokens[:, :1], "prompt_length": jnp.ones(ROWS, int)}
    assert not np.any(score_prompts(model, params, rollouts().replace(**one)))
    unknown = rollouts().replace(**one, behaviour_logp=None)
    assert not np.any(score_prompts(model, params, unknown))


def test_off_the_mask_everything_is_zero():
    model, params = policy()
    stats = score_all(model, params, rollouts())
    for name in NEEDS:
        assert not np.any(np.asarray(stats.get(name))[~np.asarray(rollouts().mask)])


def test_padding_changes_nothing_whatever_it_holds():
    model, params = policy()
    given = rollouts()
    padded = jnp.where(jnp.arange(BUDGET)[None] < LENGTH[:, None], given.tokens, 7)
    in_prompt = jnp.arange(WIDTH)[None] < PROMPT_LENGTH[:, None]
    prompts = jnp.where(in_prompt, given.prompt_tokens, 3)
    changed = given.replace(tokens=padded, prompt_tokens=prompts)
    before, after = score_all(model, params, given), score_all(model, params, changed)
    for name in NEEDS:
        assert_allclose(after.get(name), before.get(name), **EXACT)


def test_only_what_is_needed_is_measured():
    model, params = policy()
    stats = jax.eval_shape(partial(score, model), params, rollouts())
    assert [name for name in NEEDS if stats.get(name) is not None] == ["logp"]
    assert stats.logp.shape == (ROWS, BUDGET)


def test_the_gradient_is_that_of_the_logits():
    model, params = policy()
    given = rollouts()
    weight = jnp.asarray(np.random.default_rng(2).normal(size=(ROWS, BUDGET)))

    def streamed(params):
        stats = score(model, params, given, ("logp", "entropy"))
        return jnp.sum(weight * (stats.logp + stats.entropy))

    def stored(params):
        logits = model.logits(params, sequences(given))
        index = given.prompt_length[:, None] - 1 + jnp.arange(BUDGET, dtype=jnp.int32)[None]
        logits = jnp.take_along_axis(logits, index[:, :, None], axis=1)
        logp = jax.nn.log_softmax(logits / given.temperature[:, :, None])
        chosen = jnp.take_along_axis(logp, given.tokens[:, :, None], axis=2)[:, :, 0]
        entropy = -jnp.sum(jnp.exp(logp) * logp, axis=-1)
        return jnp.sum(jnp.where(given.mask, weight * (chosen + entropy), 0))

    gradient, expected = jax.jit(lambda p: (jax.grad(streamed)(p), jax.grad(stored)(p)))(params)
    for ours, theirs in zip(jax.tree.leaves(gradient), jax.tree.leaves(expected), strict=True):
        assert np.any(theirs != 0)
        assert_allclose(ours, theirs, **EXACT)


def groups():
    """Two groups of two rows: the rows of a group have the first one's prompt."""
    given, first = rollouts(), np.array([0, 0, 2, 2])
    return given.replace(
        prompt_tokens=given.prompt_tokens[first],
        prompt_length=given.prompt_length[first],
    )


def opened(given):
    """The same rollouts with three tokens before every prompt."""
    first = jnp.asarray([[7, 1, 9]] * ROWS, jnp.int32)
    return given.replace(
        prompt_tokens=jnp.concatenate([first, given.prompt_tokens], axis=1),
        prompt_length=given.prompt_length + 3,
    )


slow = partial(pytest.param, marks=pytest.mark.slow)


def sliding(window):
    layers = dict(num_layers=2, sliding_layers=(1,), local_rope_theta=100.0)
    return dict(qk_norm=True, sliding_window=window, **layers)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("given", "settings", "overrides"),
    [
        (groups(), dict(shared=2), dict()),
        slow(groups(), dict(shared=2), dict(num_layers=5)),
        (groups(), dict(shared=2), sliding(2)),
        slow(groups(), dict(shared=2), dict(num_experts=4, experts_per_token=2, qkv_bias=True)),
        (opened(groups()), dict(shared=2, opening=3), dict()),
        slow(opened(rollouts()), dict(opening=3), dict()),
        slow(opened(groups()), dict(shared=2, opening=3), dict(num_layers=5)),
        (opened(groups()), dict(shared=2, opening=3), sliding(4)),
        slow(opened(rollouts()), dict(opening=3), sliding(4)),
        slow(
            opened(groups()),
            dict(shared=2, opening=3),
            dict(num_experts=4, experts_per_token=2, qkv_bias=True),
        ),
    ],
)
def test_what_is_computed_once_gives_what_each_row_would_give(given, settings, overrides):
    model, params = policy(**overrides)
    weight = jnp.asarray(np.random.default_rng(2).normal(size=(ROWS, BUDGET)))

    def total(params, **settings):
        stats = score(model, params, given, NEEDS, **settings)
        return jnp.sum(weight * (stats.logp + stats.entropy)), stats

    each, once = (
        jax.jit(jax.value_and_grad(partial(total, **chosen), has_aux=True))(params)
        for chosen in ({}, settings)
    )
    for left, right in zip(*map(jax.tree.leaves, (once, each)), strict=True):
        assert_allclose(left, right, **EXACT)


def test_an_opening_is_narrower_than_the_prompts():
    model, params = policy()
    with pytest.raises(ValueError, match="opening must be in 0 … 4 for prompts of 5, got 5"):
        score(model, params, rollouts(), opening=5)


def test_a_batch_without_prompts_is_refused():
    model, params = policy()
    given = rollouts().replace(prompt_tokens=jnp.zeros((ROWS, 0), jnp.int32))
    with pytest.raises(ValueError, match=r"prompt_tokens must hold the prompts, .* got P = 0"):
        score(model, params, given)


def test_rows_that_share_a_prompt_divide_the_rows():
    model, params = policy()
    with pytest.raises(ValueError, match="shared must divide the 4 rows, got 3"):
        score(model, params, rollouts(), shared=3)


def repeated(times):
    """Each row of `rollouts` so many times, prompts alike, answers not."""
    of_prompts = jax.tree.map(lambda x: np.repeat(np.asarray(x), times, axis=0), rollouts())
    tokens = np.random.default_rng(2).integers(0, VOCABULARY, of_prompts.tokens.shape)
    return of_prompts.replace(tokens=tokens.astype(np.int32))


@pytest.mark.parametrize(
    ("times", "at_once", "shared"),
    [
        ([6] * 4, 12, 6),
        ([6] * 4, 64, 2),
        ([6] * 4, 4, 2),
        ([6, 6, 9, 3], 6, 3),
        ([5, 1, 1, 1], 4, 1),
    ],
)
def test_rows_in_pieces_share_their_prompts(times, at_once, shared):
    rows = repeated(times)
    assert scoring.shared_prompts(rows, at_once) == shared
    length = np.where(np.arange(len(rows.group)) % 2, 1, rows.prompt_length)
    assert scoring.shared_prompts(rows.replace(prompt_length=length), at_once) == 1


def test_pieces_whose_rows_share_prompts_score_as_each_row_would():
    rows, (model, params) = repeated([6, 6, 9, 3]), policy()
    logp = jax.jit(
        lambda own, shared: score(model, params, own, shared=shared).logp, static_argnums=1
    )
    once, each = (
        scoring.run_in_chunks(lambda own, shared=shared: logp(own, shared), rows, 6)
        for shared in (3, 1)
    )
    assert_allclose(once, each, **EXACT)


@pytest.mark.thorough
def test_a_budget_of_one_token_is_predicted_by_the_prompt_alone():
    model, params = policy()
    given = rollouts()
    cut = {name: getattr(given, name)[:, :1] for name in ("tokens", "mask", "temperature")}
    stats, whole = (score(model, params, rows) for rows in (given.replace(**cut), given))
    assert_allclose(stats.logp, whole.logp[:, :1], **EXACT)


@pytest.mark.thorough
def test_the_kernels_program_reads_a_last_token_and_says_the_same(monkeypatch):
    model, params = policy()
    wanted = score(model, params, rollouts()).logp
    read, whole = [], Model.hidden_in_groups

    def noted(*given, **others):
        read.append(given[4].shape[2])
        return whole(*given, **others)

    monkeypatch.setattr(scoring, "flash_serves", lambda *_: True)
    monkeypatch.setattr(Model, "hidden_in_groups", noted)
    assert_allclose(score(model, params, rollouts()).logp, wanted, **EXACT)
    assert read == [BUDGET]
