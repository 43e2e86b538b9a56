"""ADCL and EGSR: a curriculum that is sorted again during training, and reworded solutions.

"Learning Like Humans: Advancing LLM Reasoning Capabilities via Adaptive Difficulty Curriculum
Learning and Expert-Guided Self-Reformulation" (only notes were read)

    D_1 … D_K   sections of the prompts by the pass rates of the initial policy, from easy to hard
    before D_k  the current policy rates its prompts, which are sorted again
    all failed  the policy is shown the worked solution and derives it in its own words; correct
                results replace failed responses, at most half of the group
    A_i  = (R_i - mean) / (std + 1e-6),  loss = PPO's clip on the token mean

Replaced rows have old log-probs under the prompt with the solution and are trained under the plain
prompt. Their ratio therefore compares two prompts, as in `guide`. They are the policy's words,
while `luffy_mixed` has the expert's. A reconstruction: K (`chunks`), the responses of a rating, the
number of replacements and this ratio are ours, as the paper does not state them.

Reports: Qwen2.5-7B on AIME25 in %: 33.33 with both parts, 30.00 with either, 23.33 with a fixed
curriculum, 16.67 by RL from the base model.
Traps: With the solution in the prompt, the policy may reach the answer by incorrect reasoning,
which nothing checks. Ratings cost samples. A group whose guided responses fail has no gradient.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rlvr_jax.experience import PLAIN, Curriculum, Stage, View, all_incorrect, experience, part
from rlvr_jax.experience.curricula.batches import requests_for
from rlvr_jax.experience.curricula.history import rated_rates
from rlvr_jax.experience.stages.donors.traces import own_rows, with_rows
from rlvr_jax.experience.stages.rounds.another_view import under_another_view
from rlvr_jax.experience.views import hint
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe, Shown, is_correct
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Count, Epsilon, Unit


class _State(NamedTuple):
    """Prompts in the order of training, int32 [P], and their last known difficulty, [P]."""

    order: np.ndarray
    difficulty: np.ndarray


@part
def chunks_by_difficulty(number: Count, samples: Count) -> Curriculum:
    """Trains on the prompts from easy to hard, in sections that are sorted again before their turn.

    Difficulty is 1 - the pass rate of responses that only rate. Step 0 rates all prompts and
    divides them into sections; it trains on the first prompts of the task. The last step before a
    section rates its prompts, which stay in it. A section is passed once; its last step is filled
    from its beginning. The first section follows the last one.

    Metrics: chunk (section, from 0), rated_prompts (prompts), chunk_difficulty (mean of the
      rated prompts).
    Raises:
      ValueError: at the start of a run, more sections than prompts.
    """

    def init(setting):
        prompts = len(setting.task.train)
        if number > prompts:
            raise ValueError(
                f"chunks_by_difficulty: number must be at most the {prompts} prompts, got {number}"
            )
        return _State(np.arange(prompts, dtype=np.int32), np.full(prompts, np.nan, np.float32))

    def chunks(state):
        return np.array_split(state.order, number)

    def now(step, setting, state):
        """The section of a step, the step's place in it, and whether it is the last one."""
        if step == 0:
            return number - 1, 0, True
        sizes = np.array(list(map(len, chunks(state))))
        ends = np.cumsum(-(-sizes // (setting.prompts * setting.rounds)))
        place = (step - 1) % ends[-1]
        chunk = int(np.searchsorted(ends, place, side="right"))
        return chunk, int(place - (ends[chunk - 1] if chunk else 0)), place == ends[chunk] - 1

    def rated(step, chunk, last, state):
        if step == 0:
            return state.order
        return chunks(state)[(chunk + 1) % number] if last else np.zeros(0, int)

    def propose(requests, state, turn):
        setting = turn.setting
        chunk, place, last = now(turn.step, setting, state)
        section = chunks(state)[chunk] if turn.step else state.order
        first = (place * setting.rounds + turn.round) * setting.prompts
        chosen = section[(first + np.arange(setting.prompts)) % len(section)]
        trained = requests_for(turn, chosen)
        if turn.round:
            return trained
        ratings = requests_for(turn, rated(turn.step, chunk, last, state))
        return [*(replace(request, samples=samples, rating=True) for request in ratings), *trained]

    def observe(state, turn, seen, learned):
        chunk, _, last = now(turn.step, turn.setting, state)
        numbers = rated(turn.step, chunk, last, state)
        metrics = {
            "chunk": float(chunk) if turn.step else 0.0,
            "rated_prompts": float(len(numbers)),
        }
        if not len(numbers):
            return state, metrics
        difficulty = state.difficulty.copy()
        for prompt, rate in rated_rates(seen, len(difficulty)).items():
            difficulty[prompt] = 1 - rate
        # Ungraded prompts count as hard.
        known = np.nan_to_num(difficulty, nan=1.0)
        order = state.order.copy()
        # Ties do not change their order.
        order[np.isin(order, numbers)] = numbers[np.argsort(known[numbers], kind="stable")]
        metrics["chunk_difficulty"] = float(known[numbers].mean())
        return _State(order, difficulty), metrics

    return Curriculum(propose, init, observe)


@part(writes={"off_policy", "origin"}, by_row=True)
def replace_failures(view: View, samples: Count, fraction: Unit) -> Stage:
    """Samples groups without a correct response again with help and uses correct results.

    Correct guided responses replace failed ones and are trained under the original prompt: marked
    `off_policy`, with old log-probs of the guided context (`shown_tokens`). A group without a
    correct guided response does not change.

    Args:
      view: help, such as `hint(1.0)`, the whole worked solution.
    Metrics: guided_groups (fraction of the groups), guided_correct (correct fraction of the guided
      responses), replaced_rows (fraction of the rows).
    """

    def apply(batch, actor, state, turn):
        batch, outcomes = own_rows(batch), batch.outcomes()
        failed = all_incorrect(outcomes)
        metrics = {"guided_groups": float(failed.mean()), "replaced_rows": 0.0}
        if not failed.any():
            return batch, state, metrics
        requests = [
            replace(request, view=view, samples=samples) for request in batch.requests_of(failed)
        ]
        guided = actor.grade(actor.draw(requests, turn.key))
        metrics["guided_correct"] = float(np.mean(is_correct(guided.rollouts.outcome)))
        most = int(fraction * outcomes.shape[1])
        source = failure_sources(outcomes[failed], guided.outcomes(), most)
        own = [batch.groups[group] for group in np.flatnonzero(failed)]
        pairs = [
            (own[group][place], guided.groups[group][source[group, place]])
            for group, place in np.argwhere(source >= 0)
        ]
        if not pairs:
            return batch, state, metrics
        rows, sources = np.array(pairs).T
        metrics["replaced_rows"] = len(rows) / len(batch)
        plain = under_another_view(guided, actor, PLAIN)
        return with_rows(batch, rows, plain, sources), state, metrics

    return Stage(apply, views=(view,))


def failure_sources(outcome: np.ndarray, guided: np.ndarray, most: int) -> np.ndarray:
    """The guided row that replaces each row, int [G, N]; -1: the row stays.

    In a group without a correct row, the correct guided rows replace the first rows, in order.

    Args:
      outcome: [G, N], NaN if ungraded.
      guided: [G, M], of the guided rows.
      most: maximum number of replaced rows of a group.
    """
    source = np.full(outcome.shape, -1)
    for group in np.flatnonzero(all_incorrect(outcome)):
        correct = np.flatnonzero(is_correct(np.nan_to_num(guided[group])))
        correct = correct[: min(most, outcome.shape[1])]
        source[group, : len(correct)] = correct
    return source


def adcl_egsr(
    chunks: Count = 4,
    rating_samples: Count = 8,
    guided_samples: Count = 8,
    replaced: Unit = 0.5,
    shown: Unit = 1.0,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """Applies GRPO to sections of rising difficulty; failed groups are shown the solution.

    Args:
      chunks: sections of the prompts (K).
      rating_samples: responses that estimate the difficulty of a prompt.
      guided_samples: responses with the solution in the prompt, per prompt without a correct one.
      replaced: largest fraction of a group's rows that guided rows replace.
      shown: fraction of the worked solution that is shown.
    """
    return Recipe(
        objective=clipped_objective(clip_low, clip_high, epsilon=epsilon),
        experience=experience(
            chunks_by_difficulty(chunks, rating_samples),
            stages=[replace_failures(hint(shown), guided_samples, replaced)],
        ),
    )


METHOD = Method(
    adcl_egsr,
    changes="curriculum, sampling, guidance",
    evidence="reconstruction",
    shown=Shown(
        "hinted_brackets:train=1000", "experience/replaced_rows", without={"replaced": 0}, steps=300
    ),
)
