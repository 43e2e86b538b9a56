"""Random cases for `token_stats`, its definitions in numpy, and one jitted call for both passes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from compiling import OPTIMIZED
from numpy.testing import assert_allclose

from rlvr_jax.kernels import plan
from rlvr_jax.kernels.operation import DIFFERENTIABLE
from rlvr_jax.kernels.plan import Plan, Policy, Tokens
from rlvr_jax.kernels.token_stats import STATISTICS, token_stats

# Relative to the largest entry of an array; sums of at most 40 terms of order 1 to 10.
FLOAT64 = 1e-13
FLOAT32 = 5e-6
# Gradients are rounded to bfloat16 once (half a spacing: 2^-9), the sums are float32.
BFLOAT16 = 2**-8

EVERYTHING = ("bias", "softcap", "temperatures", "mask", "nucleus_mask")
STATIC = ("softcap", "top_k", "top_p", "include_crossing", "min_p")
INTEGER = ("max_id", "topk_ids")


def make_case(shape, features=(), dtype=np.float32, seed=0):
    """Arrays (hidden, unembedding, bias), targets and options: those that statistics read, always,
    and those that `features` name."""
    tokens, width, vocabulary = shape
    random = np.random.default_rng(seed)
    arrays = {
        "hidden": random.normal(size=(tokens, width)),
        "unembedding": random.normal(size=(vocabulary, width)),
    }
    bias = random.normal(size=vocabulary)
    if "bias" in features:
        arrays["bias"] = bias
    arrays = {name: value.astype(dtype) for name, value in arrays.items()}
    features_options = {
        "softcap": {"softcap": 2.0},
        "temperature": {"temperature": 0.7},
        "temperatures": {"temperature": random.uniform(0.5, 2, tokens).astype(dtype)},
        "mask": {"mask": random.uniform(size=tokens) < 0.6},
        "nucleus_mask": {"nucleus_mask": random.uniform(size=tokens) < 0.5},
    }
    targets = random.integers(0, vocabulary, tokens)
    other = (
        random.normal(size=(tokens, 3)).astype(dtype),
        random.normal(size=(vocabulary, 3)).astype(dtype),
    )
    options = {"second_temperature": 1.7, "top_k": 3, "top_p": 0.8, "min_p": 0.2, "other": other}
    for feature in features:
        options |= features_options.get(feature, {})
    return arrays, targets, options


def in_float64(tree):
    """The same with float64 for every floating array."""

    def converted(x):
        is_array = hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jnp.floating)
        return np.asarray(x).astype(np.float64) if is_array else x

    return jax.tree.map(converted, tree)


def numpy_stats(
    arrays,
    targets,
    *,
    softcap=None,
    temperature=1.0,
    mask=None,
    second_temperature=None,
    top_k=0,
    top_p=None,
    nucleus_mask=None,
    min_p=None,
    other=None,
):
    """The definitions, in float64."""
    columns = np.ones(targets.shape, np.float64)[:, None]

    def log_softmax(logits):
        shifted = logits - logits.max(axis=1, keepdims=True)
        return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))

    def logits_of(hidden, unembedding):
        logits = np.float64(hidden) @ np.float64(unembedding).T
        if "bias" in arrays:
            logits = logits + np.float64(arrays["bias"])
        if softcap is not None:
            logits = np.where(np.isneginf(logits), logits, softcap * np.tanh(logits / softcap))
        return logits

    def plogq(p, logq):
        return np.where(p > 0, p * np.where(p > 0, logq, 0), 0)

    unscaled = logits_of(arrays["hidden"], arrays["unembedding"])
    scale = np.float64(temperature).reshape(-1, 1) * columns
    logits = unscaled / scale
    rows = np.arange(len(targets))
    present = logits > -np.inf
    logp = log_softmax(logits)
    p = np.exp(logp)
    entropy = -plogq(p, logp).sum(axis=1)
    deviation = np.where(present, -logp - entropy[:, None], 0)
    stats = {
        "logp": logp[rows, targets],
        "logsumexp": logits[rows, targets] - logp[rows, targets],
        "entropy": entropy,
        "p_squared": (p * p).sum(axis=1),
        "p_squared_logp": (p * plogq(p, logp)).sum(axis=1),
        "varentropy": (p * deviation**2).sum(axis=1),
        "mean_logit": np.where(present, logits, 0).sum(axis=1) / present.sum(axis=1),
        "max_logp": logp.max(axis=1),
        "max_id": logits.argmax(axis=1),
    }
    second = np.float64(second_temperature).reshape(-1, 1) * columns
    stats["second_logp"] = log_softmax(unscaled / second)[rows, targets]
    stats["min_p_mass"] = np.where(p >= min_p * p.max(axis=1, keepdims=True), p, 0).sum(axis=1)
    stats["topk_ids"] = np.argsort(-logits, axis=1, kind="stable")[:, :top_k]
    stats["topk_logp"] = np.take_along_axis(logp, stats["topk_ids"], axis=1)
    nucleus = np.zeros(len(targets))
    for row in range(len(targets)):
        if nucleus_mask is None or nucleus_mask[row]:
            descending = np.sort(p[row])[::-1]
            size = np.argmax(np.append(np.cumsum(descending), np.inf) >= top_p)
            inside = p[row][p[row] >= descending[min(size, len(descending) - 1)]]
            nucleus[row] = -plogq(inside / inside.sum(), np.log(inside / inside.sum())).sum()
    stats["nucleus_entropy"] = nucleus
    logq = log_softmax(logits_of(*other) / scale)
    q = np.exp(logq)
    mixture = np.logaddexp(logp, logq) - np.log(2)
    with np.errstate(invalid="ignore"):  # entries out of both vocabularies
        stats["kl"] = plogq(p, logp - logq).sum(axis=1)
        stats["reverse_kl"] = plogq(q, logq - logp).sum(axis=1)
        stats["js"] = (plogq(p, logp - mixture) + plogq(q, logq - mixture)).sum(axis=1) / 2
    if mask is None:
        return stats
    return {name: (x.T * mask).T for name, x in stats.items()}


@functools.cache
def compiled(form, tiles, needs, static, optimized, mesh=None):
    """A jitted function (arrays, targets, traced options) -> gradients, statistics."""
    del tiles  # part of the key: the tile sizes are read when the function is traced
    weights = np.random.default_rng(1).normal(size=(len(STATISTICS), 128))

    def loss(arrays, targets, traced):
        stats = token_stats(
            targets=targets,
            needs=needs,
            implementation=form,
            mesh=mesh,
            **dict(static),
            **arrays,
            **traced,
        )
        stats = {name: stats.get(name) for name in needs}
        terms = [
            jnp.sum(weights[i, : x.size].reshape(x.shape).astype(x.dtype) * x)
            for i, (name, x) in enumerate(stats.items())
            if name in DIFFERENTIABLE
        ]
        return sum(terms[1:], start=terms[0]) if terms else 0.0, stats

    return jax.jit(jax.grad(loss, has_aux=True), compiler_options=OPTIMIZED if optimized else None)


def evaluate(form, arrays, targets, options, needs=STATISTICS, optimized=False, mesh=None):
    """Statistics, and gradients of the sum of the differentiable ones with random weights."""
    static = tuple((name, value) for name, value in options.items() if name in STATIC)
    traced = {name: value for name, value in options.items() if name not in STATIC}
    function = compiled(form, plan.TILES, tuple(needs), static, optimized, mesh)
    gradients, stats = function(arrays, targets, traced)
    return stats, gradients


def assert_close(actual, expected, tolerance):
    """All arrays agree to `tolerance` times the largest expected entry (or 1); integers exactly."""
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        value = np.asarray(value, np.float64)
        bound = tolerance * max(1, np.abs(value[np.isfinite(value)]).max(initial=0))
        bound = 0 if name in INTEGER else bound
        assert_allclose(np.float64(actual[name]), value, rtol=0, atol=bound, err_msg=name)


def one_hot_case(logits):
    """Arrays whose products h·w are exactly the rows of `logits`."""
    logits = np.asarray(logits, np.float32)
    return {"hidden": np.eye(len(logits), dtype=np.float32), "unembedding": logits.T.copy()}


def assert_bits_stay(sums, arrays, targets, few):
    """Asserts that a kernel's sums of a token have the same bits wherever it stands.

    Args:
      sums: (plan, policy, tokens) -> `algebra.Sums`.
      few: a smaller number of tokens to measure alone.
    """
    needed = Plan(needs=("logp", "entropy"), dtype=jnp.dtype(jnp.float32))
    number = len(targets)

    @functools.partial(jax.jit, compiler_options=OPTIMIZED)
    def measure(hidden, targets, mask=None):
        policy = Policy(hidden, jnp.asarray(arrays["unembedding"]))
        return sums(needed, policy, Tokens(jnp.asarray(targets, jnp.int32), mask))

    whole = measure(arrays["hidden"], targets)
    order = np.random.default_rng(3).permutation(number)
    shuffled = measure(arrays["hidden"][order], targets[order])
    alone = measure(arrays["hidden"][:few], targets[:few])
    mask = np.arange(number) % 3 == 0
    masked = measure(arrays["hidden"], targets, mask)
    for name in ("largest", "s0", "s1", "target"):
        expected = np.asarray(getattr(whole, name))
        np.testing.assert_array_equal(getattr(shuffled, name), expected[order])
        np.testing.assert_array_equal(getattr(alone, name), expected[:few])
        np.testing.assert_array_equal(getattr(masked, name), np.where(mask, expected, 0))
