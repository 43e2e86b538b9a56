"""Rewards: the `verify` of a task from reward functions in other forms.

    graded_one_by_one(reward)     reward(prompt, response) -> number
    from_trl(reward)              reward(completions, **columns) -> a number for each
    from_trl([f, g], weights=…)   the weighted sum of several
    from_verl(compute_score)      compute_score(data_source, solution_str, ground_truth, extra_info)

`from_trl` and `from_verl` read further columns of the data in `Prompt.meta`, which `from_rows`
sets. A reward may be any number. The outcome, which pass rates read, is the reward limited to [0,
1]. None means ungraded.
"""

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rlvr_jax.tasks.base import Prompt, Response, Verify
from rlvr_jax.tasks.grading import GradingError, one_by_one, shortened
from rlvr_jax.tools.base import awaited
from rlvr_jax.verifiers.grade import Grade

_OF_TRAINERS = ("completion_ids", "trainer_state", "log_extra", "log_metric", "environments")
_OF_TRAINERS += ("reward_router_address", "reward_model_tokenizer")


def blanks_reward(right: int, total: int, form: str) -> float:
    """The reward of an answer with several blanks, in one of the compared forms.

    Args:
      right, total: `total` ≥ 1 blanks, of which `right` are correct.
      form: "binary", 1 if all are correct, else 0; "share", right / total; "signed_binary", ±1;
        "signed_share", 2 (right / total - ½). A term for the format must be added separately.
    Raises:
      ValueError: there are more correct blanks than blanks, no blanks, or an unknown form.
    Source: https://github.com/Leey21/A-Data-Centric-Study.
    """
    if not 0 <= right <= total or not total:
        raise ValueError(f"blanks_reward: right must be in 0 .. total {total} > 0, got {right}")
    fraction = right / total
    forms = {
        "binary": float(right == total),
        "share": fraction,
        "signed_binary": 2.0 * (right == total) - 1,
        "signed_share": 2 * (fraction - 0.5),
    }
    if form not in forms:
        raise ValueError(f"blanks_reward: form must be one of {', '.join(forms)}, got {form!r}")
    return forms[form]


def graded_one_by_one(reward: Callable[[Prompt, Response], float | None]) -> Verify:
    """Makes a batch verifier from a function of one prompt and one response.

    Examples:
      >>> from rlvr_jax.tasks import Prompt, Response, graded_one_by_one
      >>> verify = graded_one_by_one(lambda prompt, response: response.text == prompt.answer)
      >>> verify([Prompt("1 + 1 =", "2")], [Response("2")])[0].outcome
      1.0

    Args:
      reward: (prompt, response) -> a finite number, of Python or numpy. The outcome is the number
        limited to [0, 1]. It may be a coroutine. None is ungraded.
    Raises:
      GradingError: when called, a reward is not a finite number (names prompt and response).
    """

    @one_by_one
    def verify(prompt: Prompt, response: Response) -> Grade:
        return _grade(_finite(reward, awaited(reward(prompt, response)), prompt, response))

    verify.verifier = _name(reward)
    return verify


