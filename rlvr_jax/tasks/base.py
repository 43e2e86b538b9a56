"""Tasks: prompts of two splits, and a function that grades responses."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rlvr_jax.tools import Environment, Game
from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.texts.reflections import Reflection

AFTER = "after"
"""Key of messages of a prompt that follow the user's message."""

# Fields of a prompt that are empty in most tasks.
_OPTIONAL = ("messages", "solution", "hints", "meta")


@dataclass(frozen=True)
class Prompt:
    """One question.

    Examples:
      >>> from rlvr_jax.tasks import Prompt
      >>> Prompt("1 + 1 =", answer="2", gold="2").text
      '1 + 1 ='

    Fields:
      text: the prompt as the policy reads it; with a chat template, the user's message.
      answer: the verifier's reference; any JSON value, never shown to the policy.
      kind: class of the prompt ("easy", "hard", …); metrics are also reported by kind.
      gold: a response with full reward, if one can be written down. The self-check before the first
        step grades it.
      messages: messages before the user's message, each {"role": …, "content": …}: a system message
        and few-shot turns. They may have more keys for chat templates, such as "tool_calls" and
        "reasoning_content"; an environment's message has its tools (`World.start`). Messages with
        "after": True follow the user's message. If the last of them is the assistant's, the
        response continues it (`prefill`).
      solution: a worked solution as steps that include their white space, so that
        `"".join(solution[:k])` is its beginning. Empty: none is known.
      hints: helpful texts; empty: none.
      meta: further JSON values, such as {"level": 3}, the difficulty of the prompt (from 1), or
        {"wrong": …}, an incorrect response for the self-check.
    Raises:
      ValueError: a field is a text instead of a sequence of texts, or the role or content of a
        message is not a text.
    """

    text: str
    answer: Any = None
    kind: str = ""
    gold: str | None = None
    messages: Sequence[Mapping[str, Any]] = ()
    solution: Sequence[str] = ()
    hints: Sequence[str] = ()
    # A mapping has no hash. Prompts without one keep the hash of the other fields.
    meta: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        for name in ("messages", "solution", "hints"):
            value = getattr(self, name)
            if isinstance(value, str):
                raise ValueError(f"Prompt: {name} must be a sequence, got the text {value!r}")
            object.__setattr__(self, name, tuple(value))
        for name in ("solution", "hints"):
            wrong = [part for part in getattr(self, name) if not isinstance(part, str)]
            if wrong:
                raise ValueError(f"Prompt: {name} must be texts, got {wrong[0]!r}")
        for message in self.messages:
            if not isinstance(message, Mapping) or not all(
                isinstance(message.get(name), str) for name in ("role", "content")
            ):
                raise ValueError(
                    f'Prompt: messages must be like {{"role": "system", "content": "…"}}, got'
                    f" {message!r}"
                )
        after = [bool(message.get(AFTER)) for message in self.messages]
        if after != sorted(after):
            raise ValueError(
                f'Prompt: messages with "{AFTER}" must be the last ones, got'
                f" {[message['role'] for message in self.messages]} with {after}"
            )

    @property
    def chat(self) -> list[dict[str, Any]]:
        """All messages in order, including the user's `text`."""
        plain = [{key: m[key] for key in m if key != AFTER} for m in self.messages]
        before = len([m for m in self.messages if not m.get(AFTER)])
        return [*plain[:before], {"role": "user", "content": self.text}, *plain[before:]]

    @property
    def prefill(self) -> str:
        """The beginning of the assistant's message that the response continues; "" for none."""
        last = self.messages[-1] if self.messages else {}
        return last["content"] if last.get(AFTER) and is_prefill(last) else ""


def is_prefill(message: Mapping[str, Any]) -> bool:
    """Whether the response continues this message, the last one of a chat."""
    return message["role"] == "assistant" and not message.get("tool_calls")


@dataclass(frozen=True)
class Response:
    """One sampled response as text and how it ended; training uses the tokens, not the text.

    Examples:
      >>> from rlvr_jax.tasks import Response
      >>> Response("( 3 + 9 = 12 ) - 4 = 8", truncated=False).text[-1]
      '8'

    Fields:
      text: the decoded response without the stop token.
      truncated: whether the token budget ended it, not the stop token.
      prompt_tail: end of the prompt by its chat template. If it opens a tag (`<think>`), the
        response does not open that tag again. "": unknown.
    """

    text: str
    truncated: bool = False
    prompt_tail: str = ""


class StepScore(NamedTuple):
    """A step of a response; it begins at the end of the previous step.

    Fields:
      end: number of characters of the response up to the end of the step.
      score: quality of the step, in `Task.step_range`.
    """

    end: int
    score: float


Verify = Callable[[Sequence[Prompt], Sequence[Response]], Sequence[Grade]]
Show = Callable[[Prompt, str], str]


