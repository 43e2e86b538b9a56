"""PrefixRL: hard prompts with part of a correct solution as beginning, together with plain ones.

"Reuse your FLOPs: Scaling RL on Hard Problems by Conditioning on Very Off-Policy Prefixes" (only
the abstract was read)

    a prompt is hard if none of its first responses, before training, is correct
    a prefix is the first 40 to 80 % of a worked solution, 3 per hard prompt
    A_i  = R_i - mean over the completions of one prefix
    loss = Σ -A_i logp / Σ n_i over the tokens after the prefix

The prefix is context. It is neither imitated nor weighted by a ratio, so every gradient is
on-policy. Learning after prefixes transfers to plain prompts. The first step rates random prompts
and is trained on plain prompts; all later steps use the hard ones. Solutions come with the prompts.
`python -m rlvr_jax traces` samples them by rejection, as the paper does.

A reconstruction: the aggregation, the missing standard deviation and the fraction of prefixed
requests (from the paper's 3k of 4k prompts) are our readings. The paper rates with 512 responses;
the number of ratings is ours. Prefixes end between tokens of the policy's tokenizer.

Reports: half the compute of SFT on the solutions followed by RL, including their sampling. AIME25:
38.2 to 61.3 %. Solutions of another family of models also work.
Traps: The method requires a correct solution of every prompt. With longer prefixes, every
completion is correct and has no gradient. The budget includes the prefix. Without a hard prompt
among the rated ones, the run is a plain one.
"""

import zlib
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from rlvr_jax.experience import Curriculum, experience
from rlvr_jax.experience.curricula.batches import order_of, requests_for
from rlvr_jax.experience.curricula.history import outcomes_by, rated_rates, visits_of
from rlvr_jax.experience.curricula.picks import of_round, rarest_order
from rlvr_jax.experience.views import begin_with
from rlvr_jax.objectives import group_centered, objective, part, reinforce, token_mean
from rlvr_jax.types import Method, Recipe, Shown, arguments_of
from rlvr_jax.types.hyperparameters import Count, Unit


class _State(NamedTuple):
    """Per prompt: its pass rate before training (NaN: not rated), and its number of groups."""

    rate: np.ndarray
    times_sampled: np.ndarray


@part(reads={"solution"})
def begin_with_prefixes(
    low: Unit = 0.4,
    high: Unit = 0.8,
    cuts: Count = 3,
    fraction: Unit = 0.75,
    rated: Count = 256,
    rating_samples: Count = 32,
    most_solved: Unit = 0.0,
) -> Curriculum:
    """Picks hard prompts, and begins responses with the first part of a worked solution.

    The first step rates prompts and trains on shuffled epochs. Later steps take the least sampled
    hard prompts; a few of them are repeated. A prompt has `cuts` prefixes of constant length; a
    request takes one at random. The prefix is not trained on. It counts in the budget of the
    response and is graded with the rest. The responses to one prefix are a group.

    Args:
      low, high: range of the fraction of a solution's tokens in a prefix.
      cuts: prefixes of each prompt.
      fraction: fraction of the requests with a prefix.
      rated: random prompts that are rated.
      rating_samples: responses per rated prompt. They are not trained on.
      most_solved: pass rate up to which a rated prompt is hard.
    Metrics: hard_prompts (rated prompts up to that rate), prefixed_fraction (of the groups),
      outcome_prefixed, outcome_plain (means over the groups of each kind).
    """
    if not low < high:
        raise ValueError(f"begin_with_prefixes: low must be below high {high}, got {low}")

    def init(setting):
        prompts = len(setting.task.train)
        return _State(np.full(prompts, np.nan, np.float32), np.zeros(prompts, np.int32))

    def propose(requests, state, turn):
        setting, random = turn.setting, turn.random().spawn(turn.round + 1)[-1]
        hard = np.flatnonzero(state.rate <= most_solved)
        if not len(hard):
            order = order_of(setting).indices(turn.step, turn.round, setting.rounds)
            return [*ratings(state, turn, random), *requests_for(turn, order)]
        order = hard[rarest_order(turn.random(), state.times_sampled[hard])]
        order = np.resize(order, max(len(order), setting.prompts * setting.rounds))
        requests = requests_for(turn, of_round(order, turn))
        prefixed = random.uniform(size=len(requests)) < fraction
        cut = random.integers(cuts, size=len(requests)).tolist()

        def view(request, k):
            return begin_with(prefix_fraction(setting.seed, request.number, k, low, high))

        return [
            replace(request, view=view(request, k)) if chosen else request
            for request, chosen, k in zip(requests, prefixed, cut, strict=True)
        ]

    def ratings(state, turn, random):
        if turn.step or turn.round:
            return []
        chosen = random.permutation(len(state.rate))[:rated]
        return [
            replace(request, rating=True, samples=rating_samples)
            for request in requests_for(turn, chosen)
        ]

    def observe(state, turn, seen, learned):
        rate, times_sampled = state.rate.copy(), state.times_sampled.copy()
        for number, known in rated_rates(seen, len(rate)).items():
            rate[number] = known
        for visit in visits_of(seen, len(rate), undecided=True):
            times_sampled[visit.number] += 1
        labels = {True: "outcome_prefixed", False: "outcome_plain"}
        found = outcomes_by(seen, lambda request: labels[bool(request.view.fraction)])
        number = sum(map(len, found.values()))
        means = {name: float(np.mean(x)) for name, x in found.items()}
        means["prefixed_fraction"] = len(found.get(labels[True], ())) / max(number, 1)
        means["hard_prompts"] = float(np.sum(rate <= most_solved))
        return _State(rate, times_sampled), means

    return Curriculum(propose, init, observe, views=(begin_with(high),))


def prefix_fraction(seed: int, number: int, cut: int, low: float, high: float) -> float:
    """Fraction of the worked solution in a prefix: uniform in [low, high), constant during a run.

    Args:
      seed: seed of the run.
      number, cut: number of the prompt, and of the prefix among its prefixes.
      low, high: bounds of the fraction, in [0, 1].
    """
    name = zlib.crc32(b"begin_with_prefixes")
    return float(np.random.default_rng([seed, name, number, cut]).uniform(low, high))


@arguments_of(begin_with_prefixes)
def prefix_rl(**prefixes: Any) -> Recipe:
    """Applies centered rewards to responses to hard prompts, most of them after prefixes."""
    return Recipe(
        objective=objective(
            advantage=group_centered(),
            surrogate=reinforce(),
            aggregation=token_mean(),
        ),
        experience=experience(curriculum=begin_with_prefixes(**prefixes)),
    )


METHOD = Method(
    prefix_rl,
    changes="advantage, curriculum, guidance",
    evidence="reconstruction",
    shown=Shown(
        "brackets",
        "experience/prefixed_fraction",
        without={"fraction": 0},
        # After longer prefixes of these short solutions, 97 % of the responses are correct.
        hyperparameters={"low": 0.05, "high": 0.3, "rating_samples": 8},
        steps=300,
        within=2,
    ),
)
