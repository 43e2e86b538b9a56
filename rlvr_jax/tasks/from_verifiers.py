"""Tasks of the package `verifiers`, without the package.

Its tasks (0.4.0, `verifiers.v1`) are objects with `data` and methods that are marked as rewards and
metrics. The package is not imported here: any object with that interface is a task.
"""

import asyncio
import inspect
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from rlvr_jax.tasks.base import Prompt, Response, Task
from rlvr_jax.tasks.grading import GradingError
from rlvr_jax.verifiers.grade import Grade

_GIVEN = ("task", "trace")


def from_verifiers(
    tasks: Iterable[Any],
    test_fraction: float = 0.1,
    name: str = "verifiers",
    response_tokens: int = 512,
) -> Task:
    """Makes a task from objects of `verifiers` 0.4.0, each of which is one question.

    A response is one message of the policy. Its reward is the weighted sum of the rewards, and the
    outcome is that sum limited to [0, 1]. Rewards and metrics are metrics of a run, by name. From
    its trace a reward may read the messages, the reply, `task`, `info`, `rewards` and `metrics`. A
    reward that raises counts 0 (`reward_errors`); a score of None is ungraded.

    Args:
      tasks: for example a `Taskset`: objects with `data.prompt`, a text or messages of which the
        last is the user's, optionally `data.system_prompt`, and marked methods.
      test_fraction: fraction of the different prompts, the last ones, in the test split; in (0, 1).
      name, response_tokens: fields of the task.
    Raises:
      ValueError: there are fewer than two prompts, or the fraction is outside (0, 1). A task needs
        more than one message and its rewards: it has no prompt, or has tools, judges, a container,
        a runtime, or steps before or after the response. Its tokens would not be those that the
        policy sampled, or it would be ungraded.
      GradingError: when it grades, a reward reads a missing part of its trace.

    Metrics: reward_errors (rewards that raise).
    """
    own = list(tasks)
    if not 0 < test_fraction < 1:
        raise ValueError(f"from_verifiers: test_fraction must be in (0, 1), got {test_fraction}")
    for task in own:
        _check(task)
    prompts = [_prompt(task, number) for number, task in enumerate(own)]
    texts = list(dict.fromkeys(prompt.text for prompt in prompts))
    if len(texts) < 2:
        raise ValueError(
            f"from_verifiers: tasks must have two different prompts at least, got {len(texts)}"
        )
    held_out = {*texts[-max(1, min(round(test_fraction * len(texts)), len(texts) - 1)) :]}

    def verify(asked: Sequence[Prompt], responses: Sequence[Response]) -> list[Grade]:
        async def grades() -> list[Grade]:
            pairs = zip(asked, responses, strict=True)
            return [await _grade(own[prompt.meta["index"]], response) for prompt, response in pairs]

        return asyncio.run(grades())

    return Task(
        name,
        [prompt for prompt in prompts if prompt.text not in held_out],
        [prompt for prompt in prompts if prompt.text in held_out],
        verify,
        response_tokens,
    )


def _check(task: Any) -> None:
    """Raises if a task is more than a prompt with rewards."""
    kind = type(task)
    config = getattr(task, "config", None)
    wrong = None
    if getattr(getattr(task, "data", None), "prompt", None) in (None, "", []):
        wrong = "a prompt in data, got none"
    elif not _marked(task, "reward"):
        wrong = "a method that is marked as a reward, got none"
    elif getattr(kind, "NEEDS_CONTAINER", False) or getattr(task.data, "image", None):
        wrong = "no container"
    elif getattr(config, "judges", None):
        wrong = "no judges (use --judge instead)"
    elif callable(getattr(kind, "toolsets", None)) and kind.toolsets(config):
        wrong = "no tools (use `tools.toolbox` instead)"
    elif steps := [step for step in ("setup", "finalize") if _own_step(kind, step)]:
        wrong = f"no {steps[0]} method"
    else:
        for method in (*_marked(task, "reward"), *_marked(task, "metric")):
            for each in inspect.signature(method).parameters.values():
                if each.name not in _GIVEN and each.default is each.empty:
                    wrong = f"rewards of only task and trace, got {method.__name__}({each.name})"
    if wrong:
        raise ValueError(f"from_verifiers: task {kind.__name__} must have {wrong}")


