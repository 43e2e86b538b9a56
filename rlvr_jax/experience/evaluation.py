"""Held-out evaluation: many responses to the same prompts throughout the run."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np

from rlvr_jax.analysis import pass_at_k
from rlvr_jax.experience.actor import RunActor
from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.grades import grade, grade_answers, reported_numbers
from rlvr_jax.experience.parts import Draw, RunInfo, StepContext
from rlvr_jax.experience.prompts import PromptTable
from rlvr_jax.experience.requests import SampleRequest
from rlvr_jax.experience.sampling import Sampler
from rlvr_jax.policy import Params
from rlvr_jax.tasks import Task
from rlvr_jax.training.layout import evaluation_mesh
from rlvr_jax.types import Rollouts, is_correct, replace

Answer = Callable[[np.ndarray, jax.Array, np.ndarray], Batch]
"""(positions of prompts [n], key, numbers of their first samples [n]) -> graded responses."""

KS = (1, 8, 32)
LEAST_TURNS, MOST_TURNS = 8, 32
"""Bounds of (rows of an evaluation) / (rows computed at once). Below the first one the sampler of
the run is used, above the second one several calls. Chosen, not measured."""


@dataclass(frozen=True)
class Evaluation:
    """The result of `evaluate`.

    Fields:
      metrics: numbers over all prompts, by name.
      n: samples per prompt.
      prompts: positions in the test split.
      correct, ungraded: numbers of correct and ungraded samples of each prompt.
      weights: weights of the prompts in a mean over all of them; their sum is 1.
    """

    metrics: dict[str, float]
    n: int
    prompts: Sequence[int]
    correct: Sequence[int]
    ungraded: Sequence[int]
    weights: Sequence[float]

    def counts(self) -> dict[str, Any]:
        """All but the metrics, as JSON."""
        return {name: value for name, value in vars(self).items() if name != "metrics"}


def held_out_indices(task: Task, count: int) -> np.ndarray:
    """Positions of at most `count` test prompts, kinds in the fractions of the task's mixture.

    The choice does not depend on the seed, so runs can be compared prompt by prompt.

    Raises:
      ValueError: the mixture has no kind of the test prompts.
    """
    members: dict[str, list[int]] = {}
    for index, prompt in enumerate(task.test):
        members.setdefault(prompt.kind, []).append(index)
    fractions = _fractions(
        [prompt.kind for prompt in task.test], task.mixture, f"task {task.name!r}"
    )
    chosen, before = [], 0.0
    for number, (kind, rows) in enumerate(members.items()):
        order = np.random.default_rng([0, number]).permutation(rows)
        # Differences of rounded sums, so that the total is `count`.
        after = before + count * fractions[kind]
        chosen.extend(order[: round(after) - round(before)])
        before = after
    return np.sort(np.array(chosen, int))


def _fractions(kinds: Sequence[str], mixture: Mapping[str, float], place: str) -> dict[str, float]:
    """Fractions of the kinds of test prompts: those of the mixture, else those of these prompts."""
    counts = Counter(kinds)
    weights = {kind: mixture.get(kind, 0.0) for kind in counts} if mixture else counts
    total = sum(weights.values())
    if not total > 0:
        raise ValueError(
            f"{place}: mixture must have a positive fraction for a kind of the test prompts"
            f" ({', '.join(counts)}), got {dict(mixture)}"
        )
    return {kind: weight / total for kind, weight in weights.items()}


def prompt_weights(task: Task, indices: np.ndarray) -> np.ndarray:
    """Weights of the test prompts at `indices` in a mean, [P]; their sum is 1.

    Kinds have the fractions of the task's mixture.

    Raises:
      ValueError: as `held_out_indices`.
    """
    kinds = np.array([task.test[i].kind for i in indices])
    return dict(_splits(kinds, task.mixture))["held_out"]


def ks_for(samples: int) -> list[int]:
    """The k of pass@k for n samples: those with n ≥ 2k, and always 1."""
    return [k for k in KS if k == 1 or samples >= 2 * k]


def evaluation_sampler(
    sampler: Sampler,
    prompts: int,
    samples: int,
    *,
    sampling_batches: int = 1,
    mesh_given: bool = False,
) -> Sampler:
    """The sampler for evaluations, with continuous batching of many more rows than fit at once.

    It replaces a finished row by the next one, while the run's sampler waits for the longest row,
    and computes the prompt of several responses once. The run's sampler is used in three cases: few
    rows, several sampling batches (memory is short), a mesh that is not split by data.

    Args:
      sampler: the run's.
      prompts, samples: numbers of prompts, and of samples per prompt, of an evaluation.
      sampling_batches: number of sampling batches of a step.
      mesh_given: whether the user chose the devices that sample.
    """
    mesh = sampler.model.mesh
    if sampling_batches > 1 or mesh.shape["data"] < mesh.size:
        return sampler
    wide = mesh if mesh_given else evaluation_mesh(sampler.model)
    rows = sampler.at_once or sampler.num_prompts * sampler.samples
    at_once = rows // mesh.size * wide.size
    samples = -(-samples // sampler.samples) * sampler.samples
    if prompts * samples < LEAST_TURNS * at_once:
        return sampler
    calls = -(-prompts * samples // (MOST_TURNS * at_once))
    prompts = -(-prompts // (calls * wide.size)) * wide.size
    return replace(
        sampler,
        model=replace(sampler.model, mesh=wide),
        num_prompts=prompts,
        samples=samples,
        sampling_batch=(prompts, samples),
        at_once=at_once,
    )


def evaluate(
    sampler: Sampler,
    params: Params,
    table: PromptTable,
    indices: np.ndarray,
    samples: int,
    key: jax.Array,
    *,
    kl: Callable[[Rollouts], float] | None = None,
    answer: Answer | None = None,
) -> Evaluation:
    """Pass rates and entropy on held-out prompts, with the sampler's compiled function.

    Args:
      sampler: samples the responses.
      params: weights in the form that the sampler reads.
      table: the test prompts as tokens.
      indices: positions of the evaluated prompts in the table.
      samples: rollouts per prompt; rounded up to whole calls of the sampler.
      key: random key, the same throughout a run.
      kl: mean log-ratio of rollouts to the initial policy, for the first call.
      answer: computes the responses of a call; None: the sampler.
    Returns:
      The evaluation. Its metrics include held_out/n (samples per prompt), held_out/pass@k,
      held_out/entropy (nats per token), held_out/truncated_fraction, held_out/info/<name> and
      held_out/verifier_no_verdict (number of ungraded responses, which count as incorrect). Also
      held_out/<kind>/pass@k, held_out/<kind>/info/<name> and, with `kl`, held_out/kl_to_start/k1
      (nats per token). Kinds have the fractions of the task's mixture in numbers of all prompts.
    Raises:
      ValueError: as `held_out_indices`.
    """
    answer = answer or partial(answered, sampler, params, table)
    kinds = np.array([table.prompts[i].kind for i in indices])
    splits = list(_splits(kinds, sampler.task.mixture))
    calls = -(-samples // sampler.samples)
    n, count = calls * sampler.samples, calls * len(indices)
    # All prompts, then all again; only the last call is padded, with prompts of earlier calls.
    padded = -(-count // sampler.num_prompts) * sampler.num_prompts
    places = np.resize(np.arange(len(indices)), padded)
    first = np.resize(np.repeat(np.arange(calls) * sampler.samples, len(indices)), padded)
    correct, ungraded = np.zeros((2, len(indices)), int)
    info: dict[str, np.ndarray] = {}
    result: dict[str, float] = {}
    entropy = tokens = truncated = 0.0
    for start in range(0, count, sampler.num_prompts):
        part = slice(start, start + sampler.num_prompts)
        graded = answer(indices[places[part]], key, first[part])
        if kl is not None and start == 0:
            result["held_out/kl_to_start/k1"] = kl(graded.rollouts)
        groups = min(sampler.num_prompts, count - start)
        counted = groups * sampler.samples

        def add(sums, values, at=places[part][:groups], asked=counted):
            np.add.at(sums, at, np.reshape(values[:asked], (len(at), -1)).sum(axis=1))

        add(correct, [is_correct(grade.outcome or 0) for grade in graded.grades])
        add(ungraded, ~graded.decided)
        for name, values in reported_numbers(graded.grades).items():
            total, absent = info.setdefault(name, np.zeros((2, len(indices))))
            add(total, np.nan_to_num(values))
            add(absent, np.isnan(values))
        entropy += float(graded.rollouts.entropy[:counted].sum(dtype=np.float64))
        tokens += float(graded.rollouts.mask[:counted].sum())
        truncated += float(graded.rollouts.truncated[:counted].sum())
    result |= {
        "held_out/n": n,
        "held_out/entropy": entropy / max(tokens, 1.0),
        "held_out/truncated_fraction": truncated / (len(indices) * n),
        "held_out/verifier_no_verdict": int(ungraded.sum()),
    }
    for prefix, weights in splits:
        for k in ks_for(n):
            estimate = pass_at_k(np.full(len(indices), n), correct, k)
            result[f"{prefix}/pass@{k}"] = float(weights @ estimate)
        for name, (total, absent) in info.items():
            number = n - absent
            asked = weights * (number > 0)
            mean = asked @ (total / np.maximum(number, 1)) / asked.sum() if asked.any() else np.nan
            result[f"{prefix}/info/{name}"] = float(mean)
    whole = dict(splits)["held_out"]
    counts = (values.tolist() for values in (correct, ungraded, whole))
    return Evaluation(result, n, indices.tolist(), *counts)


def answered(
    sampler: Sampler,
    params: Params,
    table: PromptTable,
    indices: np.ndarray,
    key: jax.Array,
    first_sample: int | np.ndarray = 0,
) -> Batch:
    """Graded responses to the prompts at `indices` [num_prompts] of a table; see `Sampler.draw`.

    Args:
      sampler: settings and compiled function of the sampler.
      params: weights of the policy.
      table: prompts as tokens.
      indices: rows of the table.
      key: of the evaluation; each response derives its own.
      first_sample: number of the first response of each prompt, for its key.
    """
    tokens, length = table.tokens[indices], table.length[indices]
    rollouts = sampler.draw(params, tokens, length, indices, key, first_sample=first_sample)
    requests = [
        SampleRequest(table.prompts[i], int(i), sampler.samples, rating=True) for i in indices
    ]
    rows = [request for request in requests for _ in range(sampler.samples)]
    return grade(sampler.task, Batch(rollouts, rows, (), sampler.tokenizer))


def answered_by(
    draw: Draw, state: Any, actor: RunActor, table: PromptTable, setting: RunInfo, step: int
) -> Answer:
    """Graded responses by a draw that belongs to the policy; the last row of each response.

    Args:
      draw: of the experience of the run.
      state: state of the draw; it does not change.
      actor: an actor with the unchanged prompts of `table`.
      table: the prompts.
      setting: context of the run.
      step: number of the step.
    """
    samples = actor.sampler.samples

    def answer(indices, key, first_sample):
        places = zip(indices.tolist(), first_sample.tolist(), strict=True)
        requests = [
            SampleRequest(table.prompts[i], i, samples, first_sample=first, rating=True)
            for i, first in places
        ]
        turn = StepContext(step, key, setting, lambda count: [])
        batch, _, _ = draw.apply(requests, actor, state, turn)
        return grade_answers(actor.grade, batch).answers

    return answer


def _splits(kinds: np.ndarray, mixture: Mapping[str, float]) -> Iterator[tuple[str, np.ndarray]]:
    """The whole set and, if there are several kinds, each kind, with weights of sum 1.

    In the whole set, kinds have the fractions of the mixture.
    """
    fractions = _fractions(sorted(kinds.tolist()), mixture, "evaluate")
    rates = {name: (kinds == name) / np.sum(kinds == name) for name in fractions}
    yield "held_out", np.array(list(fractions.values())) @ np.stack(list(rates.values()))
    if len(rates) > 1:
        for name, weights in rates.items():
            yield f"held_out/{name}", weights
