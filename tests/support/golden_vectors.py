"""Reference vectors: inputs, what each method gives on them, and how ours is evaluated.

`inputs_<case>.npz` of a folder holds logits of four policies, tokens, masks and rewards;
`<slug>_<case>.npz` what the method called slug gives on them in float64 (names ending in `_soft`
use the graded rewards), and `<slug>.json` its hyperparameters. A loss is evaluated in three steps,
as in training: statistics of the logits, loss and gradient by the statistics, and the pull-back to
the logits. Where a function takes a case, its letter means the one in `golden/`.
"""

import dataclasses
import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from golden_stages import experience_batch as experience_batch, prepared as prepared

from rlvr_jax import methods
from rlvr_jax.objectives.laws.cases import array, spec, step as step
from rlvr_jax.types import Rollouts, Signals, TokenStats

# They declare records of their own.
for _method in ("ares", "dsdr", "epo", "laser", "spae"):
    methods.method(_method)

CASES = ("a", "b")
FOLDER = Path(__file__).parents[1] / "golden"


class Case(NamedTuple):
    """One input set of a folder."""

    folder: Path
    name: str


def _path(case, slug):
    folder, name = case if isinstance(case, Case) else (FOLDER, case)
    return folder / f"{slug}_{name}.npz"


@functools.cache
def inputs(case):
    """The arrays of one input set, by name."""
    with np.load(_path(case, "inputs")) as file:
        return dict(file)


@functools.cache
def reference(slug, case):
    """The outputs of one method on one input set, by name."""
    with np.load(_path(case, slug)) as file:
        return dict(file)


def hyperparameters(slug, folder=FOLDER):
    """The hyperparameters with which the outputs were made: the folder's, else those of `golden/`.

    Returns:
      A dict; empty if neither folder tells.
    """
    for place in (folder, FOLDER):
        if (place / f"{slug}.json").is_file():
            return json.loads((place / f"{slug}.json").read_text())["hyper"]
    return {}


def nucleus(logits, top_p, include_crossing=True):
    """Which entries of the vocabulary make up the nucleus, [B, T, V]."""
    p = jax.nn.softmax(jax.lax.stop_gradient(logits))
    order = jnp.argsort(-p, axis=-1)
    mass = jnp.cumsum(jnp.take_along_axis(p, order, axis=-1), axis=-1)
    before = jnp.concatenate([jnp.zeros_like(mass[..., :1]), mass[..., :-1]], axis=-1)
    kept = (before if include_crossing else mass) < top_p
    return jnp.take_along_axis(kept, jnp.argsort(order, axis=-1), axis=-1)


def token_after(mask):
    """Position right after the last token of each row, [B]; T where the row is full."""
    width = mask.shape[1]
    return np.max(np.where(mask, np.arange(width) + 1, 0), axis=1)


