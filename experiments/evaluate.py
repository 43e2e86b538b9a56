r"""Held-out pass rates of a policy folder, and of choosing one of several responses.

    python -m rlvr_jax evaluate --model runs/dapo/policy --task brackets
    python -m rlvr_jax evaluate --model runs/rl_v/policy --task arithmetic \
        --choose majority weighted best_of_n --scorer verdict

The rules of --choose do not use the verifier. Their curves are over n = 1, 2, 4, … responses, next
to pass@n, which no rule can exceed except by chance.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import tyro

from rlvr_jax.analysis import pass_at_k
from rlvr_jax.analysis.prompt_bootstrap import bootstrap_mean, estimates
from rlvr_jax.diagnosis.held_out import HeldOut, evaluation_settings, load_held_out
from rlvr_jax.experience.choosing import (
    RULES,
    Answered,
    Recorder,
    Score,
    by_implicit_reward,
    by_judge,
    by_likelihood,
    by_verdict,
    chosen_rates,
    sizes_up_to,
)
from rlvr_jax.experience.evaluation import (
    Evaluation,
    answered,
    evaluate,
    ks_for,
)
from rlvr_jax.keys import plain_key
from rlvr_jax.methods.judges.rl_v import QUESTION
from rlvr_jax.methods.judges.v1_pairwise import by_ratings
from rlvr_jax.rollout import named_key
from rlvr_jax.runs import TrainConfig, described, guarded
from rlvr_jax.runs.config import flag
from rlvr_jax.runs.judging import check_asked, scoring_judge
from rlvr_jax.runs.loading import load_policy
from rlvr_jax.runs.resolved import with_task

SCORERS = ("logp", "verdict", "ratings", "judge", "implicit_prm")


@dataclass(frozen=True)
class Config:
    """Policy, prompts and samples of an evaluation."""

    model: Path
    """Policy folder in Hugging Face's layout."""
    task: str = "brackets"
    """Task, as in rlvr_jax train."""
    task_options: tuple[str, ...] = ()
    """Options of the task, as in rlvr_jax train."""
    columns: tuple[str, ...] = ()
    """Columns of the task's files, as in rlvr_jax train."""
    chat_template: bool = True
    """Use the chat template, as in rlvr_jax train."""
    chat_template_kwargs: tuple[str, ...] = ()
    """Arguments of the chat template."""
    system_prompt: str = ""
    """A system message before every prompt."""
    few_shot: str = ""
    """JSON file of messages before every prompt."""
    prompts: int = 256
    """Held-out prompts; the same ones for every seed."""
    samples: int = 64
    """Rollouts per prompt; pass@k is estimated for k up to half of them."""
    temperature: float = 1.0
    """Sampling temperature; 1e-6 is greedy."""
    response_tokens: int = 0
    """Budget of a response; 0: that of rlvr_jax train for the task."""
    stop: tuple[str, ...] = ()
    """Stop texts, as in rlvr_jax train."""
    failed_grades: str = "raise"
    """Effect of a verifier that raises, as in rlvr_jax train."""
    unsafe_local: bool = False
    """Run generated code without a sandbox, as in rlvr_jax train."""
    seed: int = 0
    """Seed of the rollouts."""
    choose: tuple[str, ...] = ()
    """Rules that choose one of n responses: majority, weighted, best_of_n, lower_bound."""
    scorer: str = "logp"
    """Score of a response for these rules: logp, its likelihood; verdict, the policy's yes or
    no; judge; implicit_prm, the log-ratio of two policies. Or ratings: the policy rates pairs of
    responses in a tournament."""
    strength: float = 0.1
    """Strength of the rule lower_bound: penalty for answers with few responses."""
    question: str = QUESTION
    """Text after a response that requests a verdict."""
    yes: str = " Yes"
    """Positive verdict: one token."""
    no: str = " No"
    """Negative verdict: one token."""
    reward_model: str = ""
    """Policy folder of the scorer implicit_prm."""
    reference: str = ""
    """Policy folder in the denominator of its log-ratio; empty: the evaluated policy."""
    scale: float = 0.05
    """Scale of its log-ratio."""
    judge: str = ""
    """Judge of the scorer judge, as in rlvr_jax train with its settings below."""
    judge_rubric: str = ""
    """Criteria of the judge."""
    judge_prompt: str = ""
    """Prompt of the judge."""
    judge_options: tuple[str, ...] = ()
    """Options of the calls of the judge."""
    judge_budget: tuple[str, ...] = ()
    """Budget of the judge."""
    judge_replies: Path | None = None
    """File of the judge's replies, so that no call is repeated."""
    mesh: str = ""
    """Devices, as in rlvr_jax train; empty: one, and on a CPU one per core for many rollouts."""


