"""PrefixRL: hard prompts with part of a correct solution as beginning, together with plain ones.

"Reuse your FLOPs: Scaling RL on Hard Problems by Conditioning on Very Off-Policy Prefixes" (only
the abstract was read)

    a prefix is the first 40 to 80 % of a worked solution, 3 per prompt
    A_i  = R_i - mean over the completions of one prefix
    loss = Σ -A_i logp / Σ n_i over the tokens after the prefix

The prefix is context. It is neither imitated nor weighted by a ratio, so every gradient is
on-policy. Learning after prefixes transfers to plain prompts. A reconstruction: the aggregation,
the missing standard deviation and the fraction of prefixed requests (from the paper's 3k of 4k
prompts) are our readings. Prefixes end between tokens of the policy's tokenizer.

Left out: the sampling of solutions by rejection; prefixes for hard prompts only.
Reports: half the compute of SFT on the solutions followed by RL, including their sampling. AIME25:
38.2 to 61.3 %. Solutions of another family of models also work.
Traps: The method requires a correct solution of every prompt. On easy prompts, or with longer
prefixes, every completion is correct and has no gradient. The budget includes the prefix.
"""

import zlib
from dataclasses import replace

import numpy as np

from rlvr_jax.experience import Curriculum, experience, shuffled_epochs
from rlvr_jax.experience.curricula.history import outcomes_by
from rlvr_jax.experience.views import begin_with
from rlvr_jax.objectives import group_centered, objective, part, reinforce, token_mean
from rlvr_jax.types import Method, Recipe, Shown
from rlvr_jax.types.hyperparameters import Count, Unit


@part(reads={"solution"})
def begin_with_prefixes(low: Unit, high: Unit, cuts: Count, fraction: Unit) -> Curriculum:
    """Begins some of the requested responses with the first part of a worked solution.

    A prompt has `cuts` prefixes of constant length; a request takes one at random. The prefix is
    not trained on. It counts in the budget of the response and is graded with the rest. The
    responses to one prefix are a group.

    Args:
      low, high: bounds of the fraction of the solution in a prefix.
      cuts: prefixes of each prompt.
      fraction: fraction of the requests that begin with a prefix.
    Metrics: prefixed_fraction (of the groups), outcome_prefixed, outcome_plain (means over the
      groups of each kind).
    """
    if not low < high:
        raise ValueError(f"begin_with_prefixes: low must be below high {high}, got {low}")

    def propose(requests, state, turn):
        seed, random = turn.setting.seed, turn.random().spawn(turn.round + 1)[-1]
        prefixed = random.uniform(size=len(requests)) < fraction
        cut = random.integers(cuts, size=len(requests)).tolist()

        def view(request, k):
            return begin_with(prefix_fraction(seed, request.number, k, low, high))

        return [
            replace(request, view=view(request, k)) if chosen else request
            for request, chosen, k in zip(requests, prefixed, cut, strict=True)
        ]

    def observe(state, turn, seen, learned):
        labels = {True: "outcome_prefixed", False: "outcome_plain"}
        found = outcomes_by(seen, lambda request: labels[bool(request.view.fraction)])
        number = sum(map(len, found.values()))
        means = {name: float(np.mean(x)) for name, x in found.items()}
        means["prefixed_fraction"] = len(found.get(labels[True], ())) / max(number, 1)
        return state, means

    return Curriculum(propose, observe=observe, views=(begin_with(high),))


def prefix_fraction(seed: int, number: int, cut: int, low: float, high: float) -> float:
    """Fraction of the worked solution in a prefix: uniform in [low, high), constant during a run.

    Args:
      seed: seed of the run.
      number, cut: number of the prompt, and of the prefix among its prefixes.
      low, high: bounds of the fraction, in [0, 1].
    """
    name = zlib.crc32(b"begin_with_prefixes")
    return float(np.random.default_rng([seed, name, number, cut]).uniform(low, high))


def prefix_rl(low: Unit = 0.4, high: Unit = 0.8, cuts: Count = 3, fraction: Unit = 0.75) -> Recipe:
    """Applies centered rewards to responses after prefixes of solutions.

    Args:
      low, high: range of the fraction of a solution's tokens in a prefix.
      cuts: prefixes of each prompt.
      fraction: fraction of the requests with a prefix.
    """
    return Recipe(
        objective=objective(
            advantage=group_centered(),
            surrogate=reinforce(),
            aggregation=token_mean(),
        ),
        experience=experience([shuffled_epochs(), begin_with_prefixes(low, high, cuts, fraction)]),
    )


METHOD = Method(
    prefix_rl,
    changes="advantage, curriculum, guidance",
    evidence="reconstruction",
    shown=Shown("brackets", "experience/prefixed_fraction", without={"fraction": 0}, steps=300),
)
