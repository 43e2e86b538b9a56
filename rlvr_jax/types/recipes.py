"""A published method: its recipe and its card."""

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Recipe:
    """A published method: its changes of a training step. A field that is None has no change.

    Examples:
      >>> from rlvr_jax import methods
      >>> from rlvr_jax.types import Recipe, replace
      >>> loss = methods.recipe("clip_cov").objective
      >>> replace(methods.recipe("grpo"), objective=loss) == Recipe(objective=loss)
      True

    Recipes are equal if their parts are: of one method, with equal hyperparameters.

    Fields:
      objective: `rlvr_jax.objectives.Objective`, the loss.
      experience: `rlvr_jax.experience.Experience`, how a batch comes to be.
      critic: `rlvr_jax.objectives.Critic`, which defines the fit of the critic. The objective reads
        its estimates as the record `values`. Or a `Scorer`, whose scores are the record
        `process_reward` or `critic_values`. None: it has none, or training cannot make it.
      teacher: policy that the objective compares with (`teacher_logp`, `kl`, `reverse_kl`, `js`).
        "start": the initial weights. "": the user has to name one. "average:0.99": the exponential
        average of the weights with that decay. Else the folder of another policy with equal tokens
        and shape. None: the weights that sampled the batch, only for divergences.
    """

    objective: Any
    experience: Any = None
    critic: Any = None
    teacher: str | None = None

    def __post_init__(self) -> None:
        """Raises ValueError if the decay of a teacher is not in [0, 1)."""
        try:
            valid = self.teacher_decay is None or 0 <= self.teacher_decay < 1
        except ValueError:
            valid = False
        if not valid:
            raise ValueError(
                f"Recipe: teacher must be average:<decay in [0, 1)>, got {self.teacher!r}"
            )

    @property
    def teacher_decay(self) -> float | None:
        """The decay of the teacher "average:0.99"; None for other teachers."""
        if self.teacher is None or not self.teacher.startswith("average:"):
            return None
        return float(self.teacher.removeprefix("average:"))


@dataclass(frozen=True)
class Shown:
    """A setting in which the mechanism of a method acts, with a task and a model that ship.

    Examples:
      >>> from rlvr_jax.types import Shown
      >>> shown = Shown("brackets", acts="kept_fraction", hyperparameters={"fraction": 0.1})
      >>> print(*shown.command("forking_tokens"))
      train --method forking_tokens --task brackets --steps 160 --hyperparameters fraction=0.1

    Fields:
      task: task with its options, as `--task` takes it.
      acts: metric of a training step that is above 0 only if the mechanism acted.
      without: the run that lacks the mechanism: the name of another method, or hyperparameters that
        switch it off. None: a plain algorithm, which lacks nothing.
      hyperparameters: values that differ from the published ones.
      settings: further settings of the run by name, such as {"samples_per_prompt": 32}.
      steps: steps of a whole run.
      within: steps after which the mechanism has acted for the first time.
    """

    task: str
    acts: str
    without: str | Mapping[str, Any] | None = "grpo"
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    steps: int = 160
    within: int = 3

    def command(self, name: str, *, acts: bool = True) -> list[str]:
        """Words of the command `python -m rlvr_jax` that trains in this setting.

        Args:
          name: name of the method.
          acts: False: the run without the mechanism.
        Raises:
          ValueError: the run without the mechanism of a plain algorithm.
        """
        given = self.hyperparameters
        if not acts and self.without is None:
            raise ValueError(f"{name}: a plain algorithm has no run without its mechanism")
        if not acts and isinstance(self.without, str):
            name, given = self.without, {}
        elif not acts:
            given = {**given, **self.without}
        words = ["train", "--method", name, "--task", self.task, "--steps", str(self.steps)]
        for setting, value in self.settings.items():
            flag = setting.replace("_", "-")
            if isinstance(value, bool):
                words.append(f"--{flag}" if value else f"--no-{flag}")
            else:
                words += [f"--{flag}", str(value)]
        pairs = [f"{key}={value}" for key, value in given.items()]
        return [*words, "--hyperparameters", *pairs] if pairs else words


