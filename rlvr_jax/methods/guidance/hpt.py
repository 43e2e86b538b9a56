"""HPT: reinforcement where the policy solves the prompt, imitation where it does not.

"Towards a Unified View of Large Language Model Post-Training",
https://github.com/TsinghuaC3I/Unify-Post-Training

    group solved more than γ times:   Σ_t -A_i ρ_t / L,  A_i = R_i - mean over its own rollouts
    else:                             -logp of its demonstration, averaged over all such tokens
    loss = first + c · second - c_H mean H

γ, c and c_H are `solved`, `imitation_coefficient` and `entropy_coefficient`. The demonstration is
the worked solution, marked `off_policy`. It replaces one rollout of the group, and the other
rollouts are masked. The loss has no clip, no standard deviation and no division by rows. The
authors take both terms per micro-batch, this recipe over the batch, and they limit the gradient
norm at 80. For the 1.5B model, c is 0.3.

Left out: soft gates; a third band with off-policy RL on demonstrations (both off in the scripts).
Reports: Qwen2.5-Math-7B: above SFT, GRPO, SFT followed by GRPO, LUFFY and SRFT on six maths sets
and two others (no numbers).
Traps: The first term grows with the unmasked rows, imitation does not, so their balance depends on
the batch size. Groups that are all correct have no gradient. Set γ for the base model (0 of 8 for
Qwen, 2 of 8 for Llama).
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from rlvr_jax.experience import Stage, experience
from rlvr_jax.experience.batch import GroupTest
from rlvr_jax.experience.stages.donors.traces import GIVES, own_rows, solutions, trace_metrics
from rlvr_jax.objectives import Transform, imitate, objective, rollout_advantage, statistic_term
from rlvr_jax.objectives.statistics.groups import group_count, group_mean, group_sum, has_tokens
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.objectives.surrogates.aggregations import fixed_length_sum
from rlvr_jax.objectives.surrogates.policy_gradient import importance_weighted
from rlvr_jax.types import Function, Method, Recipe, Rollouts, Shown, is_correct, part, replace
from rlvr_jax.types.hyperparameters import (
    EntropyCoefficient,
    MaxLength,
    NonNegative,
    NonNegativeInt,
)


@part
def solved_at_most(number: NonNegativeInt) -> Function:
    """Groups with graded responses, of which at most `number` are correct (an outcome above ½)."""

    def few_correct(outcomes):
        known = ~np.isnan(outcomes)
        correct = np.sum(is_correct(np.nan_to_num(outcomes)), axis=1)
        return known.any(axis=1) & (correct <= number)

    return few_correct


@part(reads={"solution"}, writes=GIVES, by_row=True)
def demonstrate(when: GroupTest) -> Stage:
    """Replaces the last row of some groups by the worked solution of their prompt.

    The row of a group of one is not replaced.

    Args:
      when: groups that get a demonstration, such as `solved_at_most(0)`.
    Metrics: those of `add_traces`.
    """

    def apply(batch, actor, state, turn):
        wanted = np.asarray(when(batch.outcomes()))
        batch = own_rows(batch)
        traces, fit = solutions(actor, batch.requests_of(wanted), 1, turn)
        if traces is None:
            return batch, state, trace_metrics(traces, fit)
        shown = wanted.copy()
        shown[wanted] = fit
        remaining = [
            rows[: max(1, len(rows) - there)]
            for rows, there in zip(batch.groups, shown.astype(int), strict=True)
        ]
        places = np.repeat(np.arange(len(remaining), dtype=np.int32), list(map(len, remaining)))
        rest = batch.take(np.concatenate(remaining)).with_rollouts(group=places)
        return rest.with_groups(shown, traces, "append"), state, trace_metrics(traces, fit)

    return apply


@part
def solved_group_advantage(solved: NonNegativeInt) -> Transform:
    """A_i = R_i - mean over the policy's own rollouts, in groups that it solves; else 0.

    An own rollout that is the only one of its group has its reward as advantage.
    """

    def advantage(rollouts):
        own = ~rollouts.records["off_policy"]
        alone = group_count(rollouts.group, own) == 1
        mean = group_mean(rollouts.reward, rollouts.group, where=own)
        centered = rollouts.reward - jnp.where(alone, 0, mean)
        return jnp.where(own & ~needs_demonstration(rollouts, solved), centered, 0)

    return rollout_advantage(advantage, reads={"off_policy"})


def needs_demonstration(rollouts: Rollouts, solved: int) -> Bool[Array, "B"]:
    """Rows of groups in which the policy has solved the prompt at most `solved` times."""
    return num_solved(rollouts) <= solved


def num_solved(rollouts: Rollouts) -> Int[Array, "B"]:
    """Number of correct rollouts of the policy itself in the group of each row."""
    correct = is_correct(rollouts.outcome) & ~rollouts.records["off_policy"]
    return group_sum(correct.astype(jnp.int32), rollouts.group)


@part(reads={"off_policy"}, writes={"mask"})
def drop_demonstrated(solved: NonNegativeInt) -> Transform:
    """Masks demonstrations, and groups that the policy does not solve.

    Metrics: demonstrated_fraction (fraction of the rows with tokens that are in unsolved groups).
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        failed = needs_demonstration(rollouts, solved)
        mask = signals.mask & ~(rollouts.records["off_policy"] | failed)[:, None]
        fraction = masked_mean(failed, has_tokens(signals.mask)).astype(signals.advantage.dtype)
        return replace(signals, mask=mask), state, {"demonstrated_fraction": fraction}

    return apply


@part
def imitate_demonstrations(coefficient: NonNegative, solved: NonNegativeInt) -> Transform:
    """Adds c · token mean of -logp of the demonstrations of groups that the policy does not solve.

    Metrics: those of `imitate`.
    """

    def where(rollouts):
        return off_policy_tokens(rollouts) & needs_demonstration(rollouts, solved)[:, None]

    return imitate(coefficient, where, {"off_policy"})


def off_policy_tokens(rollouts: Rollouts) -> Bool[Array, "B T"]:
    """The tokens on the mask of rows that another policy wrote."""
    return rollouts.mask & rollouts.records["off_policy"][:, None]


def hpt(
    solved: NonNegativeInt = 0,
    imitation_coefficient: NonNegative = 1.0,
    entropy_coefficient: EntropyCoefficient = 0.001,
    max_length: MaxLength = 8192,
) -> Recipe:
    """Applies the policy gradient to groups that the policy solves, and imitation to the others.

    Args:
      solved: correct rollouts up to which the group's demonstration is imitated instead (γ).
      imitation_coefficient: weight of the imitation (c).
      entropy_coefficient: weight of the mean entropy of the tokens trained by reward (c_H).
    """
    bonus = [statistic_term(-entropy_coefficient, "entropy")] if entropy_coefficient else []
    return Recipe(
        objective=objective(
            advantage=solved_group_advantage(solved),
            transforms=[drop_demonstrated(solved)],
            surrogate=importance_weighted(),
            regularizers=[imitate_demonstrations(imitation_coefficient, solved), *bonus],
            aggregation=fixed_length_sum(max_length),
        ),
        experience=experience(stages=[demonstrate(solved_at_most(solved))]),
    )


METHOD = Method(
    hpt,
    changes="advantage, mask, surrogate, regularizer, guidance",
    baseline="batch",
    shown=Shown("brackets", "experience/traces", steps=300),
)
