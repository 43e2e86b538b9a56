"""Loads the task of a run from its settings, without prompts over the budget."""

import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlvr_jax import policy, sandbox, tasks
from rlvr_jax.arguments import as_typed
from rlvr_jax.experience.prompts import prompt_lengths
from rlvr_jax.runs.config import DataSettings, PolicySettings, TrainConfig
from rlvr_jax.tasks import Prompt, Task

Load = Callable[..., Task]
"""(name, options, columns) -> task, such as `tasks.load_as_written`."""


def load_task(config: TrainConfig, load: Load = tasks.load_as_written) -> Task:
    """Loads the task of a run.

    Messages from the settings come before those of the task.

    With `drop_long_prompts`, prompts of more than `prompt_tokens` tokens are left out of both
    splits, and a warning counts them.

    Raises:
      ValueError: as `tasks.load_as_written`; messages that cannot be read, or a second system
        message.
    """
    data = config.data
    if data.unsafe_local:
        sandbox.allow_unsafe_local()
    task = _behind(_messages(data), load(data.task, data.task_options, data.columns))
    if data.failed_grades == "no_verdict":
        task = replace(task, verify=tasks.no_verdict_on_error(task.verify))
    if not data.drop_long_prompts or not (path := policy_path(config.policy, task)):
        return task
    tokenizer, remaining, counts = load_tokenizer(data, path), {}, []
    for split in ("train", "test"):
        prompts = getattr(task, split)
        lengths = prompt_lengths(tokenizer, prompts)
        own = zip(prompts, lengths, strict=True)
        remaining[split] = tuple(prompt for prompt, length in own if length <= data.prompt_tokens)
        counts.append(f"{len(prompts) - len(remaining[split])} of {len(prompts)} {split} prompts")
    if len(remaining["train"]) + len(remaining["test"]) < len(task.train) + len(task.test):
        warnings.warn(
            f"{data.task}: {' and '.join(counts)} have more than --prompt-tokens"
            f" {data.prompt_tokens} and were left out",
            stacklevel=2,
        )
    return replace(task, **remaining)


def policy_path(settings: PolicySettings, task: Task) -> str:
    """Returns the path of the policy: of the settings, else that of the task; "" without both.

    Raises:
      ValueError: "smollm2", whose package is not installed.
    """
    path = settings.model or task.base_model
    return str(policy.shipped_weights()) if path == policy.SHIPPED else path


def load_tokenizer(data: DataSettings, path: str) -> Any:
    """Returns the tokenizer of a policy folder, with the chat template of the settings.

    Raises:
      ValueError: as `policy.tokenizer` and `policy.templated`.
    """
    with as_typed("--model", "tokenizer: path"):
        loaded = policy.tokenizer(path)
    with as_typed("--chat-template-kwargs", "chat_template_kwargs"):
        return policy.templated(loaded, data.chat_template, **data.template_arguments())


def _messages(data: DataSettings) -> tuple[Mapping[str, str], ...]:
    """Messages before every prompt."""
    first = ({"role": "system", "content": data.system_prompt},) if data.system_prompt else ()
    if not data.few_shot:
        return first
    try:
        turns = json.loads(Path(data.few_shot).expanduser().read_text())
        # `Prompt` refuses values that are not messages.
        return Prompt("", messages=(*first, *turns)).messages
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(
            "--few-shot must be a JSON file with a list of messages, each with role and content,"
            f" got {data.few_shot!r} ({error})"
        ) from None


def _behind(messages: tuple[Mapping[str, str], ...], task: Task) -> Task:
    """The task with messages before those of each of its prompts."""
    if not messages:
        return task

    def prefixed(prompt):
        roles = [message["role"] for message in (*messages, *prompt.messages)]
        if "system" in roles[1:]:
            raise ValueError(
                "--system-prompt and --few-shot must leave one system message, the first, got"
                f" {', '.join(roles)} before {prompt.text[:80]!r}"
            )
        return replace(prompt, messages=(*messages, *prompt.messages))

    return replace(
        task, train=tuple(map(prefixed, task.train)), test=tuple(map(prefixed, task.test))
    )
