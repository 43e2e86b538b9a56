"""Choosing one of N responses at test time, by scores other than the verifier's.

`Recorder` stores the responses of an evaluation with their scores. `chosen_rates` computes how
often the chosen response is correct, by rule and number of responses.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from rlvr_jax import policy
from rlvr_jax.arguments import check_each
from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.evaluation import Answer
from rlvr_jax.experience.parts import Actor
from rlvr_jax.experience.rewards.choice import choose, lower_bound, own_score, vote_count, vote_sum
from rlvr_jax.experience.stages.grading.judge import JudgingPolicy, asked_about
from rlvr_jax.experience.stages.grading.verdicts import asked_rows
from rlvr_jax.judges import Judge
from rlvr_jax.policy import Model, Params, products
from rlvr_jax.policy.scoring import run_in_chunks
from rlvr_jax.training.statistics import verdicts
from rlvr_jax.types import Rollouts, is_correct
from rlvr_jax.types.hyperparameters import Positive

Score = Callable[[Batch], tuple[np.ndarray, float]]
"""(responses) -> a score of each in [0, 1], NaN without one; and the number of scored tokens."""

MOST_ROWS = 8192
"""Responses that a rule reads at once: cluster ids are products of their numbers."""

RULES: dict[str, Callable[..., Any]] = {
    "majority": vote_count,
    "weighted": vote_sum,
    "best_of_n": own_score,
    "lower_bound": lower_bound,
}
"""Rules by which one of N responses is chosen; all except `best_of_n` compare final answers."""


class Answered(NamedTuple):
    """Responses to P prompts.

    Fields:
      correct: bool [P, N], whether the task's verifier calls them correct.
      answer: int [P, N], class of the final answer among those of its prompt; negative: none.
      score: [P, N], 0 without a score.
      unscored: number of responses without a score.
      tokens: number of tokens that scoring used.
    """

    correct: np.ndarray
    answer: np.ndarray
    score: np.ndarray
    unscored: int
    tokens: float


class Recorder:
    """Scores each response of an evaluation once, call by call.

    Args:
      answer: computes the responses of a call.
      score: scores responses.
    """

    def __init__(self, answer: Answer, score: Score):
        self._answer, self._score = answer, score
        self._known: dict[int, dict[int, list[tuple[bool, str | None, float]]]] = {}
        self.tokens: float = 0.0

    def __call__(self, indices: np.ndarray, key: jax.Array, first_sample: np.ndarray) -> Batch:
        """The responses of a call; prompts that pad the call are recorded only once."""
        batch = self._answer(indices, key, first_sample)
        new, places = [], []
        for rows, index, first in zip(batch.groups, indices, first_sample, strict=True):
            own = self._known.setdefault(int(index), {})
            if int(first) not in own:
                own[int(first)] = []
                new.append(rows)
                places += [own[int(first)]] * len(rows)
        if new:
            taken = batch.take(np.concatenate(new))
            scores, tokens = self._score(taken)
            self.tokens += tokens
            for place, grade, score in zip(places, taken.grades, scores.tolist(), strict=True):
                place.append((is_correct(grade.outcome or 0.0), grade.answer, score))
        return batch

    def answered(self) -> Answered:
        """All recorded responses, in the order of the prompts' numbers."""
        table = [
            [record for first in sorted(own) for record in own[first]]
            for _, own in sorted(self._known.items())
        ]
        correct, texts, score = (
            np.array([[record[part] for record in row] for row in table], kind)
            for part, kind in enumerate((bool, object, float))
        )
        answer = np.full(correct.shape, -1, np.int32)
        for row, own in enumerate(texts):
            known: dict[str, int] = {}
            for place, text in enumerate(own):
                if text is not None:
                    answer[row, place] = known.setdefault(text, len(known))
        there = ~np.isnan(score)
        return Answered(
            correct, answer, np.where(there, score, 0), int((~there).sum()), self.tokens
        )


def sizes_up_to(samples: int) -> list[int]:
    """1, 2, 4, … up to the number of responses."""
    return [2**power for power in range(samples.bit_length()) if 2**power <= samples]


