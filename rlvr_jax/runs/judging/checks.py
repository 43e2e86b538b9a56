"""Checks of a judge's settings before the first step."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlvr_jax.experience.prompts import encode_text
from rlvr_jax.judges import read_rubric
from rlvr_jax.runs.config import TrainConfig, flag
from rlvr_jax.runs.judging.named import AGAIN, judge_of
from rlvr_jax.runs.loading import LoadedPolicy


def check_criteria(path: str, method: str, hyperparameters: Mapping[str, Any]) -> None:
    """Refuses a rubric whose criteria are others than the method combines.

    The method defines the weight of a criterion, and which are vetoes or factual; values that the
    file also has must be equal. The judge's points come as fractions of their maximum.

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
    # The method sets the values that the file does not state.
    stated = {"weights": {*weights} != {1.0}, "maxima": "maxima" in hyperparameters}
    for name, values in wanted.items():
        own = hyperparameters.get(name)
        given = [] if own is None else list(own) if isinstance(own, Sequence) else [own]
        too_many = name == "weights" and own is not None and len(given) != len(rubric)
        if too_many or (stated.get(name, bool(values)) and given != values):
            raise ValueError(
                f"--hyperparameters of {method} must fit the {len(rubric)} criteria of"
                f" --judge-rubric {path!r}, as"
                f" {name}={','.join(f'{value:g}' for value in values)} does,"
                f" got {'none' if own is None else own}"
            )


def check_asked(config: TrainConfig, start: LoadedPolicy) -> None:
    """Refuses a policy as its own judge if it lacks tokens or positions for the judge's prompt.

    Raises:
      ValueError: it can judge no answer to any prompt.
    """
    if config.judging.judge != "policy" or config.judging.judge_prompt == AGAIN:
        return
    asked, sampling = judge_of(config, None)
    table = start.train_table
    shortest = min(table.prompts, key=lambda prompt: len(prompt.text))

    def question_of(prompt):
        texts = dict(prompt=prompt, response="", other="", reference=str(shortest.answer))
        return [each["content"] for each in asked.prompt_of(**texts, meta=shortest.meta)]

    unknown = getattr(table.tokenizer, "unk_token_id", None)
    for text in question_of(""):
        # Only of the text: a prompt may begin with the same special token.
        if unknown is not None and unknown in encode_text(table.tokenizer, text):
            raise ValueError(
                "--judge must be a policy with tokens for what it is asked, got"
                f" 'policy' and the question {text[:80]!r}; --judge-prompt {AGAIN} needs no words"
            )
    words = sampling.get("tokens", start.sampler.response_tokens)
    room = start.model.config.max_positions - words
    length = sum(len(table.encode(text)) for text in question_of(shortest.text))
    if length > room:
        raise ValueError(
            f"--judge must have room for what it is asked, got 'policy' with {room}"
            f" tokens beside a reply of {words}, and a question of {length} about an empty answer"
            " to the shortest prompt"
        )


def check_again(config: TrainConfig) -> None:
    """Refuses settings of a judge that is only to give answers again."""
    others = ("judge_rubric", "judge_options", "judge_budget")
    given = [flag(name) for name in others if getattr(config.judging, name)]
    judge = config.judging.judge
    if judge != "policy" or given:
        raise ValueError(
            f"--judge-prompt {AGAIN!r} must come with the judge policy and none of"
            f" {', '.join(map(flag, others))}, got --judge {judge!r} and"
            f" {', '.join(given) or 'none of these'}"
        )
