"""Two policy folders and a task: responses are sampled from both and scored under both."""

import contextlib
import functools
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from rlvr_jax import policy
from rlvr_jax.analysis.diagnosis.formats import FORMATS
from rlvr_jax.analysis.diagnosis.pair import diagnose_answers
from rlvr_jax.analysis.diagnosis.parameters import parameters
from rlvr_jax.analysis.diagnosis.topics import Topic
from rlvr_jax.analysis.diagnosis.winners import INFLUENCE, influence_of_problems
from rlvr_jax.analysis.entropy.entropy_patterns import branching_of_top
from rlvr_jax.diagnosis.held_out import HeldOut, load_held_out
from rlvr_jax.diagnosis.influence import influence
from rlvr_jax.diagnosis.stored_pair import Pair, save_pair
from rlvr_jax.experience import Batch, SampleRequest
from rlvr_jax.experience.evaluation import prompt_weights
from rlvr_jax.experience.samples import sample_row
from rlvr_jax.policy import products
from rlvr_jax.policy.scoring import run_in_chunks, shared_prompts
from rlvr_jax.rollout import named_key
from rlvr_jax.runs.config import TrainConfig
from rlvr_jax.runs.task import load_task
from rlvr_jax.tasks import Task
from rlvr_jax.types import Rollouts, TokenStats

_NEEDS = ("logp", "entropy")
_MOST_BRANCHES = 16
"""Of the likeliest tokens that are counted until they hold 95 % of the mass; more take longer."""
_SHOWN_PROMPTS, _SHOWN_RESPONSES = 4, 4
"""Of either end of the order by change; of a prompt and policy. On a page that people read."""


@functools.cache
def _scoring(dtype: str) -> Callable[..., TokenStats]:
    """`policy.score` of policies that compute in a type; those of one shape have one program."""
    options = products.compiler_options(dtype)
    return jax.jit(
        policy.score,
        static_argnums=(0, 3, 4),
        static_argnames="shared",
        compiler_options=options,
    )


def compare_policies(
    settings: TrainConfig,
    against: str | Path,
    names: tuple[str, str],
    weights: bool = True,
    keep: Path | None = None,
    rules: Mapping[str, str] = FORMATS,
) -> tuple[list[Topic], tuple[list[dict[str, Any]], ...]]:
    """The diagnosis of a policy folder against another one, topic by topic; and responses to show,
    see `shown_rows`.

    Args:
      settings: `evaluation_settings` with the folder as `model`.
      against: the folder of the initial policy.
      names: of the two policies, the initial one first.
      weights: whether weights are compared, where shapes agree.
      keep: folder for the responses, see `save_pair`; None: they are not stored.
      rules: formats of responses, regular expressions by name.
    Raises:
      ValueError: as `draw_pair`.
    """
    task, first, last = _loaded(settings, against)
    pair = _drawn(settings, task, first, last)
    if keep is not None:
        save_pair(keep, pair)
    topics = diagnose_answers(*pair.answers(), names, rules)
    if pair.of_before is not None:
        topics.append(_influence(first, pair.before, names[0]))
    if weights:
        with policy_folder(against) as start, policy_folder(settings.policy.model) as end:
            topics.append(parameters(start, end))
    return topics, shown_rows(pair)


def _influence(first: HeldOut, before: Batch, name: str) -> Topic:
    """The influence of problems on each other, or the reason why it is not measured."""
    try:
        found = influence(first.loaded.model, first.loaded.params, before.rollouts)
    except ValueError as error:
        return Topic(INFLUENCE, missing=[f"{INFLUENCE}: {error}."])
    return influence_of_problems(found, name)


@contextlib.contextmanager
def policy_folder(path: str | Path) -> Iterator[Path]:
    """A policy folder as it is; a `.gguf` file as a folder of its weights in float32, which is gone
    afterwards.

    Raises:
      ValueError: a file that cannot be loaded.
    """
    if Path(path).suffix != ".gguf":
        yield Path(path)
        return
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / Path(path).name
        policy.save(folder, *policy.load(path))
        yield folder


def draw_pair(settings: TrainConfig, against: str | Path) -> Pair:
    """Samples responses of both policies, twice of the first, and scores them under both.

    The three samplings have different random numbers. If the vocabularies differ, each policy has
    the prompts and the response budget in its tokens, and scores only its responses.

    Raises:
      ValueError: folders that cannot be loaded.
    """
    return _drawn(settings, *_loaded(settings, against))


def _loaded(settings: TrainConfig, against: str | Path) -> tuple[Task, HeldOut, HeldOut]:
    """The task and both policies with its held-out prompts, the first one's first."""
    task = load_task(settings)
    first = load_held_out(settings.replace(model=str(against)), task)
    return task, first, load_held_out(settings, task)


