"""Runs one configuration: from its settings to its finished directory."""

import contextlib
import dataclasses
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import jax
from rich.console import Console
from rich.markup import escape

from rlvr_jax import methods, parallel, policy, tasks
from rlvr_jax.analysis.policy_card import policy_card
from rlvr_jax.analysis.run_directory import load_run
from rlvr_jax.console import RunProgress, make_trackers, print_settings, progress_bar
from rlvr_jax.experience.learnable import check_known_answers
from rlvr_jax.experience.prompts import shown_prompt, tokens_fingerprint
from rlvr_jax.experience.reply_log import ReplyLog
from rlvr_jax.parallel.lock import LOCK, locked
from rlvr_jax.rollout.engines import started
from rlvr_jax.runs.checkpoints import Checkpoints, latest_step
from rlvr_jax.runs.checks.computed_with import check_computed_with, computed_with
from rlvr_jax.runs.checks.forecast import check_forecast
from rlvr_jax.runs.config import TrainConfig
from rlvr_jax.runs.loop import Outputs, stop_requests, train_steps
from rlvr_jax.runs.resolved import ResolvedRun, resolve
from rlvr_jax.runs.run import Run, make_run
from rlvr_jax.runs.run_writer import NoWriter, RunWriter, write_json
from rlvr_jax.runs.screen import run_lines
from rlvr_jax.runs.settings import check_same_run, resolved_settings, shown_settings
from rlvr_jax.tools.slips import sentence
from rlvr_jax.training.dying_threads import threads_must_start
from rlvr_jax.training.layout import describe_layout


class RunsFailed(RuntimeError):
    """Some of several runs failed; the others have finished.

    Fields:
      failures: the error of each, by its run directory.
    """

    def __init__(self, failures: Mapping[Path, BaseException]):
        self.failures: dict[Path, BaseException] = dict(failures)
        super().__init__(
            "\n".join(f"{path}: {sentence(error)}" for path, error in failures.items())
        )


REPLY_LOG = "replies.jsonl"
"""File of a run directory with the replies of environments since the last checkpoint."""


Watch = Callable[[str, int, int, str], Callable[..., None]]


def train(
    config: TrainConfig, console: Console | None = None, watch: Watch | None = None
) -> dict[str, Any]:
    """Runs one configuration to its end.

    Examples:
      >>> from rlvr_jax.runs import preset, train
      >>> config = preset("brackets", "clip_cov").replace(run_dir="runs/mine", steps=100)
      >>> summary = train(config)  # doctest: +SKIP

    Each of several processes calls it. The first one writes, into a directory that all can read.

    Args:
      console: where settings, warnings and progress are printed.
      watch: (label, steps, first step, acts) -> on_step(step, metrics, timings), called at each
        finished step instead of a progress line on the console. `acts` is the metric that is above
        0 if the mechanism of the method acts, or "".
    Returns:
      The content of the run's `summary.json`.
    Raises:
      ValueError: settings, task, model or run directory that do not fit, or a directory that
        another job is using. It is raised before any file is written.
      Stopped: SIGINT or SIGTERM; the state is saved.
      FloatingPointError: the loss is not finite; see `train_steps`.
    """
    console = console or Console()
    if not config.devices.compile_cache:
        jax.config.update("jax_enable_compilation_cache", False)
    with locked(config.run_dir):
        check_directory(config.run_dir, config.resume)
        return _train_locked(config, console, watch)


def _train_locked(config: TrainConfig, console: Console, watch: Watch | None) -> dict[str, Any]:
    directory = config.run_dir
    if config.resume and not (directory / "config.json").is_file():
        raise ValueError(f"--resume: --run-dir must contain a run, got {str(directory)!r}")
    resolved = resolve(config)
    card = resolved.card()
    if len(set(held := parallel.gather(card["task_fingerprint"]))) > 1:
        raise ValueError(
            f"--task {config.data.task} must have the same prompts in all processes, got"
            f" fingerprints {held}"
        )
    stored, first_step = {}, 0
    if config.resume:
        stored = dict(load_run(directory).config)
        check_same_run(stored, card)
        first_step = _first_step(config)
    with _engine_server(resolved.config):
        return _run_resolved(resolved, card, stored, first_step, console, watch)


@contextlib.contextmanager
def _engine_server(config: TrainConfig) -> Iterator[None]:
    """The server that `--engine-command` starts."""
    own = config.engines
    with contextlib.ExitStack() as servers:
        if own.engine_command and parallel.is_first():
            command = own.engine_command.replace("{model}", str(config.policy.model))
            servers.enter_context(started(command, own.engine_address, own.engine_seconds))
        parallel.barrier("engine")
        yield