LOSS_ON_BRACKETS = Shown(
    "brackets", "slope_distance", settings={"compared_with": "grpo"}, steps=300
)
"""The shown setting of methods that change the loss only: its slopes are not those of GRPO's."""


_SECTION = re.compile(r"^(Left out|Reports|Traps): ", re.MULTILINE)


@dataclass(frozen=True)
class Method:
    """The card of a published method: its recipe, its paper, and the laws that it breaks.

    Texts that are not arguments are read from the docstring of the method's file. Its first quoted
    text is the title. The address follows in that paragraph ("" if there is none). The last
    paragraphs may be "Left out: …", "Reports: …" and "Traps: …".

    Fields:
      recipe: the factory.
      title, url: of the paper.
      changes: the parts of an RL step it changes, of "advantage", "weight", "mask", "surrogate",
        "regularizer", "aggregation", "reward", "selection", "sampling", "curriculum",
        "guidance", "optimizer"; comma-separated.
      evidence: "exact": it agrees with the authors' or a maintained code. "reconstruction": it was
        made only from the paper. "own": the method is not published.
      left_out: parts of the paper that the recipe lacks, a phrase; "" if none.
      reports: results that its authors report, a phrase or two; "" where none is noted.
      traps: its known failures, and those of other codes of that name; "" likewise.
      baseline: the reference of rewards. "group": advantages are 0 in groups of one and in groups
        of equal rewards. "batch": only if the rewards of the batch are equal. "signal": the group
        compares another number than the reward, so only groups of one have 0. "other": a critic, a
        teacher or a target, so neither has 0.
      gradient: "slope": the gradient is that of the loss that is shown. "stopped": weights or
        advantages made of the current log-probs are constants.
      ratio: "policy": the ratio is 1 where the old log-probs are the current ones. "other": it is
        of other log-probs than those of the sampled tokens, or of none.
      denominator: "tokens" if rows without tokens change nothing; "rows" if the loss is divided by
        all rows.
      rewards: "any", or "binary" if it reads 0 and 1 only.
      random: its choice depends on the random key.
      small: hyperparameters under which the method acts on a batch of some 60 tokens.
      shown: the setting in which the method is shown to act; None for a custom method.
      presets: settings with which a command line starts, by the name of the task; "" for all tasks.
    """

    recipe: Callable[..., Recipe]
    title: str = ""
    url: str = ""
    changes: str = ""
    evidence: str = "exact"
    left_out: str = ""
    reports: str = ""
    traps: str = ""
    baseline: Literal["group", "batch", "signal", "other"] = "group"
    gradient: Literal["slope", "stopped"] = "slope"
    ratio: Literal["policy", "other"] = "policy"
    denominator: Literal["tokens", "rows"] = "tokens"
    rewards: Literal["any", "binary"] = "any"
    random: bool = False
    small: Mapping[str, Any] = field(default_factory=dict)
    shown: Shown | None = None
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        head, *sections = _SECTION.split(self._docstring())
        found = dict(zip(sections[::2], sections[1::2], strict=True))
        texts = {name.lower().replace(" ", "_"): text for name, text in found.items()}
        if not self.title and (title := re.search(r'"([^"]+)"((?:.|\n(?!\n))*)', head)):
            url = re.search(r"https://[^\s,)]+", title[2])
            texts |= {"title": title[1], "url": url[0] if url else ""}
        for name, text in texts.items():
            object.__setattr__(self, name, getattr(self, name) or " ".join(text.split()))

    def _docstring(self) -> str:
        return getattr(sys.modules.get(self.recipe.__module__), "__doc__", "") or ""

    @property
    def definition(self) -> str:
        """The docstring of the method's file without the texts of the card."""
        return _SECTION.split(self._docstring())[0].strip()
