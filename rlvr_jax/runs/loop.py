"""The training loop: sample, verify and update in each step; evaluate and save in some."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.experience import RunActor
from rlvr_jax.experience.evaluation import Evaluation, answered_by, evaluate
from rlvr_jax.experience.samples import sample_rows
from rlvr_jax.parallel import fetch, first_says, must_stop
from rlvr_jax.runs.checkpoints import Checkpoints
from rlvr_jax.runs.checks.forecast import names_memory
from rlvr_jax.runs.config import TrainConfig
from rlvr_jax.runs.run import Run
from rlvr_jax.runs.run_writer import NoWriter, RunWriter
from rlvr_jax.runs.state import HostState, RunState
from rlvr_jax.runs.step import take_step
from rlvr_jax.tasks import GradingError
from rlvr_jax.types import replace

_CHECKPOINT_SECONDS = 300.0
_FINITE = ("loss", "gradient_norm", "critic/loss", "critic/gradient_norm")
"""Metrics that end a run where they are not finite."""


class Stopped(Exception):
    """The run received a request to stop (SIGINT, SIGTERM); its state is saved."""


def evaluate_run(run: Run, state: RunState, step: int) -> Evaluation:
    """Held-out numbers of the current policy, and its KL to the initial policy."""

    def kl(rollouts):
        if step == 0:
            return 0.0  # the start itself
        part = jax.tree.map(lambda x: x[_rows_of_update(run)], rollouts)
        now, then = (
            fetch(run.programs.score(p, part)["old_logp"])
            for p in (run.policy_params(state.device), run.start_params())
        )
        return float(jnp.sum(now - then)) / max(int(part.mask.sum()), 1)

    params, table = run.evaluator_params(state.device), run.start.test_table
    name, draw = run.experience.draw
    answer = None
    if draw.of_policy:
        version = step * run.config.plan.updates
        scorer = run.scorer(state.device)
        actor = RunActor(run.evaluator, params, {"plain": table}, version, scorer)
        own = state.host.data.get(name, ()) if draw.evaluation is None else ()
        answer = answered_by(draw.evaluation or draw, own, actor, table, run.setting, step)
    with names_memory(run, "in an evaluation", "sampling"):
        return evaluate(
            run.evaluator,
            params,
            table,
            run.held_out,
            run.config.evaluation.evaluation_samples,
            run.key("evaluation", step),
            kl=kl,
            answer=answer,
        )


def _rows_of_update(run: Run) -> np.ndarray:
    """Rows of an evaluation, as many as an update has, in groups of one prompt each.

    The prompts are at equal distances, since prompts of one kind are adjacent. Rows occur twice if
    a stage makes smaller groups.
    """
    size = run.config.sampling.samples_per_prompt
    groups = np.arange(run.config.sampling.prompts_per_step // run.config.update.minibatches)
    there = min(run.evaluator.num_prompts, len(run.held_out))
    times, prompts = np.divmod(groups, there)
    if len(groups) < there:
        prompts = groups * there // len(groups)
    samples = run.evaluator.samples
    places = (times[:, None] * size + np.arange(size)) % samples
    return (prompts[:, None] * samples + places).reshape(-1)


@dataclass(frozen=True)
class Outputs:
    """Receivers of the results of a step.

    Fields:
      on_step: (step, metrics, timings) is called after it.
    """

    writer: RunWriter | NoWriter
    checkpoints: Checkpoints
    on_step: Callable[[int, Mapping[str, float], Mapping[str, float]], None]


def train_steps(
    run: Run, state: RunState, first_step: int, outputs: Outputs, asked: Sequence[int]
) -> RunState:
    """Takes the steps first_step … steps - 1 of a run. Logs count them from 1.

    Args:
      run: the compiled run.
      state: before the first step; its arrays are not usable afterwards.
      first_step: number of steps that the run has taken.
      outputs: receivers of metrics, samples and checkpoints.
      asked: signals that request a stop, checked before each step (`stop_requests`).
    Raises:
      Stopped: by SIGINT or SIGTERM; the state is saved.
      FloatingPointError: the loss is NaN or its gradient is not finite. If a step is one update,
        the state before it is saved.
      GradingError: the verifier fails.
      Exception: any other error of the parts of the run. A single process saves the state before
        the step if no update was made, or the state after it if a later evaluation follows. The
        message names the saved state. Nothing is saved before the end of the first step.
    """
    config = run.config
    writer, checkpoints, on_step = outputs.writer, outputs.checkpoints, outputs.on_step
    interval = config.evaluation.evaluate_every
    saved_at = time.perf_counter()
    if first_step == 0:
        started = time.perf_counter()
        found = evaluate_run(run, state, 0)
        timings = {"evaluate_s": time.perf_counter() - started}
        writer.log(0, found.metrics, timings)
        writer.write_counts(0, found.counts())
        writer.write_report(live=True)
        on_step(0, found.metrics, timings)
    for step in range(first_step, config.steps):
        if asked or must_stop(step, first_step):
            break
        if step and _has_ended(config, state.host, step):
            return state
        started = time.perf_counter()
        before, state = state, run.prepared(state, step)
        with _saved_before(checkpoints, step, before):
            taken = take_step(run, state, step)
        state, metrics, timings = taken.state, taken.metrics, taken.timings
        watched = {name: metrics[name] for name in _FINITE if name in metrics}
        if np.isinf(metrics["loss"]) and np.isfinite(metrics["gradient_norm"]):
            # Such as an infinite divergence from a policy, whose gradient is finite.
            metrics["infinite_loss"] = 1.0
            del watched["loss"]
        if not np.isfinite(list(watched.values())).all():
            outcome = "the last checkpoint is unchanged"
            # Some of several updates may have been made, and a resumed run would repeat them.
            if config.plan.updates == 1 and state.device.critic is None:
                checkpoints.save(step, replace(state, host=before.host))
                outcome = "the state before this update is saved"
            listed = ", ".join(f"{name} is {value}" for name, value in watched.items())
            raise FloatingPointError(f"step {step + 1}: {listed}; {outcome}")
        ends = _has_ended(config, state.host, step + 1)
        evaluates = (step + 1) % interval == 0 or ends
        failure = None
        evaluating = time.perf_counter()
        try:
            found = evaluate_run(run, state, step + 1) if evaluates else None
        except Exception as error:
            # A resumed run does not evaluate again, so the last evaluation must succeed.
            if ends or jax.process_count() > 1:
                raise
            failure, found = error, None
        if found is not None:
            metrics |= found.metrics
            writer.write_counts(step + 1, found.counts())
            data = run.experience.at_evaluation(state.host.data, found.metrics)
            state = replace(state, host=replace(state.host, data=data))
            timings["evaluate_s"] = time.perf_counter() - evaluating
        timings["wall_s"] = time.perf_counter() - started
        writer.log(step + 1, metrics, timings)
        writer.write_outcomes(step + 1, taken.seen)
        count = config.evaluation.samples_stored
        rows = sample_rows(taken.batch, taken.records, step + 1, count)
        writer.write_samples(step + 1, rows)
        if found is not None and not ends:
            writer.write_report(live=True)
        on_step(step + 1, metrics, timings)
        due = (
            (step + 1) % config.checkpoint_every == 0
            if config.checkpoint_every
            else first_says(time.perf_counter() - saved_at > _CHECKPOINT_SECONDS)
        )
        if due or ends or failure:
            checkpoints.save(step + 1, state)
            if run.setting.reply_log is not None:
                run.setting.reply_log.forget(step + 1)
            saved_at = time.perf_counter()
            if checkpoints.short and not (ends or failure):
                failure = ValueError("memory ran out while the state was written")
        if failure:
            _fail(failure, step, "the state after it is saved")
    else:
        return state
    checkpoints.save(step, state)
    raise Stopped(f"stopped after step {step}")


@contextmanager
def _saved_before(checkpoints: Checkpoints, step: int, state: RunState) -> Iterator[None]:
    """Saves the state before a failed step, if no update has used it: a custom stage or reward may
    fail after hours."""
    try:
        yield
    except Exception as error:
        leaves = jax.tree.leaves(state)
        used_up = any(isinstance(leaf, jax.Array) and leaf.is_deleted() for leaf in leaves)
        # A run without a step starts again, and processes that did not fail save no parts.
        if not step or jax.process_count() > 1:
            raise
        if used_up:
            last = checkpoints.latest()
            where = (
                "there is no checkpoint"
                if last is None
                else f"the last checkpoint is of step {last}"
            )
            _fail(error, step, f"the state in memory is lost; {where}")
        state_note = "the state before is saved"
        try:
            checkpoints.save(step, state)
        except OSError as full:
            state_note = f"the state before could not be saved: {full}"
        _fail(error, step, state_note)


def _fail(error: Exception, step: int, state_note: str) -> NoReturn:
    """Raises the error of a step, with a note about the saved state."""
    if type(error) in (ValueError, GradingError):  # which take a text
        raise type(error)(f"step {step + 1}: {error}; {state_note}") from error
    error.add_note(f"step {step + 1}: {state_note}")
    raise error


def _has_ended(config: TrainConfig, state: HostState, steps: int) -> bool:
    """Whether a run has taken its last step, or generated all tokens of its budget."""
    return steps >= config.steps or 0 < config.sampled_tokens <= int(state.sampled_tokens)


@contextmanager
def stop_requests() -> Iterator[list[int]]:
    """Collects SIGINT and SIGTERM, so that no step or file is interrupted; a second signal kills.

    In a job of several processes, JAX informs all of them of a SIGTERM (`must_stop`), and Ctrl-C is
    passed on as a SIGTERM.
    """
    asked: list[int] = []
    # Signals can only be handled in the main thread.
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    if jax.process_count() > 1:
        with handled(lambda *_: os.kill(os.getpid(), signal.SIGTERM), signal.SIGINT):
            yield asked
        return

    def handle(number, frame):
        del frame
        if asked:
            signal.signal(number, signal.SIG_DFL)
            raise KeyboardInterrupt
        asked.append(number)

    with handled(handle):
        yield asked


@contextmanager
def handled(handler: Callable[..., Any], *signals: signal.Signals) -> Iterator[None]:
    """Passes signals (default: SIGINT and SIGTERM) to a handler within a `with` block."""
    before = {n: signal.signal(n, handler) for n in signals or (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, own in before.items():
            signal.signal(number, own)
