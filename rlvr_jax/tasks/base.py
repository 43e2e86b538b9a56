"""Tasks: prompts of two splits, and a function that grades responses."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rlvr_jax.tools import Environment, Game
from rlvr_jax.verifiers.grade import Grade

AFTER = "after"
"""Key of a message of a prompt that follows the user's."""

# Fields of a prompt that are empty in most tasks.
_OPTIONAL = ("messages", "solution", "hints", "meta")


@dataclass(frozen=True)
class Prompt:
    """One question.

    Fields:
      text: the prompt as the policy reads it; with a chat template, the user's message.
      answer: the verifier's reference; any JSON value, never shown to the policy.
      kind: the class that curves are split by ("easy", "hard", …).
      gold: a response that earns full reward, if one can be written down; the self-check before
        the first step scores it.
      messages: messages before the user's message: a system message and few-shot turns,
        each {"role": …, "content": …}; empty: nothing. A message may have more for chat
        templates, such as "tool_calls" and "reasoning_content", and an environment's has its tools
        (`World.start`). Messages with "after": True follow the user's message; if the last of them
        is the assistant's, the response continues it (`prefill`).
      solution: a worked solution, step by step; the steps bring their own spaces, so that
        `"".join(solution[:k])` is how it begins. Empty: none is known.
      hints: texts that help; empty: none.
      meta: further JSON values, such as {"level": 3}, how difficult the prompt is (from 1), or
        {"wrong": …}, a response that earns nothing, for the self-check.
    Raises:
      ValueError: a text in place of a sequence of texts; a message whose role or content is
        not a text.
    """

    text: str
    answer: Any = None
    kind: str = ""
    gold: str | None = None
    messages: Sequence[Mapping[str, Any]] = ()
    solution: Sequence[str] = ()
    hints: Sequence[str] = ()
    # A mapping has no hash, and a prompt without one is to keep its own.
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
        """All messages in order, the user's `text` among them."""
        plain = [{key: m[key] for key in m if key != AFTER} for m in self.messages]
        before = len([m for m in self.messages if not m.get(AFTER)])
        return [*plain[:before], {"role": "user", "content": self.text}, *plain[before:]]

    @property
    def prefill(self) -> str:
        """The beginning of the assistant's message that the response continues; "" for none."""
        last = self.messages[-1] if self.messages else {}
        return last["content"] if last.get(AFTER) and is_prefill(last) else ""


def is_prefill(message: Mapping[str, Any]) -> bool:
    """Whether the last message of a chat is one that the response continues."""
    return message["role"] == "assistant" and not message.get("tool_calls")


@dataclass(frozen=True)
class Response:
    """One sampled response as text and how it ended; training uses the tokens, not the text.

    Fields:
      text: the decoded response without the stop token.
      truncated: the token budget ended it, not the stop token.
      prompt_tail: end of the prompt that the policy read, by its chat template. The response does
        not open a tag again that this end opens (`<think>`). "": unknown.
    """

    text: str
    truncated: bool = False
    prompt_tail: str = ""


class StepScore(NamedTuple):
    """A step of a response; it begins where the one before it ends.

    Fields:
      end: characters of the response up to its end.
      score: how good it is, usually in [0, 1].
    """

    end: int
    score: float


Verify = Callable[[Sequence[Prompt], Sequence[Response]], Sequence[Grade]]
Show = Callable[[Prompt, str], str]


@dataclass(frozen=True)
class Task:
    """Prompts and their verification.

    Fields:
      name: as given to `--task`.
      train, test: prompts to learn from and prompts that are only evaluated; no text is in both.
      verify: grades responses[i] as an answer to prompts[i], in order.
      response_tokens: the budget of a response that suits the task.
      mixture: fraction of each kind in a batch; empty: as in `train`.
      base_model: folder of a policy made for this task, if there is one.
      rewards: for methods that weigh several rewards themselves (GDPO), their names:
        "outcome" and names of `Grade.info`, which every grade must have. NaN: the reward
        does not apply to the response.
      answers: grades name final answers, for methods that compare the responses' answers.
      show_hint: (prompt, hint) -> the text that the policy is shown when it is given the hint, a
        text such as the first steps of a solution. None: the task has no way of its own.
      show_answer: (prompt, answer) -> the same for a given answer, correct or incorrect.
      score_steps: (prompt, text of a response) -> its steps in order, for methods that use the
        correctness of each step. None: the task has no steps.
      read_problem: (prompt, text that the policy wrote from it) -> the problem that the text
        states, with the prompt's answer as far as the task has one apart from the question; None if
        it states none. None: a text states the content of its last ```text fence.
      world: of programs that the policy may make up questions in (`rlvr_jax.tasks.worlds`); None:
        the task has none.
      derived: fields of the prompts that follow from text, answer and kind, such as a solution that
        the task works out; the fingerprint leaves them out.
      notes: sentences about where the prompts come from, printed once when a run begins.
      environment: answers in the middle of a response if the run samples in turns; None: the
        task has none.
    Raises:
      ValueError: an empty split; a text in both; unknown kinds in `mixture`; `rewards` or `derived`
        with unknown names.
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
    read_problem: Callable[[Prompt, str], "Prompt | None"] | None = None
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

    def fingerprint(self) -> str:
        """Hash of all prompts: a run refuses to resume on other data.

        It covers text, answer and kind; and messages, solution, hints and meta if they are not
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
    """A value as JSON; integers that are longer than Python writes are hexadecimal texts."""
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
