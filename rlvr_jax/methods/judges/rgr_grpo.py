"""RGR-GRPO: rubrics reward answers, and tell the policy what its best one lacks.

"Reward and Guidance through Rubrics", https://arxiv.org/abs/2511.12344

    R    = Σ w_k s_k / Σ w_k of the criteria, met or not;  r = 1 if all factual ones are met, else R
    the last of N responses revises the best of the others, told the criteria that this one fails
    A_i  = (r_i - mean) / (std + 1e-6) over all N, std with n - 1
    loss = -1/N [Σ_own (1/n_i) Σ_t ρ A + (1/n) Σ_t f A of the revised one],  f = π / (π_old + γ)

No clip and no KL. The revised response is learned from under the plain prompt, under which π_old is
scored, too. f is printed so in readers' notes; `shape` may be LUFFY's `shaped_probability`, which
saturates. γ, the criteria's weights and the average over tokens are ours, so this is a
reconstruction. The criteria are the first rewards of the task. A prompt must have room for the
answer that it shows (`prompt_tokens`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from rlvr_jax.experience import experience, shape
from rlvr_jax.experience.grades import with_grades
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.donors.traces import own_rows
from rlvr_jax.experience.views import showing
from rlvr_jax.objectives import (
    by_origin,
    by_rubric,
    group_normalized,
    importance_weighted,
    objective,
    rollout_mean_token_mean,
)
from rlvr_jax.objectives.algebra.parts import Surrogate
from rlvr_jax.objectives.choice import first_of_largest
from rlvr_jax.objectives.rewards.parts import Shaping
from rlvr_jax.objectives.rewards.rubric_reward import criteria_of_kind
from rlvr_jax.objectives.rewards.rubrics import Criterion, Rows, Scores, scored, weighted_share
from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import Epsilon, Positive, Unit
from rlvr_jax.types.parts import Function, part

Revise = Callable[[Task, Prompt, str, Sequence[str]], str]
"""(task, prompt, answer, what it lacks, in words) -> what the policy is shown."""


def unmet(points: np.ndarray, rubric: Sequence[Criterion], least: float) -> np.ndarray:
    """Which criteria each answer does not meet, bool [B, K]; one without a score is not met."""
    return ~(np.asarray(scored(points, rubric)) >= least)


def ask_to_revise(task: Task, prompt: Prompt, answer: str, lacking: Sequence[str]) -> str:
    """The prompt with the answer, as the task shows one, and behind it what it lacks; in words,
    where the task has no way of its own."""
    if task.show_answer is not None:
        return "\n".join([task.show_answer(prompt, answer), *lacking])
    listed = "\n".join(lacking)
    return f"{prompt.text}\n\nAnswer:\n{answer}\n\nRevise it so that these are met:\n{listed}"


@part(by_row=True)
def refine(
    rubric: Sequence[Criterion],
    reward: Shaping,
    first: int = 0,
    least: float = 0.5,
    revise: Revise = ask_to_revise,
) -> Stage:
    """Draws the last answer of a group from its best one and the criteria that this one lacks.

    So one fewer is drawn first. Where the best answer lacks nothing, and where no answer has a
    verdict, the last one is drawn from the prompt alone. A revised answer is learned from under the
    prompt alone, as of another policy: `off_policy`.

    What an answer lacks is said by the text of the criterion, or by the name that the task's reward
    has.

    Args:
      rubric: criteria, columns of the task's rewards.
      reward: by which an answer is best; of equal ones the first.
      first: column of the first criterion.
      least: score from which on a criterion is met.
      revise: what the policy is shown.
    Reads: outcome, component_rewards, texts. Writes: off_policy, origin.
    Metrics: refined_share (of the groups), refined_gain (by how much revised answers are better
      than what they revise).
    Raises:
      ValueError: groups of one; when a run begins, a task with fewer rewards than criteria.
    """
    last = first + len(rubric)

    def size(samples):
        if samples < 2:
            raise ValueError(f"refine: groups must have at least 2 rollouts, got {samples}")
        return samples - 1

    def init(setting):
        if len(setting.task.rewards) < last:
            raise ValueError(
                f"refine: task must give {last} rewards (Task.rewards), got"
                f" {len(setting.task.rewards)} of {setting.task.name!r}"
            )
        return ()

    def graded(batch, task):
        lacking = {"component_rewards"} if batch.rollouts.component_rewards is None else set()
        known = with_grades(batch, task, lacking).rollouts
        return known, np.where(batch.decided, np.asarray(reward(known)), -np.inf)

    def apply(batch, actor, state, turn):
        task = turn.setting.task
        known, earned = graded(batch, task)
        earned = np.where(np.isnan(earned), -np.inf, earned)
        best = first_of_largest(np.maximum(earned, -1e30), batch.rollouts.group, known.rollout_id)
        rows = np.flatnonzero(best)
        open_ = unmet(known.component_rewards[:, first:last], rubric, least)[rows]
        wanted = open_.any(axis=1) & np.isfinite(earned[rows])
        texts = batch.take(rows).responses
        said = _said(rubric, task.rewards[first:last])
        asks = []
        for place, row in enumerate(rows.tolist()):
            ask = replace(batch.asks[row], samples=1, first_sample=turn.setting.samples - 1)
            if wanted[place]:
                lacking = [name for name, out in zip(said, open_[place], strict=True) if out]
                shown = revise(task, ask.prompt, texts[place].text, lacking)
                ask = replace(ask, view=showing(shown))
            asks.append(ask)
        drawn = actor.grade(actor.draw(asks, turn.key))
        _, gained = graded(drawn, task)
        plain = [
            replace(ask, view=batch.asks[row].view) for ask, row in zip(asks, rows, strict=True)
        ]
        tokens, length = actor.prompts(plain)
        revised = own_rows(drawn).with_rollouts(
            prompt_tokens=tokens, prompt_length=length, off_policy=wanted
        )
        everywhere = np.ones(len(batch.groups), bool)
        batch = own_rows(batch).with_groups(everywhere, revised, "append")
        told = {"refined_share": float(wanted.mean())}
        known = wanted & np.isfinite(gained)
        if known.any():
            told["refined_gain"] = float(np.mean(gained[known] - earned[rows][known]))
        return batch, state, told

    gives = frozenset({"off_policy", "origin"})
    of_task = frozenset({"rewards"})
    return Stage(apply, init=init, size=size, writes=gives, of_task=of_task)


def _said(rubric: Sequence[Criterion], rewards: Sequence[str]) -> list[str]:
    """What the policy is told of each criterion: its text, or the name of the task's reward."""
    named = zip(rubric, rewards, strict=True)
    return [one.text or name.removeprefix("judge/") for one, name in named]


