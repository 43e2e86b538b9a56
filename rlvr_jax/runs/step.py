"""One step of a run: collect rollouts, learn from them (`learning`), keep some to look at."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jax
import numpy as np

from rlvr_jax.objectives import drop_rollouts
from rlvr_jax.experience.grades import numbers_told, with_grades
from rlvr_jax.training.learning import learn
from rlvr_jax.experience.prompts import responses, token_texts
from rlvr_jax.runs.run import Run
from rlvr_jax.experience.batch import Graded, concatenate
from rlvr_jax.training.update import TrainState
from rlvr_jax.types import Rollouts, replace

__all__ = ["Taken", "collect", "sample_rows", "take_step"]


@dataclass(frozen=True)
class Taken:
    """What a step gives.

    Fields:
      state: after its updates.
      batch: the rollouts that were learned from.
      metrics: numbers of the step.
      timings: sample_s, verify_s and update_s, wall seconds; tokens_per_s, response tokens.
      records: see `learn`.
    """

    state: TrainState
    batch: Graded
    metrics: dict[str, float]
    timings: dict[str, float]
    records: dict[str, np.ndarray]


def take_step(run: Run, state: TrainState, step: int) -> Taken:
    """One whole step: collect, verify, learn. `state` is used up."""
    started = time.perf_counter()
    batch, metrics = collect(run, state, step)
    learning = time.perf_counter()
    state, learned, records = learn(run.learner, state, batch.rollouts, step)
    now = time.perf_counter()
    timings = {
        "sample_s": batch.sample_seconds,
        "verify_s": batch.verify_seconds,
        "update_s": now - learning,
        "tokens_per_s": float(batch.rollouts.length.sum()) / (now - started),
    }
    metrics = {"reward": _mean(batch.rollouts.reward[batch.decided]), **metrics}
    # A part of an objective must not pass for what was measured of the batch.
    taken = metrics.keys() & learned.keys()
    metrics |= {f"objective/{n}" if n in taken else n: value for n, value in learned.items()}
    return Taken(state, batch, metrics, timings, records)


def collect(run: Run, state: TrainState, step: int) -> tuple[Graded, dict[str, float]]:
    """The rollouts of one step, as many groups as the settings say, and numbers about all drawn.

    With a selection, further prompts are drawn until enough groups are kept or the rounds are used
    up; then dropped groups fill the batch with their mask cleared.
    """
    selection = run.recipe.selection
    rounds = selection.max_rounds if selection else 1
    wanted = run.config.prompts_per_step
    kept, spare, drawn = [], [], []
    params = run.sampler_params(state)
    for number in range(rounds):
        graded = run.start.sampler.draw(
            params,
            run.start.train_table,
            run.batches.indices(step, number, rounds),
            run.key("sampler", step, number),
            weight_version=step * run.config.updates_per_step(),
        )
        drawn.append(graded)
        keep = np.ones(len(graded.grades), bool)
        if selection:
            apart = with_grades(graded, run.task, ()).rollouts
            keep = np.asarray(selection.keep(apart.outcome, apart.group))
        groups = range(wanted)
        size = run.config.samples_per_prompt
        for group in groups:
            rows = slice(group * size, (group + 1) * size)
            judged = graded.decided[rows]
            whole = judged.any() and keep[rows][judged].all()
            (kept if whole else spare).append((number, rows))
        if len(kept) >= wanted:
            break
    metrics = _outcome_metrics(concatenate(drawn))
    metrics["sampled_rollouts"] = float(sum(len(graded.grades) for graded in drawn))
    if selection:
        metrics |= {
            "selection/rounds": len(drawn),
            "selection/kept_share": len(kept) / (len(kept) + len(spare)),
            "selection/filled_with_dropped": max(0, wanted - len(kept)),
        }
    chosen = [(*place, True) for place in kept[:wanted]]
    chosen += [(*place, False) for place in spare[: wanted - len(chosen)]]
    batch = concatenate([_rows(drawn[number], rows, used) for number, rows, used in chosen])
    batch = replace(
        batch,
        sample_seconds=sum(graded.sample_seconds for graded in drawn),
        verify_seconds=sum(graded.verify_seconds for graded in drawn),
    )
    batch = with_grades(batch, run.task, run.recipe.objective.needs)
    if run.config.mask_truncated:
        ended = drop_rollouts(batch.rollouts, ~batch.rollouts.truncated)
        batch = replace(batch, rollouts=ended)
    if run.recipe.reward is not None:
        batch = replace_reward(batch, run.recipe.reward)
    return batch, metrics


def replace_reward(batch: Graded, shape: Callable[[Rollouts], jax.Array]) -> Graded:
    """The same rollouts with the reward that the recipe makes of them; the outcome stays."""
    reward = np.asarray(shape(batch.rollouts), batch.rollouts.reward.dtype)
    return replace(batch, rollouts=replace(batch.rollouts, reward=reward))


def _rows(graded: Graded, rows: slice, used: bool) -> Graded:
    """One group of a batch; if it is not used, with its mask cleared."""
    rollouts = jax.tree.map(lambda x: x[rows], graded.rollouts)
    rollouts = replace(rollouts, group=np.zeros_like(rollouts.group))
    if not used:
        rollouts = drop_rollouts(rollouts, np.zeros(len(rollouts.group), bool))
    return replace(
        graded,
        rollouts=rollouts,
        prompts=graded.prompts[rows],
        grades=graded.grades[rows],
        sample_seconds=0.0,
        verify_seconds=0.0,
    )


def _outcome_metrics(graded: Graded) -> dict[str, float]:
    """Means over all rollouts drawn in a step, before any filter."""
    rollouts, decided = graded.rollouts, graded.decided
    kinds = np.array([prompt.kind for prompt in graded.prompts])
    metrics = {
        "outcome": _mean(rollouts.outcome[decided]),
        "length": float(rollouts.length.mean()),
        **{f"length/p{q}": float(np.percentile(rollouts.length, q)) for q in (10, 50, 90)},
        "truncated_share": float(rollouts.truncated.mean()),
        "verifier_timeouts": sum(grade.timed_out for grade in graded.grades),
        "verifier_no_verdict": int(np.sum(~decided)),
    }
    names = sorted(set(kinds.tolist()))
    if len(names) > 1:
        for kind in names:
            metrics[f"outcome/{kind}"] = _mean(rollouts.outcome[decided & (kinds == kind)])
    for name, values in numbers_told(graded.grades).items():
        metrics[f"info/{name}"] = _mean(values[~np.isnan(values)])
    return metrics


def _mean(values: np.ndarray) -> float:
    """The mean; NaN of nothing."""
    return float(values.mean()) if len(values) else float("nan")


def sample_rows(run: Run, batch: Graded, records: Mapping[str, np.ndarray], step: int) -> list:
    """The kept responses of a step with their tokens: the first of as many groups as are kept."""
    size = run.config.samples_per_prompt
    rows = np.arange(0, len(batch.prompts), size)[: run.config.samples_kept]
    texts = responses(run.start.tokenizer, jax.tree.map(lambda x: x[rows], batch.rollouts))
    kept = []
    for row, response in zip(rows.tolist(), texts, strict=True):
        length = int(batch.rollouts.length[row])
        per_token = {
            name: np.round(records[name][row, :length].astype(float), 4).tolist()
            for name in ("entropy", "logp", "advantage", "ratio")
        }
        marks = {
            name: records[name][row, :length].astype(int).tolist() for name in ("chosen", "clipped")
        }
        kept.append(
            {
                "step": step,
                "prompt": batch.prompts[row].text,
                "response": response.text,
                "kind": batch.prompts[row].kind,
                "group": int(batch.rollouts.group[row]),
                "outcome": float(batch.rollouts.outcome[row]),
                "reward": float(batch.rollouts.reward[row]),
                "truncated": bool(batch.rollouts.truncated[row]),
                "tokens": token_texts(
                    run.start.tokenizer, batch.rollouts.tokens[row, :length].tolist()
                ),
                **per_token,
                **marks,
            }
        )
    return kept