def _drawn(settings: TrainConfig, task: Task, first: HeldOut, last: HeldOut) -> Pair:
    folders = (first.loaded.path, last.loaded.path)
    one, other = (policy.tokenizer(path).get_vocab() for path in folders)
    before, after, again = (
        _sampled(asked, settings, number) for number, asked in enumerate((first, last, first))
    )
    weights = prompt_weights(task, first.indices)
    if one != other:
        own = (_with_own(b, _scored(h, b.rollouts)) for b, h in ((before, first), (after, last)))
        return Pair(*own, again, None, None, weights, vocabularies=folders)
    own_before, own_sizes = _branching(first, before.rollouts)
    of_before, other_sizes = _branching(last, before.rollouts)
    return Pair(
        _with_own(before, own_before),
        _with_own(after, _scored(last, after.rollouts)),
        again,
        of_before,
        _scored(first, after.rollouts),
        weights,
        (own_sizes, other_sizes),
    )


def score_answers(model: policy.Model, params: policy.Params, rollouts: Rollouts) -> TokenStats:
    """Returns `logp` and `entropy` [B, T] of a policy on the tokens of rollouts, on the host."""
    shared, run = shared_prompts(rollouts), _scoring(model.config.compute_dtype)
    return run_in_chunks(lambda rows: run(model, params, rows, _NEEDS, (), shared=shared), rollouts)


def score_branching(
    model: policy.Model, params: policy.Params, rollouts: Rollouts
) -> tuple[TokenStats, np.ndarray]:
    """Returns `score_answers`, and at each token the number of most probable tokens that have 95 %
    of the mass, `_MOST_BRANCHES` at most."""
    options = (("top_k", min(_MOST_BRANCHES, model.config.vocab_size)),)
    shared, run = shared_prompts(rollouts), _scoring(model.config.compute_dtype)

    def of_rows(rows):
        stats = run(model, params, rows, (*_NEEDS, "topk_logp"), options, shared=shared)
        sizes = branching_of_top(stats.records.get("topk_logp")).astype(np.uint8)
        return stats.replace(topk_logp=None), sizes

    return run_in_chunks(of_rows, rollouts)


def shown_rows(pair: Pair) -> tuple[list[dict[str, Any]], ...]:
    """Returns responses of either policy to the prompts whose pass rates changed most, up and
    down, in the format of a run.

    Entropy and log-prob are those of the policy that sampled. If the vocabularies are equal,
    `prob_delta` and `entropy_delta` are the values of the second policy minus the first.
    """
    rates = [batch.by_group(batch.rollouts.outcome, 0).mean(axis=1) for batch in pair[:2]]
    chosen = changed_most(rates[1] - rates[0])
    found = []
    for batch, other, sign in ((pair.before, pair.of_before, 1), (pair.after, pair.of_after, -1)):
        own = batch.rollouts
        columns = {"entropy": own.entropy, "logp": own.old_logp}
        if other is not None:
            columns["prob_delta"] = sign * (np.exp(other.logp) - np.exp(own.old_logp))
            columns["entropy_delta"] = sign * (other.entropy - own.entropy)
        rows = []
        for row in (row for group in chosen for row in _different(batch, batch.groups[group])):
            length = int(own.length[row])
            (response,) = batch.take([row]).responses
            numbers = {
                name: np.round(values[row, :length].astype(float), 4).tolist()
                for name, values in columns.items()
            }
            rows.append(sample_row(batch, row, response, batch.tokenizer) | numbers)
        found.append(rows)
    return tuple(found)


def changed_most(change: np.ndarray) -> list[int]:
    """Returns indices of a few largest rises, then of a few largest falls. Problems without a
    change are left out; if none changed, the first problems are returned.

    Args:
      change: [P], change of the pass rate of each problem.
    """
    order = np.argsort(-change, kind="stable").tolist()
    few = dict.fromkeys([*order[:_SHOWN_PROMPTS], *order[: -_SHOWN_PROMPTS - 1 : -1]])
    return [index for index in few if change[index]] or order[:_SHOWN_PROMPTS]


def _different(batch: Batch, rows: np.ndarray) -> list[int]:
    """A few different responses of a group, the best and the worst."""
    rollouts = batch.rollouts
    texts = {tuple(rollouts.tokens[row][rollouts.mask[row]].tolist()): row for row in rows[::-1]}
    order = sorted(texts.values(), key=lambda row: (-rollouts.outcome[row], row))
    half = _SHOWN_RESPONSES // 2
    return order if len(order) <= _SHOWN_RESPONSES else order[:half] + order[-half:]


def _sampled(asked: HeldOut, settings: TrainConfig, number: int) -> Batch:
    """Graded answers to the held-out prompts."""
    table = asked.loaded.test_table
    requests = [
        SampleRequest(table.prompts[i], int(i), settings.evaluation.evaluation_samples, rating=True)
        for i in asked.indices
    ]
    actor = asked.actor()
    return actor.grade(actor.draw(requests, named_key(settings.seed, "diagnose", number)))


def _with_own(batch: Batch, stats: TokenStats) -> Batch:
    """The answers with the scorer's statistics of the policy that sampled them: log-ratios of two
    policies are then of one program."""
    return batch.with_rollouts(old_logp=stats.logp, entropy=stats.entropy)


def _scored(asked: HeldOut, rollouts: Rollouts) -> TokenStats:
    return score_answers(asked.loaded.model, asked.loaded.params, rollouts)


def _branching(asked: HeldOut, rollouts: Rollouts) -> tuple[TokenStats, np.ndarray]:
    return score_branching(asked.loaded.model, asked.loaded.params, rollouts)
