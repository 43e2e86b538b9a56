"""The judge of the settings: its prompt, the parser of its replies, its budget."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

from rlvr_jax import parallel
from rlvr_jax.judges import (
    Judge,
    Replies,
    as_fractions,
    constraints_question,
    number,
    points,
    question,
    read_rubric,
    rubric_question,
    shown_by,
    strength,
    two_numbers,
    yes_or_no,
)
from rlvr_jax.judges.prompts import COMPARE, STRENGTH
from rlvr_jax.methods.arguments import read_arguments
from rlvr_jax.runs.config import TrainConfig, flag
from rlvr_jax.runs.judging.calls import call_of, options_of_call
from rlvr_jax.verifiers.texts.instruction_following import extract as behind_thought
from rlvr_jax.verifiers.texts.rlmt import visible

AGAIN = "again"
"""The `judge_prompt` with which a policy that reads no words judges itself."""

_PAIRS = "pairs"
"""The `judge_prompt` with which a judge is shown two answers at a time."""

STRENGTH_OF_PAIRS = "strength"
"""The `judge_prompt` with which a judge is shown two answers, in one order, and compares them."""

_CONSTRAINTS = "constraints"
"""The `judge_prompt` with which a judge grades the soft constraints of a prompt."""

STRICT = "strict"
"""The option `visible` that hides a response without both tags."""

TWO = ["first", "second"]
"""Names of the numbers of a judge that compares."""


def judge_of(config: TrainConfig, replies: Path | None) -> tuple[Judge, dict[str, Any]] | None:
    """Returns the judge of the settings, and the sampling of the policy if it is the judge.

    Args:
      replies: file of its replies; None: they are not stored.
    Raises:
      ValueError: a judge that cannot be made, or settings of a judge without `--judge`.
    """
    settings = config.judging
    if not settings.judge:
        for name in ("judge_rubric", "judge_prompt", "judge_options", "judge_budget"):
            if given := getattr(settings, name):
                text = given if isinstance(given, str) else " ".join(given)
                raise ValueError(f"{flag(name)} must come with --judge, got only {text!r}")
        return None
    options = _options_of(config)
    budget = _read(_budget, "judge_budget", settings.judge_budget)
    if settings.judge_rubric and settings.judge_prompt:
        raise ValueError(
            "--judge-prompt must be empty with --judge-rubric, which makes the prompt, got"
            f" {settings.judge_prompt!r}"
        )
    if settings.judge == "policy" and settings.judge_budget:
        raise ValueError(
            "--judge-budget must be empty with --judge policy, whose tokens count for"
            f" --sampled-tokens, got {settings.judge_budget}"
        )
    names, prompt_of, without = ["judge"], question(), float("nan")
    parse = as_fractions(number(0, options["highest"]), [options["highest"]])
    if settings.judge_rubric:
        rubric = read_rubric(Path(settings.judge_rubric))
        names = [f"judge/{criterion.name}" for criterion in rubric]
        prompt_of = rubric_question(rubric)
        parse = as_fractions(points(rubric), [criterion.maximum for criterion in rubric])
    elif settings.judge_prompt == _CONSTRAINTS:
        # Like the hard ones, soft constraints are those of the text after the thinking.
        prompt_of = shown_by(constraints_question(), lambda text: behind_thought(text) or "")
        parse, without = yes_or_no(), 1.0
    elif settings.judge_prompt == STRENGTH_OF_PAIRS:
        names, prompt_of, parse = TWO, question(STRENGTH), strength()
    elif settings.judge_prompt:
        pairs = settings.judge_prompt == _PAIRS
        template = COMPARE if pairs else _text(Path(settings.judge_prompt))
        prompt_of = question(template)
        if "{other}" in template:
            names, parse = TWO, two_numbers(1, options["highest"])
    if options["visible"]:
        prompt_of = shown_by(prompt_of, partial(visible, strict=options["visible"] == STRICT))
    sampling = {"temperature": options["temperature"]} if options["temperature"] else {"top_k": 1}
    if settings.judge == "policy" and options["tokens"]:
        sampling["tokens"] = options["tokens"]
    asked = Judge(
        call_of(config, options, sampling),
        prompt_of,
        parse,
        names,
        options["tries"],
        budget["calls"],
        budget["tokens"],
        without,
        Replies(replies, parallel.is_first()),
    )
    return asked, sampling


def asked_by_files(config: TrainConfig) -> dict[str, str]:
    """Returns the texts of the files of a judge's prompt, by the setting that names them."""
    settings = config.judging
    named = {name: getattr(settings, name) for name in ("judge_rubric", "judge_prompt")}
    return {
        name: _text(Path(path))
        for name, path in named.items()
        if settings.judge and path not in ("", AGAIN, _PAIRS, STRENGTH_OF_PAIRS, _CONSTRAINTS)
    }


def _options_of(config: TrainConfig) -> dict[str, Any]:
    """The `judge_options`, all of them."""
    settings = config.judging
    options = _read(_options, "judge_options", settings.judge_options)
    wanted = [*options_of_call(settings.judge), "tries", "highest", "visible"]
    given = [pair.partition("=")[0] for pair in settings.judge_options]
    if idle := [name for name in given if name not in wanted]:
        raise ValueError(
            f"--judge-options of judge {settings.judge!r} must be among"
            f" {', '.join(wanted)}, got {', '.join(idle)}"
        )
    if options["tokens"] is not None and options["tokens"] < 1:
        raise ValueError(f"--judge-options: tokens must be at least 1, got {options['tokens']}")
    if options["visible"] not in (False, True, STRICT):
        raise ValueError(
            f"--judge-options: visible must be true, false or {STRICT}, got {options['visible']!r}"
        )
    return options


def _options(
    *,
    temperature: float = 0.0,
    tries: int = 1,
    tokens: int | None = None,
    seconds: float = 60.0,
    at_once: int = 32,
    retries: int = 4,
    highest: float = 10.0,
    visible: bool | Literal["strict"] = False,
):
    """The values that `judge_options` may set."""
    return dict(locals())


def _budget(calls: int | None = None, tokens: int | None = None):
    """The values that `judge_budget` may set."""
    return dict(locals())


def _read(function: Callable[..., dict], name: str, pairs: tuple[str, ...]) -> dict[str, Any]:
    return function(**read_arguments(flag(name), function, pairs))


def _text(path: Path) -> str:
    if not path.is_file():
        raise ValueError(f"--judge-prompt must be a file, got {str(path)!r}")
    return path.read_text(encoding="utf-8")
