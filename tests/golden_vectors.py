"""Reference vectors: inputs, what each method gives on them, and how ours is evaluated.

`golden/inputs_<case>.npz` holds logits of four policies, tokens, masks and rewards;
`golden/<slug>_<case>.npz` what the method called slug gives on them in float64 (names ending in
`_soft` use the graded rewards), and `golden/<slug>.json` its hyperparameters. A loss is evaluated
in three steps, as in training: statistics of the logits, loss and gradient by the statistics, and
the pull-back to the logits.
"""

import functools
import json
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.objectives import Spec, drop_rollouts
from rlvr_jax.types import Rollouts, Signals, TokenStats, replace

CASES = ("a", "b")
FOLDER = Path(__file__).parent / "golden"


@functools.cache
def inputs(case):
    """The arrays of one input set, by name."""
    with np.load(FOLDER / f"inputs_{case}.npz") as file:
        return dict(file)


@functools.cache
def reference(slug, case):
    """The outputs of one method on one input set, by name."""
    with np.load(FOLDER / f"{slug}_{case}.npz") as file:
        return dict(file)


def hyperparameters(slug):
    """The hyperparameters with which the outputs were made."""
    return json.loads((FOLDER / f"{slug}.json").read_text())["hyper"]


def token_stats(logits, tokens):
    """All statistics, written down plainly."""
    logp_all = jax.nn.log_softmax(logits)
    p = jnp.exp(logp_all)
    return TokenStats(
        logp=jnp.take_along_axis(logp_all, tokens[..., None], axis=-1)[..., 0],
        logsumexp=jax.nn.logsumexp(logits, axis=-1),
        entropy=-jnp.sum(p * logp_all, axis=-1),
        p_squared=jnp.sum(p**2, axis=-1),
        p_squared_logp=jnp.sum(p**2 * logp_all, axis=-1),
    )


def array(values, dtype):
    """A device array of the given numpy dtype; built by numpy, so that nothing is compiled."""
    return jnp.asarray(np.asarray(values, dtype))


@functools.cache
def rollouts(case, soft=False, dtype=np.float64):
    """The input set as the record of a batch; the reward is the outcome."""
    data = inputs(case)
    mask = data["mask"]
    rows, width = mask.shape
    length = mask.sum(axis=1)
    outcome = array(data["soft_rewards" if soft else "rewards"], dtype)

    def logp(name):
        logits = data[name]
        normalizer = np.log(np.exp(logits).sum(axis=-1))
        own = np.take_along_axis(logits, data["tokens"][..., None], axis=-1)[..., 0]
        return array(np.where(mask, own - normalizer, 0), dtype)

    return Rollouts(
        prompt_tokens=array(np.zeros((rows, 1)), np.int32),
        prompt_length=array(np.ones(rows), np.int32),
        tokens=array(data["tokens"], np.int32),
        length=array(length, np.int32),
        mask=array(mask, bool),
        group=array(np.arange(rows) // int(data["group_size"]), np.int32),
        rollout_id=array(np.arange(rows), np.int32),
        parent=array(np.full(rows, -1), np.int32),
        branch_position=array(np.full(rows, -1), np.int32),
        truncated=array(length >= width, bool),
        behaviour_logp=logp("old_logits"),
        entropy=array(np.zeros(mask.shape), dtype),
        temperature=array(np.ones(mask.shape), dtype),
        outcome=outcome,
        reward=outcome,
        weight_version=array(np.zeros(rows), np.int32),
        old_logp=logp("old_logits"),
        reference_logp=logp("ref_logits"),
    )


@functools.cache
def stats(case, dtype=np.float64):
    """The statistics of the current policy on one input set."""
    measured = _token_stats(inputs(case)["logits"], inputs(case)["tokens"])
    return jax.tree.map(lambda values: array(values, dtype), measured)


def prepared(recipe, batch):
    """The batch as training would hand it to the objective: shaped reward, dropped groups."""
    return _prepared(recipe.reward, recipe.selection, batch)


def spec(batch):
    """The sizes of a batch."""
    return Spec(prompts=8, B=batch.mask.shape[0], T=batch.mask.shape[1])


def evaluate(recipe, case, soft=False):
    """Runs a recipe on one input set: loss, its gradient by the logits, and the metrics."""
    batch = prepared(recipe, rollouts(case, soft))
    done = step(recipe.objective, stats(case), batch)
    return done.loss, _pull_back(inputs(case)["logits"], batch.tokens, done.dstats), done.metrics


def signals(recipe, case, soft=False):
    """What a recipe decides about each token of one input set."""
    return step(recipe.objective, stats(case), prepared(recipe, rollouts(case, soft))).signals


class Step(NamedTuple):
    """What one call of an objective gives."""

    loss: jax.Array
    dstats: TokenStats
    state: dict
    metrics: dict
    signals: Signals


def step(own, measured, batch, state=None, seed=0):
    """Evaluates an objective on statistics, with its gradient; compiled once per shape."""
    state = own.init(spec(batch)) if state is None else state
    return _step(own, measured, batch, state, jax.random.key(seed))


def num_compiled():
    """How many programs `step` has compiled so far."""
    return _step._cache_size()


# Compiling is most of the time of these tests; with these settings it takes a third of it.
options = {"xla_backend_optimization_level": 0}
if jax.__version_info__ < (0, 11):  # later ones do not know this setting
    options["xla_cpu_use_fusion_emitters"] = False
jit = functools.partial(jax.jit, compiler_options=options)


@functools.partial(jit, static_argnums=0)
def _step(own, measured, batch, state, key):
    gradient = jax.value_and_grad(own.loss, has_aux=True)
    (loss, (new_state, metrics)), dstats = gradient(measured, batch, state, key)
    return Step(loss, dstats, new_state, metrics, own.signals(measured, batch, state, key))


@functools.partial(jit, static_argnums=(0, 1))
def _prepared(reward, selection, batch):
    if reward is not None:
        batch = replace(batch, reward=reward(batch))
    if selection is not None:
        batch = drop_rollouts(batch, selection.keep(batch.outcome, batch.group))
    return batch


_token_stats = jit(token_stats)


@jit
def _pull_back(logits, tokens, dstats):
    return jax.vjp(lambda z: token_stats(z, tokens), logits)[1](dstats)[0]


def assert_agrees(actual, expected, tolerance=1e-11):
    """Asserts |actual - expected| ≤ tolerance · max |expected|; zeros must be zeros.

    1e-11 leaves four digits for sums of some hundred float64 terms in another order.
    """
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    limit = tolerance * np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, rtol=0, atol=limit)
