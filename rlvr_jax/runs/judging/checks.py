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
    """Refuses a rubric whose criteria differ from those of the method.

    The method defines the weights, vetoes and factual criteria. If the file also has them, they
    must be equal. The grades of the judge are fractions of their maximum.

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
        **{k: [n for n, one in enumerate(rubric) if one.kind == k] for k in ("veto", "factual")},
    }
    # The method sets the values that the file does not state.
    stated = {"weights": {*weights} != {1.0}}
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
      ValueError: it cannot judge any response.
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
                "--judge policy must have tokens for all words of the judge's prompt, got unknown"
                f" ones in {text[:80]!r}; --judge-prompt {AGAIN} needs no words"
            )
    words = sampling.get("tokens", start.sampler.response_tokens)
    room = start.model.config.max_positions - words
    length = sum(len(table.encode(text)) for text in question_of(shortest.text))
    if length > room:
        raise ValueError(
            f"--judge policy must have positions for the judge's prompt, got {room} next to a reply"
            f" of {words} tokens and {length} for the shortest prompt with an empty response;"
            " --judge-options tokens= makes the reply shorter"
        )


def check_again(config: TrainConfig) -> None:
    """Refuses other settings of a judge with the prompt `AGAIN`."""
    others = ("judge_rubric", "judge_options", "judge_budget")
    given = [flag(name) for name in others if getattr(config.judging, name)]
    judge = config.judging.judge
    if judge != "policy" or given:
        raise ValueError(
            f"--judge-prompt {AGAIN!r} must come with the judge policy and none of"
            f" {', '.join(map(flag, others))}, got --judge {judge!r} and"
            f" {', '.join(given) or 'none of these'}"
        )
