"""token_stats: masks, bad targets, spoiled tokens, empty batches, refused arguments."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from token_stats_cases import FLOAT32, assert_close, evaluate, make_case, numpy_stats

from rlvr_jax.kernels.token_stats import token_stats

NEEDS = (
    "logp",
    "entropy",
    "varentropy",
    "max_id",
    "second_logp",
    "topk_ids",
    "nucleus_entropy",
    "kl",
)


@pytest.mark.thorough
def test_masked_tokens_are_zero_whatever_they_hold(form):
    arrays, targets, options = make_case((13, 4, 37))
    mask = np.arange(13) % 3 == 0
    options |= {"mask": mask, "temperature": np.ones(13, np.float32)}
    expected, expected_gradients = evaluate(form, arrays, targets, options, NEEDS)
    arrays["hidden"][~mask] = np.nan
    targets[~mask] = -100
    other_hidden, other_unembedding = options["other"]
    options |= {
        "temperature": np.where(mask, 1, 0).astype(np.float32),
        "other": (np.where(mask[:, None], other_hidden, np.nan), other_unembedding),
    }
    stats, gradients = evaluate(form, arrays, targets, options, NEEDS)
    for name in NEEDS:
        assert_array_equal(stats[name], expected[name])
        assert_array_equal(stats[name][~mask], 0)
    assert_array_equal(gradients["hidden"][~mask], 0)
    assert_close(gradients, expected_gradients, FLOAT32)


@pytest.mark.thorough
def test_a_mask_of_nothing_gives_zeros(form):
    arrays, targets, options = make_case((13, 4, 37), ("bias",))
    options |= {"mask": np.zeros(13, bool)}
    stats, gradients = evaluate(form, arrays, targets, options, NEEDS)
    for value in (stats | gradients).values():
        assert_array_equal(value, np.zeros(value.shape))


def test_no_tokens_give_empty_statistics_and_zero_gradients(form):
    arrays, targets, options = make_case((0, 4, 37))
    stats, gradients = evaluate(form, arrays, targets, options, NEEDS)
    assert all(x.shape[0] == 0 for x in stats.values())
    assert_array_equal(gradients["unembedding"], np.zeros((37, 4)))


@pytest.mark.parametrize("spoiled", [np.nan, np.inf])
def test_a_spoiled_hidden_state_spoils_only_its_own_token(form, spoiled):
    arrays, targets, options = make_case((13, 4, 37))
    expected, _ = evaluate(form, arrays, targets, options, NEEDS)
    arrays["hidden"][3, 1] = spoiled
    stats, _ = evaluate(form, arrays, targets, options, NEEDS)
    others = np.arange(13) != 3
    for name in NEEDS:
        assert_array_equal(stats[name][others], expected[name][others])
    assert all(np.isnan(stats[name][3]) for name in ("logp", "entropy", "nucleus_entropy", "kl"))


def test_a_target_outside_the_vocabulary_spoils_only_its_own_logp(form):
    arrays, targets, options = make_case((13, 4, 37))
    wrong = targets.copy()
    wrong[2], wrong[5] = -1, 37
    bad = np.isin(np.arange(13), (2, 5))
    stats, gradients = evaluate(form, arrays, wrong, options, NEEDS)
    expected = numpy_stats(arrays, targets, **options)
    for name in ("logp", "second_logp"):
        assert_array_equal(np.isnan(stats[name]), bad)
        expected[name] = np.where(bad, np.nan, expected[name])
    assert_close(stats, {name: expected[name] for name in NEEDS}, FLOAT32)
    assert all(np.all(np.isfinite(x)) for x in gradients.values())


@pytest.mark.parametrize(
    "change, words",
    [
        ({"needs": {"entrpy"}}, "needs .* got 'entrpy'; closest: entropy"),
        ({"implementation": "xlaa"}, "implementation .* got 'xlaa'; closest: xla"),
        ({"unembedding": np.ones((5, 3))}, r"agree in D, got \(4, 2\) and \(5, 3\)"),
        ({"hidden": np.ones((2, 2, 2))}, r"got \(2, 2, 2\) and \(5, 2\)"),
        ({"unembedding": np.ones((0, 2))}, r"unembedding \[V, D\] must have entries"),
        ({"targets": np.zeros(3, int)}, r"targets must have shape \[N\] = \(4,\) .* got \(3,\)"),
        ({"targets": np.zeros(4)}, "targets must be integers, got float64"),
        ({"mask": np.ones(4)}, "mask must be bool, got float64"),
        ({"mask": np.ones((4, 1), bool)}, r"mask must have shape .* got \(4, 1\)"),
        ({"nucleus_mask": np.ones(5, bool)}, r"nucleus_mask must have shape .* got \(5,\)"),
        ({"bias": np.ones(4)}, r"bias must have shape \[V\] = \(5,\) .* got \(4,\)"),
        ({"hidden": np.ones((4, 2), int)}, "hidden must be floating, got int64"),
        ({"temperature": np.ones(5)}, r"temperature must have shape .* \(4,\), got \(5,\)"),
        ({"temperature": 0.0}, "temperature must be positive, got 0.0"),
        ({"temperature": np.zeros(())}, "temperature must be positive, got 0.0"),
        ({"second_temperature": -1}, "second_temperature must be positive, got -1"),
        ({"softcap": 0.0}, "softcap must be a positive number or None, got 0.0"),
        ({"top_k": 6}, "top_k must be an integer from 0 to 5, got 6"),
        ({"top_k": True}, "top_k must be an integer from 0 to 5, got True"),
        ({"top_p": 1.5}, r"top_p must be in \(0, 1\] or None, got 1.5"),
        ({"min_p": 0.0}, r"min_p must be in \(0, 1\] or None, got 0.0"),
        ({"needs": {"topk_ids"}}, "topk_ids must have the argument top_k, got none"),
        ({"needs": {"nucleus_entropy"}}, "nucleus_entropy must have the argument top_p, got none"),
        ({"needs": {"js"}}, "js must have the argument other, got none"),
        ({"needs": {"second_logp"}}, "must have the argument second_temperature, got none"),
        ({"other": (np.ones((4, 3)),)}, "other must be a pair of .* got a tuple of 1"),
        ({"other": np.ones((2, 4, 3))}, "other must be a pair of .* got a ndarray"),
        ({"other": (np.ones((4, 3)), np.ones((5, 2)))}, r"other\[0\] .* must agree in E"),
        ({"other": (np.ones((4, 3)), np.ones((6, 3)))}, "other must have N = 4 .* and V = 5"),
        ({"other": (np.ones((4, 3), int), np.ones((5, 3)))}, r"other\[0\] must be floating"),
    ],
    ids=str,
)
def test_bad_arguments_are_refused_by_name(change, words):
    good = {
        "hidden": np.ones((4, 2)),
        "unembedding": np.ones((5, 2)),
        "targets": np.zeros(4, int),
        "needs": {"logp"},
    }
    with pytest.raises(ValueError, match=f"^token_stats: .*{words}"):
        token_stats(**good | change)


def test_numbers_may_be_numpys_and_jaxs():
    arrays, targets, _ = make_case((4, 2, 5))
    expected = token_stats(
        **arrays, targets=targets, needs={"topk_logp"}, top_k=3, temperature=0.5
    ).records["topk_logp"]
    half = jnp.asarray(0.5, jnp.float32)

    @jax.jit
    def measure(arrays, temperature):
        options = {"needs": {"topk_logp"}, "top_k": np.int64(3), "targets": targets}
        # A traced number, and one that is known while tracing.
        return [token_stats(**arrays, **options, temperature=t) for t in (temperature, half)]

    for stats in measure(arrays, half):
        assert_close({"topk_logp": stats.records["topk_logp"]}, {"topk_logp": expected}, FLOAT32)
    with pytest.raises(ValueError, match=r"temperature must be positive, got 0\.0"):
        token_stats(**arrays, targets=targets, needs={"logp"}, temperature=half * 0)