@part
def all_factual_or_share(least: Unit = 0.5) -> Function:
    """1 if all factual criteria are met, else the weighted share of the criteria that are.

    Args:
      least: score from which on a criterion is met.
    """

    def all_factual_or_share_of(scores, rubric):
        weights = [criterion.weight for criterion in rubric]
        return factual_or_share(scores, weights, criteria_of_kind(rubric, "factual"), least)

    return all_factual_or_share_of


def criteria_met(scores: Scores, columns: Sequence[int], least: float = 0.5) -> Bool[Array, "B"]:
    """Whether all of some criteria have at least this score; one without a score does not."""
    return jnp.all(scores[:, list(columns)] >= least, axis=1)


def factual_or_share(
    scores: Scores, weights: Sequence[float], factual: Sequence[int], least: float = 0.5
) -> Rows:
    """1 if all factual criteria are met, else the weighted share of criteria that are.

    Args:
      scores: in [0, 1]; a criterion is met from `least` on.
      weights: of the criteria.
      factual: columns of the factual ones; none: the share alone.
      least: of a score.
    """
    met = jnp.where(jnp.isnan(scores), jnp.nan, (scores >= least).astype(scores.dtype))
    share = weighted_share(met, weights)
    if not len(factual):
        return share
    return jnp.where(criteria_met(scores, factual, least), 1, share)


@part
def damped_ratio(gamma: Positive) -> Surrogate:
    """-A f, f = π / (π_old + γ): the ratio, damped where the old policy would not have said it.

    Both probabilities are those without the help. f is at most 1 / γ and its gradient is that of
    the full ratio; `shaped_probability` is what saturates. No clip.

    Args:
      gamma: γ, positive.
    """

    def prepare(signals, context):
        own = jnp.exp(context.stats.logp) / (jnp.exp(context.old_logp) + gamma)
        return replace(signals, ratio=own)

    def loss(signals, context):
        del context
        return -signals.advantage * signals.ratio

    return Surrogate(prepare, loss)


def rgr_grpo(
    weights: Sequence[float] = (0.5, 0.3, 0.2),
    factual: Sequence[int] = (0, 1),
    least: float = 0.5,
    gamma: float = 0.1,
    shape_of: Callable[[float], Surrogate] = damped_ratio,
    epsilon: Epsilon = 1e-6,
    criteria: Sequence[str] = (),
) -> Recipe:
    """Group-normalized rubric rewards, with a revised response in every group that lacks something.

    Args:
      weights: of the criteria (w).
      factual: which of them make a response right.
      least: score from which on a criterion is met.
      gamma: of the revised response's ratio (γ).
      shape_of: (γ) -> its loss: `damped_ratio` or `shaped_probability`.
      criteria: what the policy is told of each that its best answer lacks; none: the names of the
        rewards, in a run with a rubric for its judge the texts of that.
    """
    if criteria and len(criteria) != len(weights):
        raise ValueError(
            f"rgr_grpo: criteria must be {len(weights)} texts, one for each of the weights, got"
            f" {len(criteria)}"
        )
    texts = criteria or [""] * len(weights)
    rubric = [
        Criterion(f"{n}", weight, kind="factual" if n in factual else "plain", text=text)
        for n, (weight, text) in enumerate(zip(weights, texts, strict=True))
    ]
    reward = by_rubric(rubric, all_factual_or_share(least))
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=by_origin(importance_weighted(), shape_of(gamma)),
            aggregation=rollout_mean_token_mean(),
        ),
        experience=experience(stages=[refine(rubric, reward, least=least), shape(reward)]),
    )


METHOD = Method(
    rgr_grpo,
    "Reward and Guidance through Rubrics: Promoting Exploration to Improve Multi-Domain Reasoning",
    "https://arxiv.org/abs/2511.12344",
    changes="reward, guidance, surrogate",
    ratio="other",
    evidence="reconstruction",
    left_out=(
        "the authors' judge (`--judge` brings one); a penalty for length whose form is not known"
    ),
    reports=(
        "over GRPO on verdicts, 14 benchmarks: 7.0 points on maths, 5.4 on physics, 8.4 on "
        "chemistry, 6.6 in general"
    ),
    traps=(
        "the printed ratio is bounded by 1/γ only, LUFFY's by 1; a revision worse than the best "
        "answer is pushed down; failing one light factual criterion may cost little"
    ),
)
