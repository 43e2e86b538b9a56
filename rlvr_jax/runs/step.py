"""One step of a run: collect rollouts and learn from them (`training.learning`)."""

import time
from dataclasses import dataclass

import numpy as np

from rlvr_jax.experience import Batch, Collected, concatenate
from rlvr_jax.experience.engines import gap_metrics
from rlvr_jax.experience.grades import reported_numbers, with_grades
from rlvr_jax.experience.learnable import check_first_step
from rlvr_jax.runs.checks.forecast import names_memory
from rlvr_jax.runs.run import Run
from rlvr_jax.runs.state import HostState, RunState
from rlvr_jax.training.learning import learn
from rlvr_jax.types import replace


@dataclass(frozen=True)
class Taken:
    """The results of a step.

    Fields:
      state: after its updates and with what the experience observed.
      batch: the rollouts that were learned from.
      seen: all graded batches of the step, before any filter.
      metrics: numbers of the step.
      timings: sample_s, verify_s and update_s, wall seconds; tokens_per_s, response tokens.
      records: see `learn`.
    """

    state: RunState
    batch: Batch
    seen: list[Batch]
    metrics: dict[str, float]
    timings: dict[str, float]
    records: dict[str, np.ndarray]


def take_step(run: Run, state: RunState, step: int) -> Taken:
    """Takes one step: collect, verify, learn, observe. `state.device` cannot be used again."""
    started = time.perf_counter()
    with names_memory(run, "while responses were sampled", "sampling"):
        collected = collect(run, state, step)
    batch = collected.batch
    learning = time.perf_counter()
    with names_memory(run, "in an update", "update"):
        further = [more.rollouts for more in batch.further]
        device, learned, records = learn(run.learner, state.device, batch.rollouts, step, further)
    now = time.perf_counter()
    timings = {
        "sample_s": sum(part.sample_seconds for part in collected.seen),
        "verify_s": sum(part.verify_seconds for part in collected.seen),
        "update_s": now - learning,
        "tokens_per_s": float(batch.rollouts.length.sum()) / (now - started),
    }
    metrics = dict(collected.metrics)
    # A metric of an objective must not replace a measurement of the batch.
    taken = metrics.keys() & learned.keys()
    metrics |= {f"objective/{n}" if n in taken else n: value for n, value in learned.items()}
    if run.engine is not None:
        metrics |= gap_metrics(batch.rollouts, records["old_logp"])
    trained = batch.with_rollouts(old_logp=records["old_logp"])
    data, experience_metrics = run.experience.observe(collected, trained, step, run.setting)
    metrics |= {f"experience/{name}": value for name, value in experience_metrics.items()}
    sampled = np.asarray(state.host.sampled_tokens + np.int64(collected.metrics["sampled_tokens"]))
    state = RunState(device, HostState(sampled, data))
    return Taken(state, batch, collected.seen, metrics, timings, records)


def collect(run: Run, state: RunState, step: int) -> Collected:
    """Returns the experience of one step, with metrics of all sampled rollouts, before any filter,
    and the mean reward of the trained ones."""
    actor = run.actor(state.device, step * run.config.plan.updates)
    collected = run.experience.collect(actor, state.host.data, step, run.setting)
    if step == 0:
        check_first_step(run.task.name, collected.batch)
    whole = concatenate([part for part in collected.seen if not part.requests[0].rating])
    rollouts = collected.batch.rollouts
    metrics = {"reward": _mean(rollouts.reward[rollouts.valid]), **_outcome_metrics(whole)}
    metrics["sampled_rollouts"] = float(sum(map(len, collected.seen)))
    batch = with_grades(collected.batch, run.task, run.recipe.objective.reads)
    counts = ("sampled_tokens", "given_tokens", "scored_tokens")
    metrics |= {name: collected.metrics[name] for name in counts}
    metrics["trained_tokens"] = float(rollouts.only_valid().mask.sum())
    own = {name: value for name, value in collected.metrics.items() if name not in counts}
    metrics |= {f"experience/{name}": value for name, value in own.items()}
    metrics |= run.engine.metrics if run.engine is not None else {}
    return replace(collected, batch=batch, metrics=metrics)


def _outcome_metrics(graded: Batch) -> dict[str, float]:
    """Means over all rollouts sampled in a step, before any filter, and over graded ones."""
    length = graded.rollouts.length
    graded = graded.answers
    rollouts, decided = graded.rollouts, graded.decided
    kinds = np.array([prompt.kind for prompt in graded.prompts])
    metrics = {
        "outcome": _mean(rollouts.outcome[decided]),
        "length": float(length.mean()),
        **{f"length/p{q}": float(np.percentile(length, q)) for q in (10, 50, 90)},
        "truncated_fraction": float(rollouts.truncated.mean()),
        "verifier_timeouts": sum(grade.timed_out for grade in graded.grades),
        "verifier_no_verdict": int(np.sum(~decided)),
    }
    names = sorted(set(kinds.tolist()))
    if len(names) > 1:
        for kind in names:
            metrics[f"outcome/{kind}"] = _mean(rollouts.outcome[decided & (kinds == kind)])
    for name, values in reported_numbers(graded.grades).items():
        metrics[f"info/{name}"] = _mean(values[~np.isnan(values)])
    return metrics


def _mean(values: np.ndarray) -> float:
    """The mean; NaN of nothing."""
    return float(values.mean()) if len(values) else float("nan")