def _run_resolved(
    resolved: ResolvedRun,
    card: dict[str, Any],
    stored: dict[str, Any],
    first_step: int,
    console: Console,
    watch: Watch | None,
) -> dict[str, Any]:
    config, directory = resolved.config, resolved.config.run_dir
    run = make_run(resolved)
    card["computed_with"] = computed_with(config, run.recipe, card["model"])
    check_computed_with(stored.get("computed_with", {}), card["computed_with"])
    card["resolved"] = resolved_settings(run)
    card["prompts"] = tokens_fingerprint([*run.start.tables.values(), run.start.test_table])
    if stored.get("prompts", card["prompts"]) != card["prompts"]:
        raise ValueError(
            "--resume: the tokens of the prompts must be those of the run (fingerprint"
            f" {stored['prompts']}), got {card['prompts']}; restore tokenizer and chat template"
        )
    card["first_prompt"] = shown_prompt(run.start.train_table)
    card["device"] = jax.devices()[0].device_kind
    _say(run, card, console, alone=watch is None)
    # The other processes must check the directory before the first one writes to it.
    parallel.barrier("checked")
    if parallel.is_first():
        directory.mkdir(parents=True, exist_ok=True)
        write_json(directory / "config.json", card)
        (directory / "summary.json").unlink(missing_ok=True)
    parallel.barrier("made")
    reply_log = ReplyLog(directory / REPLY_LOG, parallel.is_first())
    run = dataclasses.replace(run, setting=dataclasses.replace(run.setting, reply_log=reply_log))
    return _train(run, card, first_step, console, watch)


def _say(run: Run, card: dict[str, Any], console: Console, alone: bool) -> None:
    """Prints lines before the first step; for a run among several, only warnings."""
    config, check = run.config, tasks.self_check(run.experience.verified(run.task))
    if not any(stage.at_grading for stage in run.experience.stages.values()):
        check_known_answers(check)
    plainly = dict(highlight=False, markup=False, soft_wrap=True)
    if config.verbose:
        print_settings(console, f"{config.method} on {config.data.task}", shown_settings(card))
        console.print(str(check), highlight=False, markup=False)
    if alone or config.verbose:
        for line in run_lines(run, card, check):
            if console.is_terminal:  # indented after the first word; files have whole lines
                line = textwrap.fill(line, console.width, subsequent_indent=" " * 8)
            console.print(line, **plainly)
    if near := check_forecast(run):
        console.print(f"[yellow]warning:[/] {escape(near)}", highlight=False)
    where = "" if alone else f"{config.method} seed {config.seed}: "
    notes = [f"task {config.data.task}: {note}" for note in run.task.notes] if alone else []
    notes += [f"self-check: {problem}" for problem in check.problems if not config.verbose]
    for remark in [*run.remarks(), *notes]:
        console.print(f"[yellow]note:[/] {escape(where + remark)}", highlight=False)


def describe_end(config: TrainConfig, summary: dict[str, Any]) -> str:
    """Returns the last lines of a finished run: gains, tokens of its updates if rows shared
    prefixes, and the file of the report."""
    read = summary.get("update_tokens_fraction")
    trees = "" if read is None else f"updates read {read:.0%} of the tokens, by common prefixes\n"
    return (
        f"held-out pass@1 {summary['held_out_pass_at_1_start']:.3f} →"
        f" {summary['held_out_pass_at_1_end']:.3f} (n={summary['n']} per prompt), entropy"
        f" {summary['entropy_start']:.3f} → {summary['entropy_end']:.3f} nats,"
        f" {summary['held_out_truncated_fraction_end']:.0%} of the responses truncated\n"
        f"{trees}report: {config.run_dir / 'report.html'}"
    )


def check_directory(directory: Path, resume: bool) -> None:
    """Refuses to mix a new run with the contents of an existing directory.

    Raises:
      ValueError: no directory, or one that is not empty and `resume` is not given.
    """
    if directory.exists() and not directory.is_dir():
        raise ValueError(f"--run-dir must be a directory, got the file {str(directory)!r}")
    held = directory.exists() and any(path.name != LOCK for path in directory.iterdir())
    if held and not resume:
        raise ValueError(
            f"--run-dir must be new or empty (or give --resume), got {str(directory)!r}"
        )


def _first_step(config: TrainConfig) -> int:
    """The step of the last checkpoint of a run, where it continues; 0 if there is none."""
    folder = config.run_dir / "checkpoints"
    step = latest_step(folder)
    if step is None and (config.run_dir / "summary.json").is_file():
        raise ValueError(
            "--resume: a finished run must have a checkpoint to continue from, got none in"
            f" {str(folder)!r}"
        )
    if step is not None and step > config.steps:
        raise ValueError(
            f"--resume: --steps must be at least the {step} that the run has taken, got"
            f" {config.steps}"
        )
    return step or 0


