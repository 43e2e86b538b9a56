"""The judge of a run, as its settings name it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rlvr_jax import parallel, policy
from rlvr_jax.experience import RunActor, Sampler, Stage, compare_with, give_again, judge
from rlvr_jax.experience.prompts import PromptTable, stop_tokens
from rlvr_jax.experience.stages.grading.judge import writing
from rlvr_jax.experience.stages.rewards.tournament import Compare
from rlvr_jax.judges import (
    Call,
    Judge,
    Replies,
    as_shares,
    by_function,
    constraints_question,
    number,
    points,
    question,
    read_rubric,
    rubric_question,
    server,
    shown_by,
    two_numbers,
    yes_or_no,
)
from rlvr_jax.judges.prompts import COMPARE
from rlvr_jax.own import own_function
from rlvr_jax.parallel import parameter_shardings
from rlvr_jax.rollout import Sampling, named_key
from rlvr_jax.runs.config import TrainConfig
from rlvr_jax.runs.hyperparameters import read_arguments
from rlvr_jax.runs.loading import LoadedPolicy
from rlvr_jax.training.layout import make_meshes
from rlvr_jax.types import replace
from rlvr_jax.verifiers.texts.instruction_following import extract as behind_thought
from rlvr_jax.verifiers.texts.rlmt import visible

__all__ = ["REPLIES", "asked_by_files", "check_asked", "check_criteria", "judge_of", "judging"]
__all__ += ["scoring_judge"]

REPLIES = "judge.jsonl"
"""File of a run directory with what judges said."""

AGAIN = "again"
"""The `judge_prompt` with which a policy that reads no words judges itself."""

PAIRS = "pairs"
"""The `judge_prompt` with which a judge is shown two answers at a time."""

CONSTRAINTS = "constraints"
"""The `judge_prompt` with which a judge is asked about the soft constraints of a prompt."""

TWO = ["first", "second"]
"""Names of the numbers of a judge that compares."""

WORDS = 512
"""Tokens of a reply at most; of a policy that judges itself it is as many as of a response."""

_OPTIONS = {
    "policy": ("temperature", "tokens"),
    "folder": ("temperature", "tokens"),
    "server": ("temperature", "tokens", "at_once", "seconds", "retries"),
    "module": ("at_once", "seconds"),
}
"""By kind of judge: what of `judge_options` is about the asking; the others are all judges'."""

FOLDER_PROMPTS = 16
"""Texts that another folder answers at a time."""


def judging(config: TrainConfig) -> tuple[list[Stage], Compare | None]:
    """The stage that asks the judge of a run, none without one; or, of a judge that is shown two
    answers, what compares them.

    Raises:
      ValueError: as `judge_of`.
    """
    if config.judge_prompt == AGAIN:
        _check_again(config)
        return [give_again()], None
    found = judge_of(config, config.run_dir / REPLIES)
    if found is None:
        return [], None
    asked, sampling = found
    if asked.names == TWO:
        return [], compare_with(asked, sampling=sampling)
    return [judge(asked, sampling)], None


def scoring_judge(config: TrainConfig, replies: Path | None) -> tuple[Judge, dict[str, Any]]:
    """The judge that settings name, asked about one answer by itself; see `judge_of`.

    Raises:
      ValueError: no judge, one that compares two answers, or one that gives answers again.
    """
    found = None if config.judge_prompt == AGAIN else judge_of(config, replies)
    if found is None or found[0].names == TWO:
        raise ValueError(
            "TrainConfig: judge_prompt must ask a judge about one answer, in words, to score it;"
            f" got {config.judge_prompt!r} for {config.judge!r}"
        )
    return found


def check_criteria(path: str, method: str, hyperparameters: Mapping[str, Any]) -> None:
    """Refuses a rubric whose criteria are others than the method combines.

    The method says what weight a criterion has, and which are vetoes or factual; where the file
    says it, too, it must say the same. The judge's points come as shares of what they can be most.

    Args:
      path: of the rubric; "": none.
      hyperparameters: of the method, all of them.
    Raises:
      ValueError: names the hyperparameter.
    """
    if not path:
        return
    rubric = read_rubric(Path(path))
    weights = [criterion.weight for criterion in rubric]
    wanted = {
        "weights": weights,
        "maxima": [1.0] * len(rubric),
        **{k: [n for n, one in enumerate(rubric) if one.kind == k] for k in ("veto", "factual")},
    }
    # What the file says nothing of is the method's to say.
    said = {"weights": {*weights} != {1.0}, "maxima": "maxima" in hyperparameters}
    for name, values in wanted.items():
        own = hyperparameters.get(name)
        given = [] if own is None else list(own) if isinstance(own, Sequence) else [own]
        too_many = name == "weights" and own is not None and len(given) != len(rubric)
        if too_many or (said.get(name, bool(values)) and given != values):
            raise ValueError(
                f"hyperparameters of {method} must fit the {len(rubric)} criteria of judge_rubric"
                f" {path!r}, as {name}={','.join(f'{value:g}' for value in values)} does, got"
                f" {'none' if own is None else own}"
            )