def from_trl(
    reward: Callable[..., Sequence[float | None]] | Sequence[Callable[..., Any]],
    conversational: bool = False,
    weights: Sequence[float] | None = None,
) -> Verify:
    """Wraps a reward function of TRL's GRPOTrainer, or several.

    Examples:
      >>> from rlvr_jax.tasks import Prompt, Response, from_trl
      >>> def exact(completions, answer, **columns):
      ...     return [float(c == a) for c, a in zip(completions, answer)]
      >>> verify = from_trl(exact)
      >>> [grade.reward for grade in verify([Prompt("1 + 1 =", "2")], [Response("2", False)])]
      [1.0]

    Each function gets `prompts`, `completions` and the columns of the data by their names (lists of
    one value per response), as far as it takes them. `answer` is the prompt's answer unless a
    column has that name. With several functions the reward is the weighted sum. Each function's
    number is a metric with its name (`Grade.info`). `from_rows` declares them as `Task.rewards`,
    for methods that weigh rewards themselves.

        task = from_rows(rows, verify=from_trl([accuracy, brevity], weights=[1, 0.5]))

    Args:
      reward: (completions, **columns) -> numbers; None for a response to which it does not apply.
        It may be a coroutine. Or a list of such functions. A response to which none applies is
        ungraded.
      conversational: completions are [{"role": "assistant", "content": text}], and prompts are
        messages, as in TRL for data whose prompts are messages.
      weights: weights of the functions, in their order; None: 1 each.
    Raises:
      ValueError: a reward is not a function, or there is not one weight per function.
      GradingError: when called, a required column is missing, or a function does not return one
        finite number or None for each response.
    Source: https://github.com/huggingface/trl/blob/main/docs/source/grpo_trainer.md
    """
    several = isinstance(reward, list | tuple)
    given = list(reward) if several else [reward]
    if not given:
        raise ValueError("from_trl: reward must have at least one function, got none")
    functions = [_check_function("from_trl", "reward", function) for function in given]
    factors = _weights(functions, weights)
    names = _different([_name(function) for function in functions])

    def verify(prompts: Sequence[Prompt], responses: Sequence[Response]) -> list[Grade]:
        columns = _columns(prompts, responses, conversational)
        by_function = [
            _trl_rewards(function, columns, prompts, responses) for function in functions
        ]
        grades = []
        for rewards in zip(*by_function, strict=True):
            paid = [w * x for w, x in zip(factors, rewards, strict=True) if x is not None]
            info = {n: math.nan if x is None else x for n, x in zip(names, rewards, strict=True)}
            grades.append(_grade(sum(paid) if paid else None, info if several else None))
        return grades

    verify.verifier = ", ".join(names)
    verify.rewards = tuple(names) if several else ()
    return verify


def _columns(
    prompts: Sequence[Prompt], responses: Sequence[Response], conversational: bool
) -> dict[str, list[Any]]:
    """The arguments of a reward function of TRL, by name."""
    columns: dict[str, list[Any]] = {}
    if all(prompt.answer is not None for prompt in prompts):
        columns["answer"] = [prompt.answer for prompt in prompts]
    for name in sorted({name for prompt in prompts for name in prompt.meta}):
        columns[name] = [prompt.meta.get(name) for prompt in prompts]
    columns["prompts"] = [p.chat if conversational else p.text for p in prompts]
    columns["completions"] = [
        [{"role": "assistant", "content": r.text}] if conversational else r.text for r in responses
    ]
    return columns


def _trl_rewards(
    reward: Callable,
    columns: Mapping[str, Any],
    prompts: Sequence[Prompt],
    responses: Sequence[Response],
) -> list[float | None]:
    """One function's number for each response."""
    values = _called(reward, columns)
    values = getattr(values, "tolist", lambda: values)()  # for arrays
    if isinstance(values, Iterable) and not isinstance(values, (str, Mapping)):
        values = list(values)
    if not isinstance(values, list) or len(values) != len(responses):
        raise GradingError(
            f"{_name(reward)}: reward must return a list of {len(responses)} numbers, one for"
            f" each completion, got {values!r}"
        )
    rows = zip(values, prompts, responses, strict=True)
    return [_finite(reward, value, p, r) for value, p, r in rows]


def _weights(functions: Sequence[Callable], weights: Sequence[float] | None) -> list[float]:
    if weights is None:
        return [1.0] * len(functions)
    given = list(weights) if isinstance(weights, Iterable) else []
    finite = all(isinstance(w, (int, float)) and math.isfinite(w) for w in given)
    if len(given) != len(functions) or not finite:
        raise ValueError(
            f"from_trl: weights must be {len(functions)} finite numbers, one for each function"
            f" ({', '.join(map(_name, functions))}), got {weights!r}"
        )
    return [float(weight) for weight in given]


def _different(names: Sequence[str]) -> list[str]:
    """Names of metrics; a repeated name gets a number. The outcome has a separate metric."""
    found: list[str] = []
    for name in names:
        number, free = 1, name
        while free in (*found, "outcome"):
            number += 1
            free = f"{name}_{number}"
        found.append(free)
    return found