def token_stats(
    logits,
    tokens,
    other=None,
    top_k=0,
    second_temperature=None,
    top_p=None,
    include_crossing=True,
    min_p=None,
    second_prompt=None,
    verdict=None,
    candidates=None,
):
    """All statistics, written down plainly.

    `other` holds the logits of a second policy, `second_prompt` those under a second prompt;
    `verdict` is (ids, positions [B]): whose log-probs, and where in each row; there is no such
    position in a full row, which gets those of the first one.
    """
    logp_all = jax.nn.log_softmax(logits)
    p = jnp.exp(logp_all)
    own = tokens[..., None]
    largest = jax.lax.stop_gradient(logp_all)
    more = {}
    if top_k:
        more["topk_logp"], more["topk_ids"] = jax.lax.top_k(logp_all, top_k)
    if second_temperature is not None:
        cooled = jax.nn.log_softmax(logits / second_temperature)
        more["second_logp"] = jnp.take_along_axis(cooled, own, axis=-1)[..., 0]
    if top_p is not None:
        kept = nucleus(logits, top_p, include_crossing)
        several = jnp.sum(kept, axis=-1) > 1
        inside = jnp.where(kept | ~several[..., None], logits, -jnp.inf)
        own_logp = jnp.where(kept, jax.nn.log_softmax(inside), 0)
        spread = -jnp.sum(jnp.where(kept, jnp.exp(own_logp) * own_logp, 0), axis=-1)
        more["nucleus_entropy"] = jnp.where(several, spread, 0)
    if min_p is not None:
        cut = jnp.log(min_p) + jnp.max(largest, axis=-1, keepdims=True)
        more["min_p_mass"] = jnp.sum(jnp.where(largest >= cut, jnp.exp(largest), 0), axis=-1)
    if second_prompt is not None:
        shown = jax.nn.log_softmax(second_prompt)
        more["second_prompt_logp"] = jnp.take_along_axis(shown, own, axis=-1)[..., 0]
    if candidates is not None:
        more["candidate_logp"] = jnp.take_along_axis(logp_all, jnp.asarray(candidates), axis=-1)
    if verdict is not None:
        ids, positions = verdict
        rows, width = jnp.arange(tokens.shape[0]), tokens.shape[1]
        there = logp_all[rows, jnp.where(positions < width, positions, 0)]
        more["verdict_logp"] = there[:, jnp.asarray(ids)]
    if other is not None:
        other = jax.nn.log_softmax(other)
        q, middle = jnp.exp(other), jnp.logaddexp(logp_all, other) - jnp.log(2.0)
        more["kl"] = jnp.sum(p * (logp_all - other), axis=-1)
        more["reverse_kl"] = jnp.sum(q * (other - logp_all), axis=-1)
        halves = p * (logp_all - middle) + q * (other - middle)
        more["js"] = jnp.sum(halves, axis=-1) / 2
        more["teacher_entropy"] = -jnp.sum(q * other, axis=-1)
        if top_k:
            ids = more["topk_ids"]
            more["teacher_topk_logp"] = jnp.take_along_axis(other, ids, axis=-1)
    arrays = dict(
        logp=jnp.take_along_axis(logp_all, own, axis=-1)[..., 0],
        logsumexp=jax.nn.logsumexp(logits, axis=-1),
        entropy=-jnp.sum(p * logp_all, axis=-1),
        p_squared=jnp.sum(p**2, axis=-1),
        p_squared_logp=jnp.sum(p**2 * logp_all, axis=-1),
        varentropy=jnp.sum(p * (logp_all + jnp.sum(-p * logp_all, -1, keepdims=True)) ** 2, -1),
        mean_logit=jnp.mean(jax.lax.stop_gradient(logits), axis=-1),
        max_logp=jnp.max(largest, axis=-1),
        max_id=jnp.argmax(largest, axis=-1).astype(jnp.int32),
        **more,
    )
    return TokenStats.of_arrays(arrays)