def chosen_rates(
    answered: Answered, rules: Sequence[str], strength: float = 0.1
) -> dict[str, dict[int, np.ndarray]]:
    """Fraction of sets of n responses whose chosen response is correct, [P], by rule and n.

    The responses to a prompt are split into as many sets of n as possible. For rules that compare
    answers, a set without a final answer is incorrect.

    Args:
      rules: names in `RULES`.
      strength: α of the lower bound.
    Raises:
      ValueError: an unknown rule.
    """
    prompts, samples = answered.correct.shape
    found: dict[str, dict[int, np.ndarray]] = {}
    for name in rules:
        if name not in RULES:
            raise ValueError(f"--choose must be among {', '.join(RULES)}, got {name!r}")
        rule = lower_bound(strength) if name == "lower_bound" else RULES[name]
        parsed = name != "best_of_n"
        found[name] = {
            n: np.concatenate(
                [
                    _rates(Answered(*(x[part] for x in answered[:3]), 0, 0.0), n, rule, parsed)
                    for part in np.array_split(
                        np.arange(prompts), -(-prompts * samples // MOST_ROWS)
                    )
                ]
            )
            for n in sizes_up_to(samples)
        }
    return found


def _rates(answered: Answered, n: int, rule, parsed: bool) -> np.ndarray:
    prompts, samples = answered.correct.shape
    sets = samples // n
    correct, answer, score = (x[:, : sets * n].reshape(-1) for x in answered[:3])
    group = np.repeat(np.arange(prompts * sets, dtype=np.int32), n)
    number = np.arange(len(group), dtype=np.int32)
    there = answer >= 0 if parsed else None
    chosen = choose(score.astype(np.float32), answer, group, number, rule, there)
    hits = np.bincount(group, correct & np.asarray(chosen), prompts * sets)
    return hits.reshape(prompts, sets).mean(axis=1)


def by_likelihood(batch: Batch) -> tuple[np.ndarray, float]:
    """The geometric mean of the probabilities with which a response's tokens were sampled."""
    rollouts = batch.rollouts
    count = np.maximum(rollouts.mask.sum(axis=1), 1)
    return np.exp(np.where(rollouts.mask, rollouts.behaviour_logp, 0).sum(axis=1) / count), 0.0


def by_judge(asked: Judge, actor: Actor, key: jax.Array, sampling: Mapping[str, Any]) -> Score:
    """The mean of a judge's numbers; NaN without any number.

    Args:
      asked: the judge; without a `call` it is the policy of `actor`.
      actor: the policy and its tokenizer.
      key, sampling: random key and sampler settings of its replies.
    """

    def score(batch):
        everything = np.arange(len(batch))
        judged = asked_about(asked, batch, everything, JudgingPolicy(actor, 0, key, sampling))
        there = ~np.isnan(judged.numbers)
        total = np.where(there, judged.numbers, 0).sum(axis=1)
        mean = total / np.maximum(there.sum(axis=1), 1)
        return np.where(there.any(axis=1), mean, np.nan), judged.metrics["judge_tokens"]

    return score


def by_verdict(
    actor: Actor, model: Model, params: Params, question: str, answers: Sequence[str]
) -> Score:
    """p(yes) / (p(yes) + p(no)) of a policy after each response; 0 for truncated ones.

    Args:
      actor: an actor with the tokens of the policy.
      model, params: the policy.
      question: text after a response.
      answers: "yes" and "no", texts of one token each.
    Source: RL^V, https://arxiv.org/abs/2505.04842.
    """
    verdict_logp = _program(verdicts, model)

    def score(batch):
        rows = asked_rows(batch, actor, answers, question).rollouts
        logp = run_in_chunks(lambda part: verdict_logp(params, part), rows).astype(float)
        odds = 1 / (1 + np.exp(logp[:, 1] - logp[:, 0]))
        tokens = _context_tokens(rows) + float(rows.records["asked_length"].sum())
        return np.where(rows.truncated, 0, odds), tokens

    return score


def by_implicit_reward(
    reward: tuple[Model, Params], reference: tuple[Model, Params], scale: float
) -> Score:
    """σ(β Σ log π / π_ref) of a reward model that is a policy, and its reference.

    Args:
      reward, reference: models that read the tokens of the responses.
      scale: factor of the log-ratio, above 0 (β).
    Raises:
      ValueError: the scale is not positive.
    Source: https://github.com/PRIME-RL/ImplicitPRM.
    """
    check_each(Positive, "by_implicit_reward", scale=scale)
    programs = [(_program(_logp, model), params) for model, params in (reward, reference)]

    def score(batch):
        own, other = (
            run_in_chunks(
                lambda part, run=run, params=params: run(params, part), batch.rollouts
            ).astype(float)
            for run, params in programs
        )
        total = np.where(batch.rollouts.mask, own - other, 0).sum(axis=1)
        return 1 / (1 + np.exp(-scale * total)), 2 * _context_tokens(batch.rollouts)

    return score


def _program(function: Callable[..., jax.Array], model: Model) -> Callable[..., jax.Array]:
    """The function of (model, weights, rollouts), compiled for the model."""
    options = products.compiler_options(model.config.compute_dtype)
    return jax.jit(partial(function, model), compiler_options=options)


def _logp(model, params, rollouts):
    return policy.score(model, params, rollouts).logp


def _context_tokens(rollouts: Rollouts) -> float:
    return float(rollouts.prompt_length.sum() + rollouts.length.sum())
