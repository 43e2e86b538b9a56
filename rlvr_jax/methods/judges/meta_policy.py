"""MPO: a judge's rubric is rewritten while the policy trains on it.

"Toward Evaluative Thinking: Meta Policy Optimization with Evolving Reward Models",
https://github.com/minnesotanlp/mpo

    R    = mean of points_k / maximum_k over the items of rubric v, or Σ points_k (published)
    v+1  = merge(refine(analyse(v, sample))) by the judge, every 10 batches, for 20 judged responses
    r    = (R - mean_v) / (std_v + 1e-6) over the rewards since the last rewrite
    r_t  = r on the last token, -β (log π_old - log π_ref) on every one
    Â    = GAE with λ = 0.95, whitened; loss = Σ PPO clip / Σ n_i

`--judge` names the judge, which also rewrites the rubric; in the paper these are two models. The
judge writes points for all items in one reply. The first rubric has one item (`rubric`), or those
of `--judge-rubric`. A rewrite is used from the next batch on. It is refused if it is not 1 to 20
different items of fewer than 300 words, each after its maximum. The state has the rubric, its
version and the number of refused rewrites.

The published sum pays more for a longer rubric, and rewards before and after a rewrite are not
comparable. The mean is therefore the default, and mean_v and std_v begin anew with each version;
both are ours. An item without readable points leaves the mean. A response without any leaves its
batch; in the published form its reward is 0. Without `--judge`, points are the first rewards of the
task, and the rubric is fixed.

Left out: a second, stronger model that rewrites; a rationale for each item; the screen of
judgements before a rewrite (off in the authors' trainer).
Reports: essays, summaries, ethics and maths: equal to a fixed expert prompt or better. No collapse
where the policy exploits the first prompt (no numbers).
Traps: Without `--judge`, the method is PPO on a fixed rubric. With fewer steps than `every`, the
rubric is never rewritten.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from rlvr_jax.experience import Stage, by_rubric, experience, fraction_of_rubric, shape
from rlvr_jax.experience.grades import with_info
from rlvr_jax.experience.stages.grading.judge import JudgingPolicy, asked_about, verdicts_on
from rlvr_jax.experience.store import as_bytes, as_texts
from rlvr_jax.judges import Judge, as_fractions, points, rubric_question
from rlvr_jax.objectives import clipped_with_critic, generalized_advantage
from rlvr_jax.types import Criterion, Method, Recipe, Shown, arguments_of, part
from rlvr_jax.types.hyperparameters import Count, KLCoefficient, TraceDecay
from rlvr_jax.verifiers.texts.meta_policy import Rubric, Sample, evolve, read_items, rewritten

BYTES = 2**14
"""Largest size of a rubric in the state."""


def sum_of_rubric(scores: Array, rubric: Sequence[Criterion]) -> Array:
    """The sum of the points; a criterion without a score has 0."""
    most = jnp.asarray([criterion.maximum for criterion in rubric], scores.dtype)[None]
    return jnp.sum(jnp.where(jnp.isnan(scores), 0, scores) * most, axis=1)


class _State(NamedTuple):
    """The items of the rubric as bytes; its version; the number of refused rewrites; number, sum
    and sum of squares of the rewards since the last rewrite.
    """

    items: np.ndarray
    version: np.ndarray
    refused: np.ndarray
    moments: np.ndarray


@part(by_row=True)
def judge_and_rewrite(
    judge: Judge,
    rubric: Sequence[str],
    every: Count,
    examples: Count,
    summed: bool = False,
    sampling: Mapping[str, Any] | None = None,
) -> Stage:
    """Rewards responses by a judge's points for a rubric, which the judge rewrites.

    Every `every` steps the judge reads judged responses of the step and writes the rubric of the
    next steps (`evolve`).

    Args:
      judge: its call and its budget are used; the rubric makes the prompt.
      rubric: the first items, such as "5: Is the response clear?": most points and question.
      every: steps between two rewrites.
      examples: judged responses that a rewrite reads.
      summed: whether R is the published sum.
      sampling: sampler settings of the policy if it is the judge; None: those of the run.
    Metrics: rubric_version (rewrites that were used), unparsable_rubrics (rewrites that were
      refused), rubric_items (items), rubric_score (mean of R); those of `Verdicts`.
    Raises:
      ValueError: `rubric` is not a valid rubric.
    """
    first = rewritten(Rubric(()), read_items("\n".join(rubric)))
    if first is None or len(first.items) < len(rubric):
        raise ValueError(
            "judge_and_rewrite: rubric must be 1 to 20 different items of fewer than 300 words,"
            f' each after its most points, as in "5: Is it clear?", got {list(rubric)}'
        )

    def init(setting):
        return _State(_stored(first), np.int32(0), np.int32(0), np.zeros(3))

    def apply(batch, actor, state, turn):
        items = read_items(as_texts([state.items])[0])
        criteria = [
            Criterion(f"item {number}", maximum=item.maximum, text=item.text)
            for number, item in enumerate(items, start=1)
        ]
        parse = as_fractions(points(criteria), [one.maximum for one in criteria])
        asked = replace(
            judge,
            prompt_of=rubric_question(criteria),
            parse=parse,
            names=[one.name for one in criteria],
        )
        policy = JudgingPolicy(actor, turn.step, turn.key, sampling)
        rows = np.flatnonzero(batch.decided)
        if not len(rows):
            return batch, state, _metrics(state, len(items))
        found = asked_about(asked, batch, rows, policy)
        combine = sum_of_rubric if summed else fraction_of_rubric
        own = np.asarray(combine(jnp.asarray(found.numbers), criteria), np.float64)
        # A judge that does not reply gives no verdict, also where unreadable points are 0.
        own = np.where([not words for words in found.words], np.nan, own)
        score = np.full(len(batch), np.nan)
        score[rows] = own
        judged = rows[~np.isnan(own)]
        moments = state.moments + _moments(score[judged])
        reward = _normalized(score, moments)
        state = state._replace(moments=moments)
        words = dict(zip(rows.tolist(), found.words, strict=True))
        counts = dict(found.metrics)
        if (turn.step + 1) % every == 0 and len(judged):
            chosen = np.sort(turn.random().permutation(judged)[:examples])
            taken = batch.take(chosen)
            samples = [
                Sample(prompt.text, response.text, (words[row],))
                for row, prompt, response in zip(
                    chosen.tolist(), taken.prompts, taken.responses, strict=True
                )
            ]
            state, spent = rewrite(Rubric(tuple(items)), samples, policy, state)
            counts = {name: counts.get(name, 0) + spent.get(name, 0) for name in counts | spent}
        metrics = counts | _metrics(state, len(items))
        if len(judged):
            metrics["rubric_score"] = float(score[judged].mean())
        grades = [
            replace(grade, reply=words.get(row, grade.reply))
            for row, grade in enumerate(batch.grades)
        ]
        batch = with_info(replace(batch, grades=grades), [{"rubric": one} for one in score])
        return batch.rewarded(reward), state, metrics

    def rewrite(old, samples, policy, state):
        spent: dict[str, float] = {}

        def meta(requests):
            texts = [{"request": request} for request in requests]
            writer = replace(judge, prompt_of=_request, parse=lambda words: (1.0,), names=["text"])
            found = verdicts_on(writer, texts, policy)
            for name in ("judge_calls", "judge_tokens"):
                spent[name] = spent.get(name, 0.0) + found.metrics[name]
            return found.words

        new, used = evolve(old, samples, meta)
        items = _stored(new)
        if not used or not items.any():
            return state._replace(refused=state.refused + np.int32(1)), spent
        version = state.version + np.int32(1)
        return _State(items, version, state.refused, np.zeros(3)), spent

    return Stage(apply, init)


def _request(*, request: str) -> Sequence[Mapping[str, str]]:
    return ({"role": "user", "content": request},)


def _stored(rubric: Rubric) -> np.ndarray:
    return as_bytes(["\n".join(item.line for item in rubric.items)], BYTES)[0]


def _moments(score: np.ndarray) -> np.ndarray:
    return np.array([len(score), score.sum(), (score**2).sum()])


def _normalized(score: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """(R - mean) / (std + 1e-6) with the moments of all rewards of the rubric."""
    number, total, squares = moments
    mean = total / max(number, 1)
    spread = np.sqrt(max(squares / max(number, 1) - mean**2, 0.0))
    return (score - mean) / (spread + 1e-6)


def _metrics(state: _State, items: int) -> dict[str, float]:
    return {
        "rubric_version": float(state.version),
        "unparsable_rubrics": float(state.refused),
        "rubric_items": float(items),
    }


@arguments_of(clipped_with_critic, "clip_low", "clip_high", "value_clip")
def meta_policy(
    maxima: Sequence[float] = (1.0, 1.0),
    summed: bool = False,
    rubric: Sequence[str] = ("5: Is the response correct, complete and clear?",),
    every: Count = 10,
    examples: Count = 20,
    judge: Judge | None = None,
    sampling: Mapping[str, Any] | None = None,
    kl_coefficient: KLCoefficient = 0.05,
    trace_decay: TraceDecay = 0.95,
    **clips: Any,
) -> Recipe:
    """Applies PPO with a critic to the points of a rubric that its judge rewrites.

    Args:
      maxima: without a judge: maximum points of each item, the first rewards of the task.
      summed: whether the reward is the published sum, in which unreadable points are 0.
      rubric: the first items, each after its most points.
      every: steps between two rewrites.
      examples: judged responses that a rewrite reads.
      judge, sampling: the judge of the run (`--judge`), and sampler settings of a policy that
        judges itself.
    """
    if judge is None:
        fixed = [Criterion(f"{number}", maximum=most) for number, most in enumerate(maxima)]
        stage = shape(by_rubric(fixed, sum_of_rubric if summed else fraction_of_rubric))
    else:
        stage = judge_and_rewrite(judge, rubric, every, examples, summed, sampling)
    estimator = generalized_advantage(1.0, trace_decay, kl_coefficient)
    fitted = clipped_with_critic(estimator, **clips)
    return Recipe(**fitted, experience=experience(stages=[stage]))


METHOD = Method(
    meta_policy,
    changes="reward",
    baseline="other",
    shown=Shown(
        "brackets",
        "experience/rubric_version",
        without={"every": 1000},
        settings={"judge": "rlvr_jax.tasks.brackets_judge:rewriter", "prompts_per_step": 16},
        within=10,
    ),
)
