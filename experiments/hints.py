"""Stores hints that a policy writes to the prompts of a task, as a task with hints.

    python -m rlvr_jax hints --task arithmetic:hard --model FOLDER --out hints.jsonl
    python -m rlvr_jax train --method nurl --task hints:hints.jsonl --model FOLDER \\
        --run-dir runs/nurl

The policy explains the answer of each train prompt, which it is shown. It then writes a hint from
prompt, answer and explanation. A hint that contains the answer, or that its budget truncates, is
requested again; after the last try the prompt is left out. The program prints the numbers of such
prompts. The policy must read words.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jax
import tyro

from rlvr_jax.experience import RunActor
from rlvr_jax.keys import plain_key
from rlvr_jax.runs import check_config, described, guarded, preset
from rlvr_jax.runs.loading import load_policy
from rlvr_jax.runs.resolved import with_task
from rlvr_jax.runs.task import load_task
from rlvr_jax.tasks import Prompt
from rlvr_jax.tasks.derived.hints import answer_texts, gives_away
from rlvr_jax.tasks.derived.written_hints import explanation_request, hint_request
from rlvr_jax.tasks.synthesis.lines import write_lines
from rlvr_jax.training.layout import make_reshard


@dataclass(frozen=True)
class Config:
    """Policy, prompts and sampling of the hints."""

    model: Path
    """Policy folder; the initial policy of the later run."""
    out: Path
    """Output file of JSON lines; an existing file is replaced."""
    task: str = "arithmetic:hard"
    """Task, as in rlvr_jax train."""
    task_options: tuple[str, ...] = ()
    """Options of the task, as in rlvr_jax train."""
    prompts: int = 0
    """Number of train prompts, from the first on; 0: all."""
    tries: int = 2
    """Highest number of hints that are requested for a prompt."""
    tokens: int = 96
    """Largest number of tokens of an explanation or a hint."""
    temperature: float = 1.0
    """Sampling temperature."""
    seed: int = 0
    """Seed of explanations and hints."""


def main(arguments: Sequence[str]) -> None:
    """Explains, writes hints, filters them; prints the content of the file."""
    config = tyro.cli(Config, args=list(arguments), description=described(__doc__))
    for name, least in (("prompts", 0), ("tries", 1), ("tokens", 1)):
        if getattr(config, name) < least:
            raise ValueError(f"--{name} must be at least {least}, got {getattr(config, name)}")
    settings = preset(config.task, "grpo").replace(
        model=str(config.model),
        task_options=config.task_options,
        seed=config.seed,
        temperature=config.temperature,
        minibatches=1,
        micro_batches=0,
    )
    check_config(settings)
    task = load_task(settings)
    settings = with_task(settings, task)
    loaded = load_policy(settings, task, settings.policy.model)
    params = make_reshard(loaded.model, loaded.sampler.model)(loaded.params)
    actor = RunActor(loaded.sampler, params, loaded.tables, 0, None)
    asked = list(task.train)[: config.prompts or None]
    known = [prompt for prompt in asked if answer_texts(prompt)]
    counts = Counter({"without an answer as text": len(asked) - len(known)})
    hints: dict[str, str] = {}
    for attempt in range(config.tries):
        # The reason for which a prompt has no hint is that of its last try.
        left = [prompt for prompt in known if prompt.text not in hints]
        last = Counter[str]()
        for prompt, (text, tokens) in zip(left, _hints(actor, left, config, attempt), strict=True):
            reason = _fault(prompt, text, tokens, config.tokens)
            last[reason] += 1
            if not reason:
                hints[prompt.text] = text
    counts.update({reason: number for reason, number in last.items() if reason})
    told = ", ".join(f"{number} {reason}" for reason, number in counts.items()) or "none"
    if not hints:
        raise ValueError(
            f"no hint to {len(asked)} prompts of {config.task!r} can be used ({told}). Use a policy"
            " that reads words, or a larger --tokens"
        )
    rows = [
        {"task": config.task, "prompt": prompt.text, "hint": hints[prompt.text]}
        for prompt in known
        if prompt.text in hints
    ]
    write_lines(config.out, rows)
    print(f"{config.out}: hints to {len(rows)} of {len(asked)} prompts; left out: {told}")


def _hints(actor, prompts: list[Prompt], config: Config, attempt: int) -> list[tuple[str, int]]:
    """A hint to each prompt and its number of tokens; an empty one where no position is left."""
    pairs = [(prompt.text, answer_texts(prompt)[0]) for prompt in prompts]
    explained = _written(actor, [explanation_request(*pair) for pair in pairs], config, attempt, 0)
    requests = [hint_request(*pair, text) for pair, (text, _) in zip(pairs, explained, strict=True)]
    return _written(actor, requests, config, attempt, 1)


def _written(actor, texts, config: Config, attempt: int, part: int) -> list[tuple[str, int]]:
    if not texts:
        return []
    chats = [({"role": "user", "content": text},) for text in texts]
    key = jax.random.fold_in(plain_key(config.seed), part)
    replies = actor.write(chats, key, [attempt] * len(chats), {"tokens": config.tokens})
    return [("", 0) if one is None else (one.text.strip(), one.tokens) for one in replies]


def _fault(prompt: Prompt, text: str, tokens: int, budget: int) -> str:
    """The reason for which a hint cannot be used; "" without one."""
    if not text:
        return "empty"
    if tokens >= budget:
        return "truncated"
    return "with the answer" if gives_away(text, prompt) else ""


if __name__ == "__main__":
    guarded(main)
