"""MEML-GRPO: experts that are prompts of one policy; the best one of a question teaches the worst.

"MEML-GRPO: Heterogeneous Multi-Expert Mutual Learning for RLVR Advancement", of which the abstract
was read.

    the rollouts of a question are split over P experts, which differ by what their prompt adds
    A_i  = (R_i - mean) / (std + 1e-6) over the rows of the same question and expert
    mutual: mean over the right rows of the best expert of log π_old(o | best) - log π(o | worst)
    hard:   with more than 3/4 wrong rows a question is kept with probability 3/4; when 64 are,
            their solutions are imitated behind every expert's prompt, in an update of their own
    loss = PPO clip on the token mean + λ₁ mutual + λ₂ imitation

The notes print the mutual term with the other sign, which would push the worst expert away. With
one baseline over all experts the weaker style would be punished. λ₁, λ₂ and the experts' texts are
ours; theirs are system prompts of styles that the policy was fine-tuned on before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.experience import experience, shuffled_epochs
from rlvr_jax.experience.asks import Ask, View
from rlvr_jax.experience.parts import Curriculum, Stage
from rlvr_jax.experience.stages.donors.imitate_right import to_imitate
from rlvr_jax.experience.stages.rewards.second_prompt import GIVES
from rlvr_jax.experience.store import empty_store, pop_oldest, push
from rlvr_jax.experience.views import with_note
from rlvr_jax.objectives import imitate
from rlvr_jax.objectives.advantages.group_relative import rollout_advantage
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.statistics.groups import (
    group_deviation,
    group_has_tokens,
    group_max,
    group_mean,
    group_std,
)
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.tasks.base import Grade
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import (
    ClipHigh,
    ClipLow,
    Count,
    Epsilon,
    NonNegative,
    Positive,
    Unit,
)
from rlvr_jax.types.parts import part


def shares(samples: int, experts: int) -> list[int]:
    """Samples of each expert, as equal as they can be, the first ones more."""
    return [samples // experts + (expert < samples % experts) for expert in range(experts)]


@part
def ask_experts(views: Sequence[View]) -> Curriculum:
    """Splits the samples of every ask over views of its prompt, each the cell of its number.

    The parts are groups of their own as they are drawn; `join_groups` makes one of them.

    Args:
      views: at least one; asks with fewer samples than views go to the first ones.
    Raises:
      ValueError: no view.
    """
    if not views:
        raise ValueError("ask_experts: views must be at least one, got none")

    def propose(asks, state, turn):
        del state, turn
        return [
            replace(ask, view=view, cell=cell, samples=number, first_sample=sum(parts[:cell]))
            for ask in asks
            for parts in [shares(ask.samples, len(views))]
            for cell, (view, number) in enumerate(zip(views, parts, strict=True))
            if number
        ]

    return Curriculum(
        propose, reads=frozenset().union(*(view.reads for view in views)), views=tuple(views)
    )


@part(by_row=True)
def join_groups() -> Stage:
    """Makes one group of the groups next to each other that answer one prompt of a round.

    Metrics: joined_groups (groups behind it per group before it).
    """

    def apply(batch, actor, state, turn):
        del actor, turn
        first = [batch.asks[rows[0]] for rows in batch.groups]
        keys = [(ask.number, ask.round) for ask in first]
        fresh = [one != two for one, two in zip(keys, [None, *keys[:-1]], strict=True)]
        number = np.cumsum(fresh).astype(np.int32) - np.int32(1)
        group = np.repeat(number, list(map(len, batch.groups)))
        told = {"joined_groups": sum(fresh) / len(fresh)}
        return batch.with_rollouts(group=group).renumbered(), state, told

    return apply


@part(writes=GIVES | {"cell"}, by_row=True)
def show_to_worst(views: Sequence[View]) -> Stage:
    """Gives the right answers of a group's best expert the worst one's prompt as their second one.

    Args:
      views: of the experts, by their cells.
    Reads: reward, outcome, group, cell. Writes: second_tokens, second_length. Metrics:
      teaching_rows (share of the rows).
    """

    def apply(batch, actor, state, turn):
        del turn
        rollouts = batch.rollouts
        teaching = teaching_rows(rollouts.reward, rollouts.outcome, rollouts.group, rollouts.cell)
        there, worst = np.asarray(teaching.rows), np.asarray(teaching.worst)
        asks = [replace(ask, view=views[w]) for ask, w in zip(batch.asks, worst, strict=True)]
        tokens, length = actor.prompts(asks)
        second = {
            "second_tokens": np.where(there[:, None], tokens, 0).astype(tokens.dtype),
            "second_length": np.where(there, length, 0).astype(length.dtype),
        }
        return batch.with_rollouts(**second), state, {"teaching_rows": float(there.mean())}

    needs = frozenset().union(*(view.reads for view in views))
    return Stage(apply, reads=needs, views=tuple(views))


def hard_groups(outcomes: np.ndarray, wrong_above: float) -> np.ndarray:
    """Groups of whose answers a larger share than `wrong_above` is wrong, bool [G].

    Args:
      outcomes: [G, N], NaN without a verdict; right is above ½.
    """
    known = ~np.isnan(outcomes)
    wrong = (known & ~(np.nan_to_num(outcomes) > 0.5)).sum(axis=1)
    return wrong > wrong_above * np.maximum(known.sum(axis=1), 1)


@part
def imitate_hard(
    views: Sequence[View], wrong_above: Unit, probability: Unit, capacity: Count
) -> Stage:
    """Keeps hard prompts, and imitates their solutions under every view once there are enough.

    A prompt of whose answers a larger share than `wrong_above` is wrong is put into the buffer with
    some probability. When the buffer is full, it is emptied, and the worked solutions of its
    prompts, behind the prompt of each view, are rows to imitate in an update of their own. Train
    prompts alone are kept.

    Args:
      views: of the experts.
      wrong_above: share, in [0, 1].
      probability: with which a hard prompt is kept, in [0, 1].
      capacity: prompts of the buffer.
    Reads: outcome, Prompt.solution. Writes: supervised; `Batch.further`, of supervised rows.
    Metrics: hard_groups (share), kept_prompts (that wait), imitated_solutions (rows),
      solutions_too_long (prompts).
    """

    def init(setting):
        return empty_store(capacity + setting.prompts, number=((), np.int32))

    def apply(batch, actor, state, turn):
        train = turn.setting.task.train
        hard = hard_groups(batch.outcomes(), wrong_above)
        lucky = turn.random().uniform(size=len(hard)) < probability
        asks = batch.asks_of(hard & lucky)
        numbers = [a.number for a in asks if a.number < len(train) and train[a.number] is a.prompt]
        if numbers:
            state = push(state, {"number": np.array(numbers, np.int32)}, turn.step)
        batch = batch.with_rollouts(supervised=np.zeros(len(batch), bool))
        further, long = list(batch.further), 0
        if state.held >= capacity:
            rows, state = pop_oldest(state, capacity)
            solved, long = _solutions(actor, train, rows["number"], turn.setting.response_tokens)
            further += [solved] if solved is not None else []
        told = {
            "hard_groups": float(hard.mean()),
            "kept_prompts": float(state.held),
            "imitated_solutions": float(sum(map(len, further))),
            "solutions_too_long": float(long),
        }
        return replace(batch, further=further), state, told

    def _solutions(actor, train, numbers, most):
        stop = actor.stop_token()
        asks, tokens = [], []
        for number in numbers.tolist():
            ids = [*actor.encode("".join(train[number].solution)), stop]
            if len(ids) <= most:
                asks += [
                    Ask(train[number], number, 1, view=view, cell=cell)
                    for cell, view in enumerate(views)
                ]
                tokens += [ids] * len(views)
        long = len(numbers) - len(asks) // len(views)
        if not asks:
            return None, long
        rows = to_imitate(actor.written(asks, tokens), np.ones(len(asks), bool))
        cells = np.array([ask.cell for ask in asks], np.int32)
        length = np.zeros_like(rows.rollouts.prompt_length)
        second = {"second_tokens": np.zeros_like(rows.rollouts.prompt_tokens)}
        rows = rows.with_rollouts(cell=cells, second_length=length, **second)
        return replace(rows, grades=[Grade(None)] * len(rows)), long

    needs = frozenset({"solution"}).union(*(view.reads for view in views))
    return Stage(
        apply,
        init,
        reads=needs,
        views=tuple(views),
        writes=frozenset({"supervised"}),
        updates=1,
        by_row=True,
    )


def groups_by_cell(group: Int[Array, "B"], cell: Int[Array, "B"]) -> Int[Array, "B"]:
    """Ids of the groups split by cell: rows of one group and one cell have the same."""
    span = jnp.max(cell) - jnp.min(cell) + 1
    segment = jnp.searchsorted(jnp.sort(group), group).astype(group.dtype)  # any ids, from 0
    return segment * span + (cell - jnp.min(cell))


@part
def cell_normalized(epsilon: Positive = 1e-6, within_groups: bool = False) -> Transform:
    """A_i = (R_i - mean) / (std + ε) over the rows of the same cell; std divides by n - 1.

    Groups without tokens do not count.

    Args:
      epsilon: ε, added to the standard deviation, outside its root.
      within_groups: over the rows of the same group and cell.
    """

    def advantage(rollouts):
        reward, group, cell = rollouts.reward, rollouts.group, rollouts.cell
        ids = groups_by_cell(group, cell) if within_groups else cell
        counted = group_has_tokens(rollouts.mask, group)
        scale = group_std(reward, ids, where=counted) + epsilon
        return group_deviation(reward, ids, where=counted) / scale

    return rollout_advantage(advantage, reads={"cell"})


class Teaching(NamedTuple):
    """Who teaches whom, row by row.

    Fields:
      best, worst: int [B], of the group of the row, the experts of highest and lowest mean reward;
        of equal ones that of the lowest number.
      rows: bool [B], right rows of the best, where best and worst differ.
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
    """Who teaches whom; see `Teaching`. A row is right above an outcome of ½."""
    span = jnp.max(cell) - jnp.min(cell) + 1
    segment = jnp.searchsorted(jnp.sort(group), group).astype(cell.dtype)
    mean = group_mean(reward, segment * span + (cell - jnp.min(cell)))

    def first_of_highest(values):
        there = values == group_max(values, group)
        lowest = group_max(-cell.astype(reward.dtype), group, where=there)
        return (-lowest).astype(cell.dtype)

    best, worst = first_of_highest(mean), first_of_highest(-mean)
    return Teaching(best, worst, (outcome > 0.5) & (cell == best) & (best != worst))