def check_asked(config: TrainConfig, start: LoadedPolicy) -> None:
    """Refuses a policy as its own judge that has no tokens for what it would be asked, or no room.

    Raises:
      ValueError: about no answer to any prompt it could be asked.
    """
    if config.judge != "policy" or config.judge_prompt == AGAIN:
        return
    asked, sampling = judge_of(config, None)
    table = start.train_table
    shortest = min(table.prompts, key=lambda prompt: len(prompt.text))

    def question_of(prompt):
        texts = dict(prompt=prompt, response="", other="", reference=str(shortest.answer))
        return [each["content"] for each in asked.prompt_of(**texts, meta=shortest.meta)]

    unknown = getattr(table.tokenizer, "unk_token_id", None)
    for text in question_of(""):
        if unknown is not None and unknown in table.encode(text):
            raise ValueError(
                "TrainConfig: judge must be a policy with tokens for what it is asked, got"
                f" 'policy' and the question {text[:80]!r}; judge_prompt {AGAIN!r} needs no words"
            )
    words = sampling.get("tokens", start.sampler.response_tokens)
    room = start.model.config.max_positions - words
    length = sum(len(table.encode(text)) for text in question_of(shortest.text))
    if length > room:
        raise ValueError(
            f"TrainConfig: judge must have room for what it is asked, got 'policy' with {room}"
            f" tokens beside a reply of {words}, and a question of {length} about an empty answer"
            " to the shortest prompt"
        )


def _check_again(config: TrainConfig) -> None:
    others = ("judge_rubric", "judge_options", "judge_budget")
    given = [name for name in others if getattr(config, name)]
    if config.judge != "policy" or given:
        raise ValueError(
            f"TrainConfig: judge_prompt {AGAIN!r} must come with the judge policy and none of"
            f" {', '.join(others)}, got judge {config.judge!r} and {given or 'none of these'}"
        )


