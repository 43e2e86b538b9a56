"""Stores critiques of candidate solutions, which a model writes, as a task to learn from.

    python -m rlvr_jax critiques --task arithmetic:hard --model FOLDER --out critiques.jsonl
    python -m rlvr_jax train --method critique_ft --task critiques:critiques.jsonl \\
        --model FOLDER --samples-per-prompt 1 --run-dir runs/critiques

A policy samples candidates for a few train prompts, and each critic writes a critique of every
different one. A critic is named as `--judge` of rlvr_jax train: the policy itself, another
folder, a server, or a function. Critiques are stored whose conclusion ("Conclusion: right [END]" or
"wrong") agrees with the verifier. The program prints the numbers of the others: unreadable ones,
those that disagree, and failed requests.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from rlvr_jax.experience import RunActor, SampleRequest
from rlvr_jax.experience.stages.grading.judge import writing
from rlvr_jax.judges import Question, Spending
from rlvr_jax.keys import plain_key
from rlvr_jax.runs import check_config, described, guarded, preset
from rlvr_jax.runs.judging.named import judge_of
from rlvr_jax.runs.loading import load_policy
from rlvr_jax.runs.resolved import with_task
from rlvr_jax.runs.task import load_task
from rlvr_jax.tasks.derived.critiques import conclusion, keep_critiques, request_of
from rlvr_jax.tasks.synthesis.lines import write_lines
from rlvr_jax.training.layout import make_reshard

TOKENS = 256
"""Largest number of tokens of a critique by the policy."""


@dataclass(frozen=True)
class Config:
    """Policy, problems and critics."""

    model: Path
    """Policy folder of the candidates."""
    out: Path
    """Output file of JSON lines; an existing file is replaced."""
    task: str = "arithmetic:hard"
    """Task, as in rlvr_jax train."""
    task_options: tuple[str, ...] = ()
    """Options of the task, as in rlvr_jax train."""
    problems: tuple[int, ...] = (0,)
    """Positions of the problems among the train prompts."""
    candidates: int = 100
    """Sampled candidates of each problem."""
    critics: tuple[str, ...] = ("policy",)
    """Models of the critiques, each as --judge of rlvr_jax train."""
    critic_options: tuple[str, ...] = ()
    """Options of the critics, as --judge-options of rlvr_jax train."""
    temperature: float = 1.0
    """Sampling temperature of the candidates."""
    response_tokens: int = 0
    """Budget of a candidate; 0: that of rlvr_jax train for the task."""
    seed: int = 0
    """Seed of candidates and critiques."""


def main(arguments: Sequence[str]) -> None:
    """Samples, criticizes, writes; prints the content of the file."""
    config = tyro.cli(Config, args=list(arguments), description=described(__doc__))
    if config.candidates < 1:
        raise ValueError(f"--candidates must be at least 1, got {config.candidates}")
    start = preset(config.task, "grpo")
    settings = start.replace(
        model=str(config.model),
        task_options=config.task_options,
        seed=config.seed,
        temperature=config.temperature,
        response_tokens=config.response_tokens or start.sampling.response_tokens,
        prompts_per_step=len(config.problems),
        samples_per_prompt=config.candidates,
        minibatches=1,
        micro_batches=0,
    )
    check_config(settings)
    task = load_task(settings)
    beyond = [number for number in config.problems if not 0 <= number < len(task.train)]
    if beyond or not config.problems:
        raise ValueError(
            f"--problems must be positions among the {len(task.train)} train prompts of"
            f" {config.task!r}, got {beyond or 'none'}"
        )
    settings = with_task(settings, task)
    loaded = load_policy(settings, task, settings.policy.model)
    params = make_reshard(loaded.model, loaded.sampler.model)(loaded.params)
    actor = RunActor(loaded.sampler, params, loaded.tables, 0, None)
    requests = [SampleRequest(task.train[n], n, config.candidates) for n in config.problems]
    batch = actor.grade(actor.draw(requests, plain_key(config.seed)))
    # Each text once; a candidate without a grade has no conclusion to agree with.
    found = {
        (request.prompt.text, response.text): float(grade.outcome == 1)
        for request, response, grade in zip(
            batch.requests, batch.responses, batch.grades, strict=True
        )
        if grade.outcome is not None and response.text.strip()
    }
    rows, counts = [], Counter[str]()
    for critic in config.critics:
        texts = _critiques(critic, config, settings, actor, list(found))
        whole = [text or "" for text in texts]
        agrees = keep_critiques(whole, list(found.values()))
        for (pair, outcome), text, there in zip(found.items(), texts, agrees, strict=True):
            counts[_kind(text, there)] += 1
            if there:
                own = {"problem": pair[0], "candidate": pair[1], "outcome": outcome}
                rows.append({"task": config.task, **own, "critique": text, "critic": critic})
    right = int(sum(found.values()))
    told = ", ".join(f"{counts[kind]} {kind}" for kind in ("unreadable", "disagree", "failed"))
    if not rows:
        raise ValueError(
            f"no critique of {len(found)} candidates ({right} correct) agrees with the verifier"
            f" ({told}). Use other --critics, or a larger tokens= of --critic-options"
        )
    write_lines(config.out, rows)
    print(
        f"{config.out}: {len(rows)} critiques of {len(found)} candidates ({right} correct) to"
        f" {len(requests)} problems; left out: {told}"
    )


def _kind(text: str | None, agrees: bool) -> str:
    """The result of a critique."""
    if text is None:
        return "failed"
    if agrees:
        return "agree"
    return "unreadable" if conclusion(text) is None else "disagree"


def _critiques(critic, config, settings, actor, pairs) -> list[str | None]:
    """A critic's text about each candidate; None where the request failed."""
    judge, sampling = judge_of(
        settings.replace(judge=critic, judge_options=config.critic_options), None
    )
    own = {"tokens": TOKENS, **sampling}
    call = judge.call or writing(actor, str(config.model), plain_key(config.seed + 1), own)
    questions = [Question(({"role": "user", "content": request_of(*pair)},)) for pair in pairs]
    return [reply.text for reply in call.query(questions, Spending())]


if __name__ == "__main__":
    guarded(main)