def from_verl(compute_score: Callable[..., float | Mapping[str, Any]]) -> Verify:
    """Wraps a `compute_score` of verl, also a coroutine; it is called per response with keywords.

    Examples:
      >>> from rlvr_jax.tasks import Prompt, Response, from_verl
      >>> def compute_score(data_source, solution_str, ground_truth, extra_info=None):
      ...     return float(solution_str == ground_truth)
      >>> verify = from_verl(compute_score)
      >>> [grade.reward for grade in verify([Prompt("1 + 1 =", "2")], [Response("2", False)])]
      [1.0]

    `data_source` and `extra_info` are from the prompt's meta (default "" and {}). If it returns a
    dictionary, "score" is the reward, "acc" (optional) the outcome and "pred" the answer. Further
    numbers become metrics.

    Raises:
      ValueError: it is not a function.
      GradingError: when called, the score is neither a finite number nor a dictionary with one as
        "score" (None there is ungraded).
    Source: https://github.com/volcengine/verl/blob/main/docs/preparation/reward_function.rst
    """
    _check_function("from_verl", "compute_score", compute_score)

    @one_by_one
    def verify(prompt: Prompt, response: Response) -> Grade:
        returned = _called(
            compute_score,
            {
                "data_source": prompt.meta.get("data_source", prompt.kind),
                "solution_str": response.text,
                "ground_truth": prompt.answer,
                "extra_info": prompt.meta.get("extra_info") or {},
            },
        )
        if not isinstance(returned, Mapping):
            return _grade(_finite(compute_score, returned, prompt, response))
        if "score" not in returned:
            raise GradingError(
                f'{_name(compute_score)}: a dictionary must have the reward as "score", got'
                f" {', '.join(map(str, returned)) or 'no key'}"
            )
        score = _finite(compute_score, returned["score"], prompt, response)
        info = {
            name: float(value)
            for name, value in returned.items()
            if name not in ("score", "acc") and isinstance(value, (bool, int, float))
        }
        answer = returned.get("pred")
        found = _grade(score, info, None if answer is None else str(answer))
        if score is None or returned.get("acc") is None:
            return found
        outcome = _finite(compute_score, returned["acc"], prompt, response)
        return Grade(outcome, score, info=info, answer=found.answer)

    verify.verifier = _name(compute_score)
    return verify


def _grade(
    reward: float | None, info: Mapping[str, float] | None = None, answer: str | None = None
) -> Grade:
    outcome = None if reward is None else min(max(reward, 0.0), 1.0)
    return Grade(outcome, reward, info=info or {}, answer=answer)


def _check_function(wrapper: str, name: str, function: Any) -> Callable:
    if not callable(function):
        raise ValueError(f"{wrapper}: {name} must be one function, got {function!r}")
    return function


def _called(function: Callable, columns: Mapping[str, Any]) -> Any:
    """Calls a function with the columns that it takes, and waits for a coroutine.

    Raises:
      GradingError: the function requires other columns.
    """
    parameters = inspect.signature(function).parameters.values()
    varied = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    named = [p for p in parameters if p.kind not in varied]
    missing = [p.name for p in named if p.default is p.empty and p.name not in columns]
    of_trainers = [name for name in missing if name in _OF_TRAINERS]
    if of_trainers:
        raise GradingError(
            f"{_name(function)}: reward must not require columns of the trainer of TRL or verl,"
            f" got {', '.join(of_trainers)}"
        )
    if missing:
        raise GradingError(
            f"{_name(function)}: reward must use columns of the data ({', '.join(columns)}), got"
            f" {', '.join(missing)}. from_rows(rows, verify=…) stores the columns of its rows"
        )
    taken = {p.name for p in named}
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        taken |= set(columns)
    return awaited(function(**{name: value for name, value in columns.items() if name in taken}))


def _name(function: Callable) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _finite(function: Callable, value: Any, prompt: Prompt, response: Response) -> float | None:
    """The value as a float; None for None. A text is not a number.

    Raises:
      GradingError: the value is not a finite number.
    """
    if value is None:
        return None
    try:
        number = math.nan if isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise GradingError(
            f"{_name(function)}: reward must be a finite number, got {value!r} for prompt"
            f" {shortened(prompt.text)} and response {shortened(response.text)}"
        )
    return number