def main(arguments: Sequence[str]) -> None:
    """Prints one number per line, with intervals over prompts for pass@k and for the rules."""
    config = tyro.cli(Config, args=list(arguments), description=described(__doc__))
    for name in ("prompts", "samples"):
        if getattr(config, name) < 1:
            raise ValueError(f"--{name} must be at least 1, got {getattr(config, name)}")
    _check_choice(config)
    settings = evaluation_settings(
        config.task,
        config.response_tokens,
        model=str(config.model),
        task_options=config.task_options,
        columns=config.columns,
        chat_template=config.chat_template,
        chat_template_kwargs=config.chat_template_kwargs,
        system_prompt=config.system_prompt,
        few_shot=config.few_shot,
        stop=config.stop,
        failed_grades=config.failed_grades,
        unsafe_local=config.unsafe_local,
        seed=config.seed,
        temperature=config.temperature,
        evaluation_prompts=config.prompts,
        evaluation_samples=config.samples,
        mesh=config.mesh,
        judge=config.judge,
        judge_rubric=config.judge_rubric,
        judge_prompt=config.judge_prompt,
        judge_options=config.judge_options,
        judge_budget=config.judge_budget,
    )
    asked = load_held_out(settings)
    loaded, sampler, params, indices = asked.loaded, asked.sampler, asked.params, asked.indices
    recorder = None
    if config.choose:
        score = _scorer(config, settings, asked)
        plain = partial(answered, sampler, params, loaded.test_table)
        recorder = Recorder(plain, score)
    result = evaluate(
        sampler,
        params,
        loaded.test_table,
        indices,
        config.samples,
        plain_key(config.seed),
        answer=recorder,
    )
    print(
        f"{len(indices)} prompts x {result.n} samples of at most {sampler.response_tokens} tokens,"
        f" temperature {config.temperature:g}"
    )
    for name, value in result.metrics.items():
        print(f"{name:<40} {value:.4f}" if isinstance(value, float) else f"{name:<40} {value}")
    for k in ks_for(result.n):
        interval = bootstrap_mean(estimates([result.counts()], k), result.weights)
        print(f"{f'held_out/pass@{k} over prompts':<40} {interval}")
    if recorder is not None:
        _print_choices(config, recorder.answered(), result)


def _check_choice(config: Config) -> None:
    """Refuses unknown rules and scorers.

    Raises:
      ValueError: names the option.
    """
    for name in config.choose:
        if name not in RULES:
            raise ValueError(f"--choose must be among {', '.join(RULES)}, got {name!r}")
    if config.scorer not in SCORERS:
        raise ValueError(f"--scorer must be among {', '.join(SCORERS)}, got {config.scorer!r}")
    for option, scorer in (("judge", "judge"), ("reward_model", "implicit_prm")):
        if config.choose and config.scorer == scorer and not getattr(config, option):
            raise ValueError(f"{flag(option)} must be given for --scorer {scorer}, got ''")


def _scorer(config: Config, settings: TrainConfig, asked: HeldOut) -> Score:
    """The scorer of the responses."""
    loaded, sampler = asked.loaded, asked.sampler
    if not loaded.sampler.task.answers and {*config.choose} - {"best_of_n"}:
        raise ValueError(
            f"--choose must be best_of_n for task {config.task!r}, whose grades name no answers,"
            f" got {' '.join(config.choose)}"
        )
    actor = asked.actor()
    if config.scorer == "judge":
        check_asked(settings, loaded)
        judge, sampling = scoring_judge(settings, config.judge_replies)
        return by_judge(judge, actor, named_key(config.seed, "judge", 0), sampling)
    own = loaded.model, loaded.params
    if config.scorer == "verdict":
        return by_verdict(actor, *own, config.question, (config.yes, config.no))
    if config.scorer == "ratings":
        return by_ratings(actor, named_key(config.seed, "ratings", 0))
    if config.scorer == "implicit_prm":
        settings = with_task(settings, sampler.task)
        reward = load_policy(settings, sampler.task, config.reward_model)
        reference = own
        if config.reference:
            other = load_policy(settings, sampler.task, config.reference)
            reference = other.model, other.params
        return by_implicit_reward((reward.model, reward.params), reference, config.scale)
    return by_likelihood


def _print_choices(config: Config, found: Answered, result: Evaluation) -> None:
    """Prints a line for each rule and number of responses."""
    rules = list(dict.fromkeys(["majority"] * _votes(found) + list(config.choose)))
    print(f"chosen by {config.scorer}: {found.tokens:.0f} tokens, {found.unscored} without a score")
    curves = chosen_rates(found, rules, config.strength)
    for n in sizes_up_to(found.correct.shape[1]):
        pass_rates = pass_at_k(
            np.full(len(found.correct), found.correct.shape[1]), found.correct.sum(axis=1), n
        )
        rows = {"pass": pass_rates} | {name: curve[n] for name, curve in curves.items()}
        for name, values in rows.items():
            interval = bootstrap_mean(values[None], result.weights)
            print(f"{f'choice/{name}@{n}':<40} {interval}")


def _votes(found: Answered) -> bool:
    """Whether any answer was named, so that votes can be counted."""
    return bool((found.answer >= 0).any())


if __name__ == "__main__":
    guarded(main)