@functools.cache
def rollouts(case, soft=False, dtype=np.float64, min_p=0.02, top_k=3, temperatures=(1.2, 0.8)):
    """The input set as the record of a batch; the reward is the outcome (`soft`: graded).

    The critics of a row say its last value and its mean value; its formulas are its token ids. The
    prompt is one token, of the mean graded reward of its group as probability. Probes are as sure
    as the policy was at the token, and right where the sampled token is its favourite.
    """
    data = inputs(case)
    mask = data["mask"]
    rows, width = mask.shape
    length = mask.sum(axis=1)
    outcome = array(data["soft_rewards" if soft else "rewards"], dtype)

    def all_logp(name):
        logits = data[name]
        return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))

    def logp(name):
        own = np.take_along_axis(all_logp(name), data["tokens"][..., None], axis=-1)[..., 0]
        return array(np.where(mask, own, 0), dtype)

    def row_mean(name):
        total = np.where(mask.reshape(mask.shape + (1,) * (data[name].ndim - 2)), data[name], 0)
        count = np.maximum(length, 1)
        return total.sum(axis=1) / count.reshape(count.shape + (1,) * (data[name].ndim - 2))

    old = all_logp("old_logits")
    p, largest = np.exp(old), old.max(axis=-1)
    min_p_mass = np.where(old >= np.log(min_p) + largest[..., None], p, 0).sum(axis=-1)
    group = np.arange(rows) // int(data["group_size"])
    same = group[:, None] == group
    prompt_probability = (same * data["soft_rewards"]).sum(axis=1) / same.sum(axis=1)
    candidates = np.argsort(-old, axis=-1)[..., :top_k]
    ids = np.asarray(jax.lax.top_k(jax.nn.log_softmax(data["logits"]), top_k)[1])
    tempered = [
        data["old_logits"] / t - np.log(np.exp(data["old_logits"] / t).sum(axis=-1, keepdims=True))
        for t in temperatures
    ]
    own_tempered = [np.take_along_axis(x, data["tokens"][..., None], axis=-1) for x in tempered]
    last = np.maximum(token_after(mask) - 1, 0)
    last_value = np.where(length > 0, data["values"][np.arange(rows), last], 0)

    arrays = dict(
        prompt_tokens=array(np.zeros((rows, 2)), np.int32),
        prompt_length=array(np.full(rows, 2), np.int32),
        tokens=array(data["tokens"], np.int32),
        length=array(length, np.int32),
        mask=array(mask, bool),
        group=array(group, np.int32),
        rollout_id=array(np.arange(rows), np.int32),
        parent=array(np.full(rows, -1), np.int32),
        branch_position=array(np.full(rows, -1), np.int32),
        truncated=array(length >= width, bool),
        behaviour_logp=logp("old_logits"),
        entropy=array(np.where(mask, -(p * old).sum(axis=-1), 0), dtype),
        temperature=array(np.ones(mask.shape), dtype),
        outcome=outcome,
        reward=outcome,
        valid=array(np.ones(rows), bool),
        weight_version=array(np.zeros(rows), np.int32),
        old_logp=logp("old_logits"),
        reference_logp=logp("ref_logits"),
        teacher_logp=logp("teacher_logits"),
        values=array(data["values"], dtype),
        process_reward=array(data["process_rewards"], dtype),
        component_rewards=array(data["multi_rewards"], dtype),
        step=array(data["step_ids"], np.int32),
        turn=array(data["turn_ids"], np.int32),
        off_policy=array(data["off_policy"], bool),
        answer=array(data["answers"], np.int32),
        critic_values=array(np.stack([last_value, row_mean("values")], axis=1), dtype),
        old_max_logp=array(np.where(mask, largest, 0), dtype),
        old_min_p_mass=array(np.where(mask, min_p_mass, 0), dtype),
        old_p_squared=array((p**2).sum(axis=-1), dtype),
        old_p_squared_logp=array((p**2 * old).sum(axis=-1), dtype),
        old_logsumexp=array(np.log(np.exp(data["old_logits"]).sum(axis=-1)), dtype),
        old_mean_logit=array(data["old_logits"].mean(axis=-1), dtype),
        old_topk_logp=array(np.take_along_axis(old, ids, axis=-1), dtype),
        old_tempered_logp=array(np.concatenate(own_tempered, axis=-1), dtype),
        old_second_prompt_logp=logp("old_logits"),
        # Of two tokens, of which the first has none.
        prompt_logp=array(
            np.log(np.maximum(prompt_probability, 1e-300))[:, None] * np.array([0, 1]), dtype
        ),
        probe_confidence=array(np.where(mask, np.exp((p * old).sum(axis=-1)), 0), dtype),
        probe_accuracy=array(mask & (data["tokens"] == old.argmax(axis=-1)), dtype),
        embedding=array(row_mean("hidden"), dtype),
        trigger=array(mask & (data["tokens"] % 3 == 0), bool),
        self_reward=array(data["soft_rewards"], dtype),
        env_step=array(np.arange(rows) % 4, np.int32),
        soft=array(mask & (data["turn_ids"] == 0), bool),
        candidate_ids=array(candidates, np.int32),
        candidate_noisy_logp=array(np.take_along_axis(old, candidates, axis=-1), dtype),
        old_candidate_logp=array(np.take_along_axis(old, candidates, axis=-1), dtype),
        formulas=array(
            np.pad(np.where(mask, data["tokens"], -1), ((0, 0), (0, 1)), constant_values=-1),
            np.int32,
        ),
    )
    return Rollouts.of_arrays(arrays)