def _own_step(kind: type, step: str) -> bool:
    """Whether a class other than the package's base class, which scores, has the step."""
    for each in kind.__mro__:
        if "score" in vars(each):
            return False
        if step in vars(each):
            return True
    return False


def _marked(task: Any, mark: str) -> list[Callable[..., Any]]:
    hooks: Callable[[str], list[Callable[..., Any]]] | None = getattr(task, "hooks", None)
    if callable(hooks):
        return hooks(mark)  # including those that its configuration adds or replaces
    names = {
        name
        for kind in type(task).__mro__
        for name, method in vars(kind).items()
        if callable(method) and hasattr(method, mark)
    }
    found = [getattr(task, name) for name in names]
    return sorted((m for m in found if hasattr(m, mark)), key=lambda m: m.__name__)


def _prompt(task: Any, number: int) -> Prompt:
    data, chat = task.data, []
    if getattr(data, "system_prompt", None):
        chat.append({"role": "system", "content": data.system_prompt})
    asked = data.prompt
    messages = [{"role": "user", "content": asked}] if isinstance(asked, str) else asked
    chat += [{"role": _of(m, "role"), "content": _text(_of(m, "content"))} for m in messages]
    *before, last = chat
    if last["role"] != "user":
        raise ValueError(
            f"from_verifiers: task {type(task).__name__} must have a prompt that ends with a"
            f" message of the user, got one of {last['role']!r}"
        )
    dump = getattr(data, "model_dump", None)
    fields = dump(mode="json", exclude_none=True) if dump else vars(data)
    answer = json.loads(json.dumps(fields, default=str))
    return Prompt(last["content"], answer, messages=before, meta={"index": number})


def _of(message: Any, name: str) -> Any:
    return message[name] if isinstance(message, Mapping) else getattr(message, name)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = [_of(part, "text") for part in content if _of(part, "type") == "text"]
    if len(parts) != len(content):
        raise ValueError("from_verifiers: messages must be only text, got another part")
    return "\n".join(parts)


class _NotThere(Exception):
    """A reward reads a part of its trace that a single message does not have."""


@dataclass
class _Trace:
    """The part of a response that rewards read."""

    task: Any
    messages: list[Any]
    last_reply: str
    is_truncated: bool
    num_turns: int = 1
    info: dict[str, Any] = field(default_factory=dict)
    rewards: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)

    @property
    def assistant_messages(self) -> list[Any]:
        return [message for message in self.messages if message.role == "assistant"]

    @property
    def last_message(self) -> Any:
        return self.messages[-1]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise _NotThere(name)


async def _grade(task: Any, response: Response) -> Grade:
    asked = _prompt(task, 0)
    chat = asked.chat
    chat.append({"role": "assistant", "content": response.text})
    messages = [SimpleNamespace(**message, tool_calls=None) for message in chat]
    about = SimpleNamespace(data=task.data, type=type(task).__name__)
    trace = _Trace(about, messages, response.text.strip(), response.truncated)
    given = dict(zip(_GIVEN, (task.data, trace), strict=True))
    total, errors = 0.0, 0.0
    for mark, found in (("metric", trace.metrics), ("reward", trace.rewards)):
        for method in _marked(task, mark):
            asks = inspect.signature(method).parameters
            try:
                score = method(**{n: given[n] for n in asks if n in given})
                score = await score if inspect.isawaitable(score) else score
            except _NotThere as missing:
                raise GradingError(
                    f"from_verifiers: {type(task).__name__}.{method.__name__} must read only"
                    f" parts of its trace that a single message has, got trace.{missing}"
                ) from None
            except Exception:
                score, errors = 0.0, errors + 1
            scores = score if isinstance(score, Mapping) else {method.__name__: score}
            if mark == "reward" and None in scores.values():
                return Grade(None)
            found |= {n: math.nan if x is None else float(x) for n, x in scores.items()}
            if mark == "reward":
                weight = getattr(method, "_vf_weight", 1.0)
                total += weight * sum(map(float, scores.values()))
    info = {**trace.metrics, **trace.rewards, "reward_errors": errors}
    return Grade(min(max(total, 0.0), 1.0), total, info=info)