@part(writes={"term"})
def teach_the_worst(coefficient: NonNegative) -> Transform:
    """Makes right answers of the best expert of a group likelier behind the prompt of the worst.

    term + c · mean over their tokens of (old_logp - logp'), logp' after the row's second prompt:
    an estimate of KL(π(·|best) ‖ π(·|worst)), whose gradient is that of imitation.

    Args:
      coefficient: c, at least 0.
    Metrics: mutual_divergence (the mean), taught_tokens (their number).
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        teaching = teaching_rows(rollouts.reward, rollouts.outcome, rollouts.group, rollouts.cell)
        taught = signals.mask & teaching.rows[:, None]
        divergence = context.old_logp - context.stats.second_prompt_logp
        mean = masked_mean(divergence, taught)
        told = {
            "mutual_divergence": mean,
            "taught_tokens": jnp.sum(taught).astype(mean.dtype),
        }
        return replace(signals, term=signals.term + coefficient * mean), state, told

    reads = {"logp", "second_prompt_logp", "cell", "batch_statistics"}
    return Transform(apply, reads=reads)


EXPERTS = (
    "Answer as a textbook does, step by step.",
    "Think aloud, and check what you find.",
    "Answer with as few words as you can.",
)


def meml_grpo(
    experts: str = "|".join(EXPERTS),
    mutual: float = 0.1,
    imitation: float = 1.0,
    wrong_above: float = 0.75,
    probability: float = 0.75,
    capacity: int = 64,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO within experts, whose best teaches the worst, and imitation of hard prompts' solutions.

    Args:
      experts: what the prompt of each adds, with | between them.
      mutual: weight of the best expert's teaching (λ₁).
      imitation: weight of the imitation of solutions (λ₂).
      wrong_above: share of wrong rows above which a prompt is hard.
      probability: with which a hard prompt is kept.
      capacity: prompts that are kept until their solutions are imitated.
    """
    views = [with_note(text) for text in experts.split("|")]
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            advantage=cell_normalized(epsilon, within_groups=True),
            regularizers=[teach_the_worst(mutual), imitate(imitation)],
        ),
        experience=experience(
            [shuffled_epochs(), ask_experts(views)],
            stages=[
                join_groups(),
                show_to_worst(views),
                imitate_hard(views, wrong_above, probability, capacity),
            ],
        ),
    )


METHOD = Method(
    meml_grpo,
    "MEML-GRPO: Heterogeneous Multi-Expert Mutual Learning for RLVR Advancement",
    "",
    changes="advantage, regularizer, sampling, guidance",
    evidence="reconstruction",
    left_out="fine-tuning on the experts' styles before",
    reports=(
        "Qwen2.5-Math-1.5B 4.89 % and Llama-3.2-1B 11.33 % on the mean over baselines like GRPO"
    ),
    traps=(
        "an expert with one row of a question has advantage 0: draw several times the number of "
        "experts; where all experts do equally well there is no mutual term"
    ),
)
