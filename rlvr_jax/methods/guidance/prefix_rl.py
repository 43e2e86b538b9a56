"""PrefixRL: hard prompts whose response begins with part of a right answer, beside plain ones.

"Reuse your FLOPs: Scaling RL on Hard Problems by Conditioning on Very Off-Policy Prefixes", of
which the abstract was read.

    a prefix is the first 40 to 80 % of a worked solution, 3 of each prompt
    A_i  = R_i - mean over the completions of one prefix
    loss = Σ -A_i logp / Σ n_i over the tokens behind the prefix

The prefix is context: nothing imitates it and no ratio weighs it, so every gradient is on-policy.
What is learned behind prefixes carries over to plain prompts. Aggregation, no standard deviation
and the share of prefixed asks by their 3k of 4k prompts are our readings. Cuts are between the
tokens of the solution as the policy's tokenizer reads it.
"""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np

from rlvr_jax.experience import experience, shuffled_epochs
from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.experience.views import begin_with
from rlvr_jax.objectives import group_centered, objective, reinforce, token_mean
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import Count, Unit
from rlvr_jax.types.parts import part


def prefix_fraction(seed: int, number: int, cut: int, low: float, high: float) -> float:
    """How much of its worked solution a cut of a prompt shows: uniform in [low, high), the same in
    every step of a run.

    Args:
      seed: of the run.
      number, cut: of the prompt, and of the cut among its cuts.
    """
    name = zlib.crc32(b"begin_with_prefixes")
    return float(np.random.default_rng([seed, name, number, cut]).uniform(low, high))


@part
def begin_with_prefixes(low: Unit, high: Unit, cuts: Count, share: Unit) -> Curriculum:
    """Lets some asks of the curricula before it begin with the first part of a worked solution.

    A prompt has `cuts` cuts, their lengths fixed for the run; an ask takes one at random. The
    prefix is context and not learned from; it counts in the budget of the response and is graded
    with the rest. The responses to one cut are a group.

    Args:
      low, high: of the solution's tokens that a cut shows, low below high, in [0, 1].
      cuts: of each prompt.
      share: of the asks that begin with a prefix, in [0, 1].
    Reads: Prompt.solution. Metrics: prefixed_share (of the asks), outcome_prefixed and
      outcome_plain (means over the groups of either kind).
    Raises:
      ValueError: a number outside its range; when a run is set up, a prompt without a solution.
    """
    if not low < high:
        raise ValueError(f"begin_with_prefixes: low must be below high {high}, got {low}")

    def propose(asks, state, turn):
        del state
        random = turn.random().spawn(turn.round + 1)[-1]
        begun = random.uniform(size=len(asks)) < share
        cut = random.integers(cuts, size=len(asks))
        return [
            replace(ask, view=begin_with(_fraction(turn, ask, k))) if prefixed else ask
            for ask, prefixed, k in zip(asks, begun, cut.tolist(), strict=True)
        ]

    def _fraction(turn, ask, cut):
        return prefix_fraction(turn.setting.seed, ask.number, cut, low, high)

    def observe(state, turn, seen, learned):
        del turn, learned
        told = {"outcome_prefixed": [], "outcome_plain": []}
        for batch in seen:
            for rows, outcomes in zip(batch.groups, batch.outcomes(), strict=True):
                ask = batch.asks[rows[0]]
                if not ask.rating and not np.isnan(outcomes).all():
                    kind = "outcome_prefixed" if ask.view.fraction else "outcome_plain"
                    told[kind].append(float(np.nanmean(outcomes)))
        number = sum(map(len, told.values()))
        means = {name: float(np.mean(values)) for name, values in told.items() if values}
        return state, means | {"prefixed_share": len(told["outcome_prefixed"]) / max(number, 1)}

    needs, views = frozenset({"solution"}), (begin_with(high),)
    return Curriculum(propose, observe=observe, reads=needs, views=views)


def prefix_rl(low: float = 0.4, high: float = 0.8, cuts: int = 3, share: float = 0.75) -> Recipe:
    """Centered rewards on what the policy writes behind prefixes of solutions.

    Args:
      low, high: of a solution's tokens that a prefix has.
      cuts: prefixes of each prompt.
      share: of the asks that begin with one.
    """
    curriculum = [shuffled_epochs(), begin_with_prefixes(low, high, cuts, share)]
    return Recipe(
        objective=objective(
            advantage=group_centered(),
            surrogate=reinforce(),
            aggregation=token_mean(),
        ),
        experience=experience(curriculum),
    )


METHOD = Method(
    prefix_rl,
    "Reuse your FLOPs: Scaling RL on Hard Problems by Conditioning on Very Off-Policy Prefixes",
    "",
    changes="advantage, curriculum, guidance",
    evidence="reconstruction",
    left_out="drawing the solutions by rejection sampling; hard prompts alone have prefixes",
    reports=(
        "twice as fast in compute as SFT on the traces and then RL, counting their sampling; "
        "AIME25 38.2 to 61.3; traces of another family of models work, too"
    ),
    traps=(
        "needs a solution of every prompt, and right ones; it is for hard prompts: on easy ones, "
        "or cut later, every completion is right and nothing is learned; the budget counts the "
        "prefix"
    ),
)
