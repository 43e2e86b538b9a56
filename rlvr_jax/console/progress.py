"""Output of a run on the console: its settings, then one line with its progress."""

import math
import time
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column, Table

_PLAIN_SECONDS = 30.0
_TRUNCATION_WARNING = 0.2
_UNJUDGED_WARNING = 0.5
_STEPS_WITHOUT_GRADIENT = 3
_TWO_COLUMNS = 110


def print_settings(console: Console, title: str, settings: Mapping[str, Any]) -> None:
    """Prints every setting with its resolved value."""
    table = Table(
        title=escape(title), show_header=False, box=None, pad_edge=False, title_justify="left"
    )
    items = [(name, f"[bold]{escape(str(value))}[/]") for name, value in settings.items()]
    columns = 2 if console.width >= _TWO_COLUMNS else 1
    for _ in range(columns):
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
    rows = -(-len(items) // columns)
    items += [("", "")] * (rows * columns - len(items))
    for row in range(rows):
        table.add_row(*(cell for item in items[row::rows] for cell in item))
    console.print(table)


def progress_bar(console: Console) -> Progress:
    """Returns a context manager with a line per run; it is silent without a terminal."""
    return Progress(
        TextColumn("{task.description}", table_column=Column(no_wrap=True)),
        BarColumn(bar_width=20 if console.width >= _TWO_COLUMNS else 6),
        MofNCompleteColumn(),
        TextColumn("{task.fields[numbers]}", table_column=Column(no_wrap=True)),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )


class RunProgress:
    """The line of one run: reward, entropy, truncated fraction, pass rate, tokens/s, time left.

    On a terminal the line is updated. Elsewhere a new line is printed at evaluations and every half
    a minute.
    """

    def __init__(
        self,
        console: Console,
        bar: Progress,
        label: str,
        steps: int,
        first_step: int,
        acts: str = "",
    ):
        """Adds the line.

        Args:
          acts: metric that is above 0 if the mechanism of the method acts; "": not watched.
        """
        self._console = console
        self._bar = bar
        self._label = label
        self._steps = steps
        self._held_out = "–"
        self._printed_at = -math.inf
        self._started = time.perf_counter()
        self._first_step = first_step
        self._warned: set[str] = set()
        self._still: int | None = 0
        self._acts = acts
        self._idle_steps = max(math.ceil(steps / 10), _STEPS_WITHOUT_GRADIENT)
        self._task = bar.add_task(label, total=steps, completed=first_step, numbers="")

    def __call__(
        self, step: int, metrics: Mapping[str, float], timings: Mapping[str, float]
    ) -> None:
        """Shows one finished step (0: the evaluation before the first)."""
        self._warn_truncation(metrics)
        self._warn_unjudged(metrics)
        self._warn_bits(metrics)
        self._warn_still(metrics)
        self._warn_idle(step, metrics)
        evaluated = "held_out/pass@1" in metrics
        if evaluated:
            self._held_out = f"{metrics['held_out/pass@1']:.3f} (n={metrics['held_out/n']:.0f})"
        numbers = f"held-out pass@1 {self._held_out}"
        if step:
            numbers = (
                f"reward {_digits(metrics['reward'], 3)}"
                f"  entropy {_digits(metrics['entropy'], 3)}"
                f"  truncated {metrics['truncated_fraction']:.0%}  {numbers}"
                f"  {timings['tokens_per_s']:,.0f} tokens/s"
            )
        self._bar.update(self._task, completed=step, numbers=self._fitting(metrics, numbers))
        if not self._console.is_terminal:
            now = time.perf_counter()
            if evaluated or now - self._printed_at > _PLAIN_SECONDS:
                self._printed_at = now
                self._console.print(
                    f"{self._label}  step {step}/{self._steps}  {numbers}{self._left(step, now)}",
                    highlight=False,
                    soft_wrap=True,
                )

    def _fitting(self, metrics: Mapping[str, float], numbers: str) -> str:
        """The numbers for the width of the terminal: one line a run."""
        if self._console.width >= _TWO_COLUMNS:
            return numbers
        held_out = f"pass@1 {self._held_out[:5]}"
        if "reward" not in metrics:
            return held_out
        reward, entropy = (_digits(metrics[name], 2) for name in ("reward", "entropy"))
        return f"reward {reward} entropy {entropy} {held_out}"

    def _warn_truncation(self, metrics: Mapping[str, float]) -> None:
        """Warns once if the budget truncates many responses, with the quantiles of length."""
        truncated = metrics.get("truncated_fraction", 0.0)
        if truncated > _TRUNCATION_WARNING and "cut" not in self._warned:
            self._warned.add("cut")
            quantiles = ", ".join(f"{q} %: {metrics[f'length/p{q}']:.0f}" for q in (10, 50, 90))
            self._warn(
                f"{truncated:.0%} of the responses were truncated by the budget of"
                f" --response-tokens (length quantiles {quantiles}); --mask-truncated excludes them"
                " from the loss"
            )

    def _warn_unjudged(self, metrics: Mapping[str, float]) -> None:
        """Warns once if a judge leaves most responses ungraded, with the reasons."""
        numbers = {n.removeprefix("experience/judge_"): value for n, value in metrics.items()}
        without = numbers.get("no_verdict", 0.0) / max(numbers.get("asked", 0.0), 1.0)
        if without > _UNJUDGED_WARNING and "judge" not in self._warned:
            self._warned.add("judge")
            why = {
                n.removeprefix("failed/"): v for n, v in numbers.items() if n.startswith("failed/")
            }
            why["unreadable"] = numbers.get("unreadable", 0.0)
            counts = ", ".join(f"{name}: {value:.0f}" for name, value in why.items() if value)
            left_out = ", which are not in the loss"
            self._warn(
                f"the judge left {without:.0%} of the responses ungraded"
                f" ({counts}){left_out * ('experience/rows_without_reward' in metrics)}"
            )

    def _warn_bits(self, metrics: Mapping[str, float]) -> None:
        """Warns once if log-probs of a bitwise run differ between sampler and update."""
        fraction = metrics.get("differing_fraction", 0.0)
        if fraction > 0 and "bits" not in self._warned:
            self._warned.add("bits")
            self._warn(
                f"--bitwise: log-probs of {fraction:.2%} of the tokens differ between sampler and"
                f" update (ratio {metrics['sampler_ratio/min']:.7f} to"
                f" {metrics['sampler_ratio/max']:.7f}): the method samples from another"
                " distribution, or XLA sums in another order on this processor"
            )

    def _warn_still(self, metrics: Mapping[str, float]) -> None:
        """Warns that the first steps, or those after a resume, had no gradient."""
        if "gradient_norm" not in metrics or self._still is None:
            return
        self._still = self._still + 1 if metrics["gradient_norm"] == 0 else None
        if self._still == _STEPS_WITHOUT_GRADIENT:
            self._still = None
            self._warn(
                f"{_STEPS_WITHOUT_GRADIENT} steps in a row had no gradient"
                f" (mean reward {_digits(metrics['reward'], 3)}); the usual cause is equal"
                " rewards of all responses to a prompt"
            )

    def _warn_idle(self, step: int, metrics: Mapping[str, float]) -> None:
        """Warns once that the mechanism of the method did not act in the first tenth of the steps.

        After a resume: in as many steps after it.
        """
        if metrics.get(self._acts, 0.0) > 0:
            self._acts = ""
        elif self._acts and step == self._first_step + self._idle_steps:
            method = self._label.partition(" ")[0]
            self._warn(
                f"the mechanism of {method} has not acted: {self._acts} was 0 in {self._idle_steps}"
                f" steps. `python -m rlvr_jax.methods {method}` prints a setting in which it acts"
            )

    def _warn(self, text: str) -> None:
        self._console.print(f"[yellow]warning:[/] {text}", highlight=False)

    def _left(self, step: int, now: float) -> str:
        done = step - self._first_step
        if not done:
            return ""
        left = (now - self._started) / done * (self._steps - step)
        return f"  {left:.0f} s left"


def _digits(value: float, digits: int) -> str:
    """A number; a dash for the mean of no values."""
    return "–" if math.isnan(value) else f"{value:.{digits}f}"