def judge_of(config: TrainConfig, replies: Path | None) -> tuple[Judge, dict[str, Any]] | None:
    """The judge that settings name, and how the policy is sampled where it is the judge.

    Args:
      replies: file of what it said; None: nothing is kept.
    Raises:
      ValueError: a judge that cannot be made, or settings of one where there is none.
    """
    if not config.judge:
        for name in ("judge_rubric", "judge_prompt", "judge_options", "judge_budget"):
            if given := getattr(config, name):
                raise ValueError(f"TrainConfig: {name} needs a judge, got {given!r} alone")
        return None
    options = _options_of(config)
    budget = _read(_budget, "judge_budget", config.judge_budget)
    if config.judge_rubric and config.judge_prompt:
        raise ValueError(
            "TrainConfig: judge_prompt must be empty where a rubric says what is asked, got"
            f" {config.judge_prompt!r}"
        )
    if config.judge == "policy" and config.judge_budget:
        raise ValueError(
            "TrainConfig: judge_budget must be empty where the policy is the judge, whose words are"
            f" among the run's drawn_tokens, got {config.judge_budget}"
        )
    names, prompt_of, without = ["judge"], question(), float("nan")
    parse = as_shares(number(0, options["highest"]), [options["highest"]])
    if config.judge_rubric:
        rubric = read_rubric(Path(config.judge_rubric))
        names = [f"judge/{criterion.name}" for criterion in rubric]
        prompt_of = rubric_question(rubric)
        parse = as_shares(points(rubric), [criterion.maximum for criterion in rubric])
    elif config.judge_prompt == CONSTRAINTS:
        # As the hard ones, soft constraints are those of what follows the thinking.
        prompt_of = shown_by(constraints_question(), lambda text: behind_thought(text) or "")
        parse, without = yes_or_no(), 1.0
    elif config.judge_prompt:
        pairs = config.judge_prompt == PAIRS
        template = COMPARE if pairs else _text(Path(config.judge_prompt))
        prompt_of = question(template)
        if "{other}" in template:
            names, parse = TWO, two_numbers(1, options["highest"])
    if options["visible"]:
        prompt_of = shown_by(prompt_of, visible)
    sampling = {"temperature": options["temperature"]} if options["temperature"] else {"top_k": 1}
    if config.judge == "policy" and options["tokens"]:
        sampling["tokens"] = options["tokens"]
    asked = Judge(
        _call(config, options, sampling),
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
    """The texts of the files that say what a judge is asked, by the setting that names them."""
    named = {name: getattr(config, name) for name in ("judge_rubric", "judge_prompt")}
    return {
        name: _text(Path(path))
        for name, path in named.items()
        if config.judge and path not in ("", AGAIN, PAIRS, CONSTRAINTS)
    }


def _options_of(config: TrainConfig) -> dict[str, Any]:
    """The `judge_options`, all of them.

    Raises:
      ValueError: one that judges of this kind have not, or that cannot be read.
    """
    options = _read(_options, "judge_options", config.judge_options)
    kind = config.judge.partition(":")[0]
    own = _OPTIONS.get(kind, _OPTIONS["module"])
    wanted = [*own, "tries", "highest", "visible"]
    given = [pair.partition("=")[0] for pair in config.judge_options]
    if idle := [name for name in given if name not in wanted]:
        raise ValueError(
            f"TrainConfig: judge_options of judge {config.judge!r} must be among"
            f" {', '.join(wanted)}, got {', '.join(idle)}"
        )
    if options["tokens"] is not None and options["tokens"] < 1:
        raise ValueError(
            f"TrainConfig: judge_options: tokens must be at least 1, got {options['tokens']}"
        )
    return options


def _options(
    temperature: float = 0.0,
    tries: int = 1,
    tokens: int | None = None,
    seconds: float = 60.0,
    at_once: int = 32,
    retries: int = 4,
    highest: float = 10.0,
    visible: bool = False,
):
    """What `judge_options` may set."""
    return dict(locals())


def _budget(calls: int | None = None, tokens: int | None = None):
    """What `judge_budget` may set."""
    return dict(locals())


def _read(function: Callable[..., dict], name: str, pairs: tuple[str, ...]) -> dict[str, Any]:
    return function(**read_arguments(name, function, pairs))


def _text(path: Path) -> str:
    if not path.is_file():
        raise ValueError(f"TrainConfig: judge_prompt must be a file, got {str(path)!r}")
    return path.read_text(encoding="utf-8")


def _call(config: TrainConfig, options: dict[str, Any], sampling: dict[str, Any]) -> Call | None:
    """Who is asked; None for the policy itself."""
    kind, _, name = config.judge.partition(":")
    if config.judge == "policy":
        return None
    if kind == "server":
        own = {option: options[option] for option in _OPTIONS["server"]}
        return server(name, **own | {"tokens": options["tokens"] or WORDS})
    if kind == "folder":
        return _of_folder(name, options["tokens"] or WORDS, config, sampling)
    function = own_function("judge", config.judge)
    return by_function(function, config.judge, options["at_once"], options["seconds"])


def _of_folder(path: str, tokens: int, config: TrainConfig, sampling: dict[str, Any]) -> Call:
    """Another policy in this process, loaded when it is asked first."""
    if not Path(path).is_dir():
        raise ValueError(f"judge: folder must be a policy folder, got {path!r}")
    key = named_key(config.seed, "judge", 0)

    @functools.cache
    def call():
        _, mesh = make_meshes(config.mesh, config.sample_mesh)
        model, params = policy.load(path, functools.partial(parameter_shardings, mesh=mesh))
        tokenizer = policy.tokenizer(path)
        sampler = Sampler(
            replace(model, mesh=mesh),
            tokenizer,
            None,
            FOLDER_PROMPTS,
            1,
            (FOLDER_PROMPTS, 1),
            min(tokens, model.config.max_positions // 2),
            Sampling(),
            stop_tokens=stop_tokens(tokenizer, model.stop_tokens),
        )
        nothing = PromptTable((), np.zeros((1, 1), np.int32), np.ones(1, np.int32), tokenizer)
        return writing(RunActor(sampler, params, {"plain": nothing}, 0, None), path, key, sampling)

    def ask(questions, spending):
        return call().ask(questions, spending)

    told = sorted(sampling.items())
    return Call(ask, f"folder {path} {told} {tokens} {config.seed}", together=True)
