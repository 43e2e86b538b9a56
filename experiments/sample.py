"""Samples responses of a policy and colours each token by its entropy.

    python -m rlvr_jax sample --model runs/dapo/policy --task brackets
    python -m rlvr_jax sample --model FOLDER --prompt "What is 3 times 4?" --samples 3
    python -m rlvr_jax sample --model FOLDER      # a conversation; an empty line starts anew

Prompts are written by the chat template of the tokenizer, if it has one. The entropy of a token is
that of the distribution it was sampled from, over the whole vocabulary.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro
from rich.console import Console
from rich.style import Style
from rich.text import Text

from rlvr_jax import policy, tasks
from rlvr_jax.arguments import as_typed
from rlvr_jax.experience.prompts import (
    continued,
    encode_prompts,
    responses,
    stop_tokens,
    token_texts,
)
from rlvr_jax.keys import plain_key
from rlvr_jax.rollout import Prompts, Sampling, sample
from rlvr_jax.runs import TrainConfig, check_config, described, guarded
from rlvr_jax.runs.task import load_tokenizer
from rlvr_jax.tasks import Prompt
from rlvr_jax.types import Rollouts

SCALE = 2.0
"""Nats of the warmest colour."""
COLD, WARM = (70, 110, 190), (220, 60, 40)


@dataclass(frozen=True)
class Config:
    """Policy, prompts and sampling."""

    model: Path
    """Policy folder in Hugging Face's layout, or a .gguf file."""
    prompt: str = ""
    """Prompt; empty: typed prompts, or the first held-out prompts of a task."""
    task: str = ""
    """Task whose held-out prompts are sampled and graded."""
    prompts: int = 4
    """Number of prompts of the task."""
    samples: int = 1
    """Responses per prompt."""
    tokens: int = 256
    """Token budget of a response."""
    stop: tuple[str, ...] = ()
    """Texts of one token each that end a response, as in rlvr_jax train."""
    temperature: float = 1.0
    """Sampling temperature."""
    top_k: int = 0
    """Sample from the k most probable tokens; 1: greedy; 0: off."""
    top_p: float = 1.0
    """Sample from the most probable tokens of this total probability; 1: off."""
    seed: int = 0
    """Seed of the responses."""
    dtype: str = "float32"
    """Type of the weights: float32 or bfloat16."""
    system_prompt: str = ""
    """A system message before every prompt."""
    chat_template: bool = True
    """Use the chat template, as in rlvr_jax train."""
    chat_template_kwargs: tuple[str, ...] = ()
    """Arguments of the chat template, as in rlvr_jax train."""


def main(arguments: Sequence[str]) -> None:
    """Samples, and prints responses in colours."""
    config = tyro.cli(Config, args=list(arguments), description=described(__doc__))
    if config.prompt and config.task:
        raise ValueError(f"--prompt must be empty with --task, got {config.prompt!r}")
    console = Console()
    ask, templated = _asker(config, console)
    if config.task:
        with as_typed("--task", "load: name"):
            task = tasks.load_as_written(config.task)
        for prompt in task.test[: config.prompts]:
            _, answers = ask(prompt)
            whole = [continued(prompt, answer) for answer in answers]
            grades = tasks.grades_of(task, [prompt] * len(whole), whole)
            outcomes = ", ".join(str(grade.outcome) for grade in grades)
            console.print(f"graded {outcomes}", style="dim", highlight=False)
    elif config.prompt:
        ask(Prompt(config.prompt))
    else:
        _talk(ask, console, templated)


Ask = Callable[[Prompt], tuple[Rollouts, list]]


def _asker(config: Config, console: Console) -> tuple[Ask, bool]:
    """A function that draws the answers to a prompt and prints them, and whether a chat template
    writes the prompts."""
    settings = TrainConfig.of(
        model=str(config.model),
        chat_template=config.chat_template,
        chat_template_kwargs=config.chat_template_kwargs,
    )
    check_config(settings)
    tokenizer = load_tokenizer(settings.data, str(config.model))
    sampling = Sampling(config.temperature, config.top_k, config.top_p)
    with as_typed("--model", "load: path"):
        model, params = policy.load(config.model, dtype=config.dtype)
    stops = stop_tokens(tokenizer, model.stop_tokens, config.stop)
    first = ({"role": "system", "content": config.system_prompt},) if config.system_prompt else ()

    def ask(prompt):
        prompt = Prompt(prompt.text, prompt.answer, messages=(*first, *prompt.messages))
        table = encode_prompts(tokenizer, [prompt], 0, "given")
        room = model.config.max_positions - table.tokens.shape[1]
        if room < 1:
            raise ValueError(
                f"prompt must be shorter than the {model.config.max_positions} positions of this"
                f" model, got {table.tokens.shape[1]} tokens"
            )
        sampled = sample(
            model,
            params,
            Prompts(table.tokens, table.length, [0], [0]),
            plain_key(config.seed),
            samples=config.samples,
            response_tokens=min(config.tokens, room),
            sampling=sampling,
            stop_tokens=stops,
        )
        for name in ("tokens", "length", "entropy", "truncated", "prompt_tokens", "prompt_length"):
            object.__setattr__(sampled, name, np.asarray(getattr(sampled, name)))
        console.print(Text(prompt.text, style="bold"))
        for row in range(config.samples):
            console.print(_coloured(tokenizer, sampled, row))
        return sampled, responses(tokenizer, sampled)

    return ask, bool(tokenizer.chat_template)


def _talk(ask: Ask, console: Console, remembered: bool) -> None:
    """Asks what is typed until the input ends.

    Args:
      remembered: with the messages before it, for which a chat template is needed.
    """
    note = "each line is a separate prompt, as the tokenizer has no chat template"
    if remembered:
        note = "each line continues the conversation; an empty line starts a new one"
    console.print(f"{note}; Ctrl-D ends", style="dim", highlight=False)
    messages: list[dict[str, str]] = []
    while True:
        try:
            text = console.input("[bold]> [/]")
        except (EOFError, KeyboardInterrupt):
            return
        if not text.strip():
            messages = []
            continue
        try:
            _, (answer, *_) = ask(Prompt(text, messages=messages))
        except ValueError as error:
            console.print(Text(f"error: {error}", style="red"))
            messages = []
            continue
        if remembered:
            messages += [
                {"role": "user", "content": text},
                {"role": "assistant", "content": answer.text},
            ]


def _coloured(tokenizer, sampled: Rollouts, row: int) -> Text:
    """An answer whose tokens have the colour of their entropy, and its mean."""
    length = int(sampled.length[row])
    entropy = sampled.entropy[row, :length]
    text = Text()
    for piece, nats in zip(
        token_texts(tokenizer, sampled.tokens[row, :length].tolist()), entropy, strict=True
    ):
        text.append(piece, Style(color=_colour(float(nats))))
    cut = ", cut" if sampled.truncated[row] else ""
    nats = float(entropy.mean()) if length else 0.0
    summary = f"{length} token{'s' * (length != 1)}{cut}, entropy {nats:.3f} nats"
    return text.append(f"  [{summary}]", "dim")


def _colour(nats: float) -> str:
    fraction = min(max(nats, 0.0) / SCALE, 1.0)
    mixed = (round(cold + fraction * (warm - cold)) for cold, warm in zip(COLD, WARM, strict=True))
    return "#{:02x}{:02x}{:02x}".format(*mixed)


if __name__ == "__main__":
    guarded(main)
