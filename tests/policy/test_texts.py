"""What a policy says about given texts."""

import jax
import numpy as np
import pytest
import training_runs

from rlvr_jax import policy
from rlvr_jax.policy import products, texts

FLOAT32 = 2e-5  # log-probs of some nats, by another order of sums
BFLOAT16 = 0.15  # nats: eight bits of activations through two layers
TEXTS = ["3 + 4 = 7", "1 + 1 =", "0 + 2 = 2 <eos>"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return training_runs.write_policy(tmp_path_factory.mktemp("policy"))


@pytest.mark.thorough
def test_every_token_has_the_log_prob_entropy_and_alternatives_of_the_whole_logits(folder):
    model, params = policy.load(folder)
    tokenizer = policy.tokenizer(folder)
    logits = jax.jit(model.logits)
    width = max(len(tokenizer(text)["input_ids"]) for text in TEXTS)
    for text, told in zip(
        TEXTS, policy.score_texts(model, params, tokenizer, TEXTS, top=3, batch=2), strict=True
    ):
        ids = np.array(tokenizer(text)["input_ids"])
        np.testing.assert_array_equal(told.ids, ids)
        padded = np.pad(ids, (0, width - len(ids)))[None]
        logp = np.asarray(jax.nn.log_softmax(logits(params, padded))[0])
        before = logp[: len(ids) - 1]
        assert all(np.isnan(array[0]).all() for array in (told.logp, told.entropy, told.top_logp))
        near = {"atol": FLOAT32}
        np.testing.assert_allclose(told.logp[1:], before[np.arange(len(ids) - 1), ids[1:]], **near)
        entropy = -(np.exp(before) * before).sum(axis=1)
        np.testing.assert_allclose(told.entropy[1:], entropy, **near)
        order = np.argsort(-before, axis=1)[:, :3]
        np.testing.assert_array_equal(told.top_ids[1:], order)
        likeliest = np.take_along_axis(before, order, axis=1)
        np.testing.assert_allclose(told.top_logp[1:], likeliest, **near)


@pytest.mark.thorough
def test_a_policy_in_bfloat16_takes_half_and_says_nearly_the_same(folder):
    whole, half = (policy.load(folder, dtype=dtype) for dtype in ("float32", "bfloat16"))
    sizes = [sum(x.nbytes for x in jax.tree.leaves(params)) for _, params in (whole, half)]
    assert sizes[0] == 2 * sizes[1]
    tokenizer = policy.tokenizer(folder)
    one, two = (policy.score_texts(*made, tokenizer, TEXTS)[0] for made in (whole, half))
    np.testing.assert_allclose(two.logp[1:], one.logp[1:], atol=BFLOAT16)
    assert np.any(two.logp[1:] != one.logp[1:])


def test_texts_may_come_one_by_one(folder):
    given = *policy.load(folder), policy.tokenizer(folder)
    (one,), (other,) = (policy.score_texts(*given, texts) for texts in (["3 + 4"], iter(["3 + 4"])))
    np.testing.assert_array_equal(one.logp, other.logp)


def test_no_texts_have_no_numbers(folder):
    assert policy.score_texts(*policy.load(folder), policy.tokenizer(folder), []) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"texts": "3 + 4"}, "texts must be a sequence of texts, got the text '3 \\+ 4'"),
        ({"texts": ["3 + 4", None]}, "texts must be a sequence of texts, got None in it"),
        ({"texts": ["3"]}, "texts must have 2 to 32 tokens, got 1 of '3'"),
        ({"texts": ["3 " * 40]}, "texts must have 2 to 32 tokens, got 40 of"),
        ({"top": 0}, r"top must be in \[1, 14\], got 0"),
        ({"batch": 0}, "batch must be at least 1, got 0"),
    ],
)
def test_texts_that_cannot_be_scored_are_refused(folder, changes, message):
    arguments = {"texts": TEXTS, **changes}
    with pytest.raises(ValueError, match=f"score_texts: {message}"):
        policy.score_texts(*policy.load(folder), policy.tokenizer(folder), **arguments)


def test_another_dtype_is_refused(folder):
    with pytest.raises(
        ValueError, match="load: dtype must be one of float32, bfloat16, got 'int8'"
    ):
        policy.load(folder, dtype="int8")


def test_options_of_the_compiler_reach_the_scorer_of_texts(folder, monkeypatch):
    monkeypatch.setattr(products, "compiler_options", lambda dtype: {"no_such_option": True})
    monkeypatch.setattr(texts, "_program", texts._program.__wrapped__)
    given = policy.load(folder), policy.tokenizer(folder)
    with pytest.raises(Exception, match="no_such_option"):
        policy.score_texts(*given[0], given[1], TEXTS)