@functools.cache
def stats(case, dtype=np.float64):
    """The statistics of the current policy on one input set."""
    data = inputs(case)
    measured = _all_token_stats(
        data["logits"],
        data["tokens"],
        data["teacher_logits"],
        (np.arange(2), token_after(data["mask"])),
        data["old_logits"],
        rollouts(case).records["candidate_ids"],
    )
    measured = measured.replace(hidden=data["hidden"])

    def cast(values):
        return array(values, dtype if np.issubdtype(values.dtype, np.floating) else values.dtype)

    return jax.tree.map(cast, measured)


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What a recipe gives on one input set.

    Fields:
      loss: scalar.
      dlogits: [B, T, V], gradient of the loss by the logits.
      metrics, state: of the loss.
      batch: the rollouts as the objective saw them, shaped reward and all.
      asked: name of a method of the objective -> what it says of the same; computed when wanted.
    """

    loss: jax.Array
    dlogits: jax.Array
    metrics: dict
    state: dict
    batch: Rollouts
    asked: Callable[[str], Any]

    @functools.cached_property
    def signals(self) -> Signals:
        """What was decided about each token."""
        return self.asked("signals")

    @functools.cached_property
    def token_loss(self) -> jax.Array:
        """[B, T], what the aggregation averages."""
        return self.asked("token_loss")

    def outputs(self, suffix=""):
        """Usual outputs of vectors, by name; a function is called if its vector exists."""
        found = {
            "advantages": lambda: self.signals.advantage,
            "token_loss": lambda: self.token_loss,
            "loss": self.loss,
            "dlogits": self.dlogits,
        }
        return {f"{name}{suffix}": value for name, value in found.items()}


def evaluate(recipe, case, soft=False, state=None, stats_of=None, batch=None, samples=None):
    """Runs a recipe on one input set, operation by operation: nothing is compiled as a whole.

    Args:
      recipe: a `Recipe`.
      soft: the graded rewards instead of 0 and 1.
      state: the objective's, where it is not that of the first update.
      stats_of: (logits) -> `TokenStats`; None: all plain statistics, with the recipe's options.
      batch: the record; None: that of the case.
      samples: rows of a group that are trained on; None: all.
    """
    batch = rollouts(case, soft) if batch is None else batch
    batch = prepared(recipe, batch, samples)
    own = recipe.objective
    if stats_of is None:
        stats_of = functools.partial(token_stats, tokens=batch.tokens, **dict(own.options))
    state = own.init(spec(batch)) if state is None else state
    key = jax.random.key(0)
    measured, pull_back = jax.vjp(stats_of, jnp.asarray(inputs(case)["logits"]))
    gradient = jax.value_and_grad(own.loss, has_aux=True, allow_int=True)
    (loss, (new_state, metrics)), dstats = gradient(measured, batch, state, key)
    (dlogits,) = pull_back(dstats)

    def asked(name):
        return getattr(own, name)(measured, batch, state, key)

    return Evaluation(loss, dlogits, metrics, new_state, batch, asked)


def named(outputs, soft):
    """The outputs by their names under the chosen rewards."""
    return {f"{name}_soft" if soft else name: value for name, value in outputs.items()}


def signals(recipe, case, soft=False, state=None):
    """What a recipe decides about each token of one input set."""
    batch = prepared(recipe, rollouts(case, soft))
    state = recipe.objective.init(spec(batch)) if state is None else state
    return _signals(recipe.objective, stats(case), batch, state, jax.random.key(0))


@functools.partial(jax.jit, static_argnums=0)
def _signals(own, measured, batch, state, key):
    return own.signals(measured, batch, state, key)


@jax.jit
def _all_token_stats(logits, tokens, second_prompt, verdict, other, candidates):
    return token_stats(
        logits,
        tokens,
        other=other,
        top_k=3,
        top_p=0.8,
        second_prompt=second_prompt,
        verdict=verdict,
        candidates=candidates,
    )


def assert_agrees(actual, expected, tolerance=1e-11):
    """Asserts |actual - expected| ≤ tolerance · max |expected|; zeros must be zeros.

    1e-11 leaves four digits for sums of some hundred float64 terms in another order.
    """
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    limit = tolerance * np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, rtol=0, atol=limit)
