"""MEML-GRPO: experts are prompts of one policy; the best expert of a question teaches the worst.

"MEML-GRPO: Heterogeneous Multi-Expert Mutual Learning for RLVR Advancement" (only the abstract was
read)

    the rollouts of a question are divided among P experts, which differ by a note in their prompt
    A_i  = (R_i - mean) / (std + 1e-6) over the rows of the same question and expert
    mutual: mean over the correct rows of the best expert of log π_old(o | best) - log π(o | worst)
    hard:   a question with more than 3/4 incorrect rows is stored with probability 3/4; a separate
            update imitates the solutions of 64 stored questions after every expert's prompt
    loss = PPO clip on the token mean + λ₁ mutual + λ₂ imitation

A reconstruction: λ₁, λ₂ (`mutual`, `imitation`) and the experts' texts are ours. The notes print
the mutual term with the opposite sign, which would repel the worst expert. One baseline over all
experts would penalize the weaker style. The base model of `discussed_sums` was trained on responses
in the styles of the default experts, each after its note. Few of its groups have more than 3/4
incorrect rows, so it is shown with more than half of them and a smaller store.

Left out: fine-tuning on the experts' styles within the run.
Reports: gain in the mean over baselines like GRPO: 4.89 % with Qwen2.5-Math-1.5B, 11.33 % with
Llama-3.2-1B.
Traps: An expert with one row of a question has advantage 0, so sample several times the number of
experts. If all experts are equally good, there is no mutual term.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.experience import Curriculum, SampleRequest, Stage, View, experience, shuffled_epochs
from rlvr_jax.experience.stages.donors.imitate_correct import to_imitate
from rlvr_jax.experience.stages.rounds.another_view import GIVES, with_second_prompts
from rlvr_jax.experience.store import empty_store, pop_oldest, push
from rlvr_jax.experience.views import with_note
from rlvr_jax.objectives import Transform, clipped_objective, imitate, part, rollout_advantage
from rlvr_jax.objectives.statistics.groups import (
    group_has_tokens,
    group_max,
    group_mean,
    group_z_score,
    pair_ids,
)
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import Method, Recipe, Shown, arguments_of, is_correct, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Count, Epsilon, NonNegative, Unit
from rlvr_jax.verifiers.grade import Grade

EXPERTS = (
    "Answer as a textbook does, step by step.",
    "Think aloud, and check what you find.",
    "Answer with as few words as you can.",
)


@part
def sample_experts(views: Sequence[View]) -> Curriculum:
    """Divides the samples of a request among views of its prompt; the view's number is the cell.

    The samples of one view are a group; `join_groups` merges the groups of a prompt.

    Args:
      views: at least one; a request with fewer samples than views uses the first ones.
    """
    if not views:
        raise ValueError("sample_experts: views must be at least one, got none")

    def propose(requests, state, turn):
        return [
            replace(request, view=view, cell=cell, samples=number, first_sample=sum(parts[:cell]))
            for request in requests
            for parts in [fractions(request.samples, len(views))]
            for cell, (view, number) in enumerate(zip(views, parts, strict=True))
            if number
        ]

    return Curriculum(propose, views=tuple(views))


def fractions(samples: int, experts: int) -> list[int]:
    """Samples of each expert, as equal as possible, the first ones more."""
    return [samples // experts + (expert < samples % experts) for expert in range(experts)]


@part(by_row=True)
def join_groups() -> Stage:
    """Merges consecutive groups of one prompt and round.

    Metrics: joined_groups (groups after per group before).
    """

    def apply(batch, actor, state, turn):
        first = [batch.requests[rows[0]] for rows in batch.groups]
        keys = [(request.number, request.round) for request in first]
        fresh = [one != two for one, two in zip(keys, [None, *keys[:-1]], strict=True)]
        number = np.cumsum(fresh).astype(np.int32) - np.int32(1)
        group = np.repeat(number, list(map(len, batch.groups)))
        metrics = {"joined_groups": sum(fresh) / len(fresh)}
        return batch.with_rollouts(group=group).renumbered(), state, metrics

    return apply


@part
def cell_normalized(epsilon: Epsilon = 1e-6) -> Transform:
    """A_i = (R_i - mean) / (std + ε) over the rows of the same group and cell, std with n - 1.

    Groups without tokens do not count.
    """

    def advantage(rollouts):
        counted = group_has_tokens(rollouts.mask, rollouts.group)
        ids = pair_ids(rollouts.group, rollouts.records["cell"])
        return group_z_score(rollouts.reward, ids, epsilon, counted)

    return rollout_advantage(advantage, reads={"cell"})


@part(writes=GIVES | {"cell"}, by_row=True)
def show_to_worst(views: Sequence[View]) -> Stage:
    """Sets the worst expert's prompt as the second prompt of the best expert's correct rows.

    Metrics: teaching_rows (fraction of the rows).
    """

    def apply(batch, actor, state, turn):
        rollouts = batch.rollouts
        teaching = teaching_rows(
            rollouts.reward, rollouts.outcome, rollouts.group, rollouts.records["cell"]
        )
        there, worst = np.asarray(teaching.rows), np.asarray(teaching.worst)
        requests = [
            replace(request, view=views[w])
            for request, w in zip(batch.requests, worst, strict=True)
        ]
        batch = with_second_prompts(batch, actor, requests, there)
        return batch, state, {"teaching_rows": float(there.mean())}

    return Stage(apply, views=tuple(views))


@part(reads={"logp", "second_prompt_logp", "cell", "batch_statistics"}, writes={"term"})
def teach_the_worst(coefficient: NonNegative) -> Transform:
    """Makes correct rows of a group's best expert likelier under the prompt of the worst.

    term + c · mean over their tokens of (old_logp - logp'), with logp' under the row's second
    prompt. This estimates KL(π(·|best) ‖ π(·|worst)), and its gradient is that of imitation.

    Metrics: mutual_divergence (mean divergence, nats), taught_tokens (tokens).
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        teaching = teaching_rows(
            rollouts.reward, rollouts.outcome, rollouts.group, rollouts.records["cell"]
        )
        taught = signals.mask & teaching.rows[:, None]
        divergence = context.old_logp - context.stats.records["second_prompt_logp"]
        mean = masked_mean(divergence, taught)
        metrics = {"mutual_divergence": mean, "taught_tokens": jnp.sum(taught).astype(mean.dtype)}
        return replace(signals, term=signals.term + coefficient * mean), state, metrics

    return apply


class Teaching(NamedTuple):
    """The best and the worst expert of each row's group, and the rows that teach.

    Fields:
      best, worst: int [B], the experts of highest and lowest mean reward; of ties the first.
      rows: bool [B], correct rows of the best expert, if best and worst differ.
    """

    best: Int[Array, "B"]
    worst: Int[Array, "B"]
    rows: Bool[Array, "B"]


def teaching_rows(
    reward: Float[Array, "B"],
    outcome: Float[Array, "B"],
    group: Int[Array, "B"],
    cell: Int[Array, "B"],
) -> Teaching:
    """The `Teaching` of each row. An outcome above ½ is correct.

    Args:
      reward: reward of each row, [B].
      outcome: outcome of each row, [B]; correct above ½.
      group: group of each row, int [B].
      cell: expert that wrote the row, from 0, int [B].
    """
    mean = group_mean(reward, pair_ids(group, cell))

    def first_of_highest(values):
        there = values == group_max(values, group)
        lowest = group_max(-cell.astype(reward.dtype), group, where=there)
        return (-lowest).astype(cell.dtype)

    best, worst = first_of_highest(mean), first_of_highest(-mean)
    return Teaching(best, worst, is_correct(outcome) & (cell == best) & (best != worst))


@part(reads={"solution"}, writes={"supervised"}, updates=1, by_row=True)
def imitate_hard(
    views: Sequence[View],
    incorrect_above: Unit = 0.75,
    probability: Unit = 0.75,
    capacity: Count = 64,
) -> Stage:
    """Stores hard prompts, and imitates their solutions under every view once there are enough.

    A full store is emptied. The worked solutions of its prompts, after the prompt of each view, are
    rows to imitate in a separate update. Only train prompts are stored.

    Args:
      views: views of the experts; each stored solution is imitated after the prompt of every view.
      incorrect_above: fraction of incorrect rows above which a prompt is hard.
      probability: of storing a hard prompt.
      capacity: number of stored prompts whose solutions are imitated together.
    Metrics: hard_groups (fraction of the groups), stored_prompts (prompts), imitated_solutions
      (rows), solutions_too_long (prompts).
    """

    def init(setting):
        return empty_store(capacity + setting.prompts, number=((), np.int32))

    def apply(batch, actor, state, turn):
        train = turn.setting.task.train
        hard = hard_groups(batch.outcomes(), incorrect_above)
        chosen = turn.random().uniform(size=len(hard)) < probability
        requests = batch.requests_of(hard & chosen)
        numbers = [
            a.number for a in requests if a.number < len(train) and train[a.number] is a.prompt
        ]
        state = push(state, {"number": np.array(numbers, np.int32)}, turn.step)
        batch = batch.with_rollouts(supervised=np.zeros(len(batch), bool))
        solved, long = [], 0
        if state.held >= capacity:
            rows, state = pop_oldest(state, capacity)
            solved, long = solutions(actor, train, rows["number"], turn.setting.response_tokens)
        further = [*batch.further, *solved]
        metrics = {
            "hard_groups": float(hard.mean()),
            "stored_prompts": float(state.held),
            "imitated_solutions": float(sum(map(len, further))),
            "solutions_too_long": float(long),
        }
        return replace(batch, further=further), state, metrics

    def solutions(actor, train, numbers, most):
        stop = actor.stop_token()
        requests, tokens = [], []
        for number in numbers.tolist():
            ids = [*actor.encode("".join(train[number].solution)), stop]
            if len(ids) <= most:
                requests += [
                    SampleRequest(train[number], number, 1, view=view, cell=cell)
                    for cell, view in enumerate(views)
                ]
                tokens += [ids] * len(views)
        long = len(numbers) - len(requests) // len(views)
        if not requests:
            return [], long
        rows = to_imitate(actor.written(requests, tokens), True)
        cells = np.array([request.cell for request in requests], np.int32)
        length = np.zeros_like(rows.rollouts.prompt_length)
        second = {"second_tokens": np.zeros_like(rows.rollouts.prompt_tokens)}
        rows = rows.with_rollouts(cell=cells, second_length=length, **second)
        return [rows.graded([Grade(None)] * len(rows))], long

    return Stage(apply, init, views=tuple(views))


def hard_groups(outcomes: np.ndarray, incorrect_above: float) -> np.ndarray:
    """Groups with more than a fraction `incorrect_above` of incorrect rows, bool [G].

    Args:
      outcomes: [G, N], NaN if ungraded; correct is above ½.
    """
    known = ~np.isnan(outcomes)
    incorrect = (known & ~is_correct(np.nan_to_num(outcomes))).sum(axis=1)
    return incorrect > incorrect_above * np.maximum(known.sum(axis=1), 1)


@arguments_of(imitate_hard, "incorrect_above", "probability", "capacity")
def meml_grpo(
    experts: str = "|".join(EXPERTS),
    mutual: NonNegative = 0.1,
    imitation: NonNegative = 1.0,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
    **hard: Any,
) -> Recipe:
    """Applies GRPO within experts, mutual teaching, and imitation of hard prompts' solutions.

    Args:
      experts: note of each expert's prompt, separated by |.
      mutual: weight of the best expert's teaching (λ₁).
      imitation: weight of the imitation of solutions (λ₂).
    """
    views = [with_note(text) for text in experts.split("|")]
    terms = [teach_the_worst(mutual), imitate(imitation)]
    stages = [join_groups(), show_to_worst(views), imitate_hard(views, **hard)]
    return Recipe(
        objective=clipped_objective(
            clip_low, clip_high, advantage=cell_normalized(epsilon), regularizers=terms
        ),
        experience=experience([shuffled_epochs(), sample_experts(views)], stages=stages),
    )


METHOD = Method(
    meml_grpo,
    changes="advantage, regularizer, sampling, guidance",
    evidence="reconstruction",
    shown=Shown(
        "discussed_sums",
        "experience/teaching_rows",
        hyperparameters={"incorrect_above": 0.5, "capacity": 16},
    ),
)