def _train(
    run: Run, card: dict[str, Any], first_step: int, console: Console, watch: Watch | None
) -> dict[str, Any]:
    started = time.perf_counter()
    directory = run.config.run_dir
    state = run.initial_state()
    checkpoints = Checkpoints(directory / "checkpoints", state)
    if first_step:
        state = checkpoints.restore(first_step, state)
    if run.config.devices.mesh:
        message = describe_layout(
            run.config.devices.mesh,
            run.config.devices.sample_mesh,
            run.policy_params(state.device),
            state.device,
            run.programs.reshard,
            prompts=run.start.sampler.sampling_batch[0],
        )
        console.print(message, highlight=False, markup=False, soft_wrap=True)
    # Without a checkpoint nothing is reused, not even the evaluation before the first step.
    after_step = first_step if first_step else -1
    writer: RunWriter | NoWriter = NoWriter()
    if parallel.is_first():
        trackers = make_trackers(run.config.log_to, directory, card, after_step >= 0)
        writer = RunWriter(directory, after_step, trackers)
    label = f"{run.config.method} seed {run.config.seed}"
    if run.config.resume:
        place = f"after step {first_step}" if first_step else "from the beginning"
        message = f"{label}: continues {place}, of {run.config.steps}"
        console.print(message, highlight=False, soft_wrap=True)
    # Each is closed even if the other raises: a full disk must not lose the save under way.
    with (
        stop_requests() as asked,
        threads_must_start(),
        contextlib.closing(checkpoints),
        contextlib.closing(writer),
        contextlib.ExitStack() as shown,
    ):
        if watch is None:
            watch = partial(RunProgress, console, shown.enter_context(progress_bar(console)))
        on_step = watch(label, run.config.steps, first_step, _counter(run.config))
        try:
            outputs = Outputs(writer, checkpoints, on_step)
            state = train_steps(run, state, first_step, outputs, asked)
        except BaseException:
            # The error that ended the run is reported, even if the page fails.
            with contextlib.suppress(Exception):
                writer.write_report(live=False)
            raise
        # While the last checkpoint is still being written.
        model, params = run.start.model, run.policy_params(state.device)
        if run.adapts:
            policy.lora.save(directory / "adapter", model, state.device.params, run.start.path)
        # Unchanged: the settings may have removed its template.
        own = policy.tokenizer(run.start.path)
        policy.save(directory / "policy", model, params, own)
    summary = None
    if parallel.is_first():
        summary = _summarize(directory, time.perf_counter() - started)
        # A summary marks a finished run, so it is written last.
        writer.write_report(live=False)
        about = methods.method(run.config.method)
        paper = f"[{about.title}]({about.url})" if about.url else about.title
        (directory / "policy/README.md").write_text(policy_card(card, summary, paper))
        write_json(directory / "summary.json", summary)
    return parallel.gather(summary)[0]


def _counter(config: TrainConfig) -> str:
    """The metric that is above 0 if the mechanism of the method acts; "" if none is known."""
    shown = methods.method(config.method).shown
    # `--experience` gives the run the batches of another method.
    if shown is None or (config.experience and shown.acts.startswith("experience/")):
        return ""
    return shown.acts


def _summarize(directory: Path, seconds: float) -> dict[str, Any]:
    """First and last held-out numbers of a run, read from its own files."""
    run = load_run(directory)
    evaluated = [row for row in run.metrics if "held_out/n" in row]
    first, last = evaluated[0], evaluated[-1]
    summary: dict[str, Any] = {"method": run.method, "task": run.setting("task"), "seed": run.seed}
    for name in last:
        if name.startswith("held_out/") and name != "held_out/n":
            key = name.replace("@", "_at_").replace("/", "_")
            summary |= {f"{key}_start": first.get(name), f"{key}_end": last[name]}
    read = [row["update_tokens_fraction"] for row in run.metrics if "update_tokens_fraction" in row]
    if read:
        summary["update_tokens_fraction"] = sum(read) / len(read)
    return summary | {
        "entropy_start": first["held_out/entropy"],
        "entropy_end": last["held_out/entropy"],
        "n": last["held_out/n"],
        "steps": last["step"],
        "sampled_tokens": int(sum(row.get("sampled_tokens", 0) for row in run.metrics)),
        "wall_seconds_of_steps": sum(row.get("wall_s", 0.0) for row in run.timings),
        "wall_seconds_of_last_start": seconds,
    }