@dataclass(frozen=True)
class Task:
    """Prompts and the function that grades responses to them.

    Examples:
      >>> from rlvr_jax.tasks import Prompt, Task, graded_one_by_one
      >>> verify = graded_one_by_one(lambda prompt, response: float(response.text == prompt.answer))
      >>> task = Task("twice", [Prompt("2 · 1 =", "2")], [Prompt("2 · 2 =", "4")], verify, 4)
      >>> len(task.train), len(task.test)
      (1, 1)

    Fields:
      name: the name for `--task`.
      train, test: training prompts, and prompts that are only evaluated; no text is in both.
      verify: (prompts, responses) -> grades of responses[i] as an answer to prompts[i], in order.
      response_tokens: token budget of a response that suits the task.
      mixture: fraction of each kind in a batch; empty: the fractions in `train`.
      base_model: folder of a policy made for this task, if there is one.
      rewards: names of several rewards, for methods that weigh them (GDPO): "outcome" and names of
        `Grade.info`, which every grade must have. A NaN means that the reward does not apply to the
        response.
      answers: whether grades have final answers, for methods that compare answers.
      show_hint: (prompt, hint) -> the text of the prompt with a hint, such as the first steps of a
        solution. None: the task has no such form.
      show_answer: (prompt, answer) -> the text of the prompt with a correct or incorrect answer.
      score_steps: (prompt, text of a response) -> its reasoning steps in order, for methods that
        use the correctness of each step. None: the task has no steps.
      step_range: smallest and largest score of a step. A method is refused if its bound is at most
        the smallest score, so that no step can be below it.
      read_problem: (prompt, text that the policy wrote from it) -> the problem that the text
        states, or None. The problem has the prompt's answer if the task stores answers. None: the
        problem is the content of the last ```text fence.
      read_reflection: (text that the policy wrote about a response) -> its `Reflection`, or None if
        it cannot be read. None: the text has JSON (`json_reflection`).
      world: programs about which the policy may write questions (`rlvr_jax.tasks.worlds`); None:
        the task has none.
      derived: fields of the prompts that follow from text, answer and kind, such as a computed
        solution. The fingerprint leaves them out.
      notes: sentences about the source of the prompts, printed once when a run begins.
      environment: replies within a response if the run samples in turns; None: the task has none.
    Raises:
      ValueError: a split is empty, a text is in both, `mixture` has unknown kinds, `rewards` or
        `derived` have unknown names, or `step_range` is empty.
    """

    name: str
    train: Sequence[Prompt]
    test: Sequence[Prompt]
    verify: Verify
    response_tokens: int = 256
    mixture: Mapping[str, float] = field(default_factory=dict)
    base_model: str | None = None
    rewards: Sequence[str] = ()
    answers: bool = False
    show_hint: Show | None = None
    show_answer: Show | None = None
    score_steps: Callable[[Prompt, str], Sequence[StepScore]] | None = None
    step_range: tuple[float, float] = (0.0, 1.0)
    read_problem: Callable[[Prompt, str], "Prompt | None"] | None = None
    read_reflection: Callable[[str], Reflection | None] | None = None
    world: Any = None
    derived: Sequence[str] = ()
    notes: Sequence[str] = ()
    environment: Environment | Game | None = None

    def __post_init__(self) -> None:
        for split in ("train", "test"):
            if not len(getattr(self, split)):
                raise ValueError(f"Task {self.name!r}: {split} must have prompts, got none")
        shared = {p.text for p in self.train} & {p.text for p in self.test}
        if shared:
            raise ValueError(
                f"Task {self.name!r}: train and test must be disjoint, got {len(shared)} prompts in"
                f" both, e.g. {next(iter(shared))!r}"
            )
        if isinstance(self.rewards, str):
            raise ValueError(
                f"Task {self.name!r}: rewards must be a sequence of names, got {self.rewards!r}"
            )
        unknown = set(self.mixture) - {p.kind for p in self.train}
        if unknown:
            raise ValueError(
                f"Task {self.name!r}: mixture must name kinds of the train prompts, got"
                f" {sorted(unknown)}"
            )
        if isinstance(self.derived, str) or not set(self.derived) <= set(_OPTIONAL):
            raise ValueError(
                f"Task {self.name!r}: derived must be among {', '.join(_OPTIONAL)}, got"
                f" {self.derived!r}"
            )

        if not self.step_range[0] < self.step_range[1]:
            raise ValueError(
                f"Task {self.name!r}: step_range must be a smaller and a larger score, got"
                f" {self.step_range}"
            )

    def fingerprint(self) -> str:
        """Hash of all prompts: a run refuses to resume with other data.

        It covers text, answer and kind, and also messages, solution, hints and meta if they are not
        empty and not `derived`.
        """
        digest = hashlib.sha256(self.name.encode())
        further = [name for name in _OPTIONAL if name not in self.derived]
        for split in (self.train, self.test):
            for prompt in split:
                digest.update(_json([prompt.text, prompt.answer, prompt.kind]).encode())
                used = {name: value for name in further if (value := getattr(prompt, name))}
                if used:
                    digest.update(_json(used, sort_keys=True).encode())
        return digest.hexdigest()[:16]


def _json(value: Any, sort_keys: bool = False) -> str:
    """A value as JSON; integers beyond Python's limit of digits are hexadecimal texts."""
    try:
        return json.dumps(value, default=str, sort_keys=sort_keys)
    except ValueError:
        return json.dumps(_bounded(value), default=str, sort_keys=sort_keys)


def _bounded(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _bounded(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_bounded(part) for part in value]
    return hex(value) if isinstance(value, int) and value.bit_length() > 64 else value
