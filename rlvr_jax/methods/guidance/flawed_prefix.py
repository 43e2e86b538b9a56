"""Mixed-CoT-RL: half of the answers begin with a solution in which one error is planted.

"Can Large Reasoning Models Improve Accuracy on Mathematical Tasks Using Flawed Thinking?", of which
the abstract was read.

    prompts   clean, or begun with a worked solution that has exactly one error: a wrong result
              ("calculation") or a step left out ("reasoning"), cut right behind it
    R         = 1 if the final answer is right, else 0
    loss      = GRPO's clip on the token mean, within the answers to one prefix

The planted words are context and never learned from. Evaluate on clean prompts and on begun ones:
curves tell both. Shares, cut and clip are ours. Tasks bring the prefixes as
`Prompt.meta["flawed"]`, as `partial_sums` does; a prompt without one is asked as it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rlvr_jax.experience import experience, shuffled_epochs
from rlvr_jax.experience.asks import PLAIN, Shown, View, shows_nothing
from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.objectives import group_normalized
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon
from rlvr_jax.types.parts import part


def exact_shares(number: int, shares: Sequence[float]) -> list[int]:
    """Which of several kinds each of some places has, in blocks, their sizes as near to the shares
    as whole numbers can be; -1 for the rest.

    Args:
      shares: of the kinds, whose sum is at most 1.
    """
    ends = [round(number * total) for total in itertools.accumulate(shares)]
    return [next((kind for kind, end in enumerate(ends) if i < end), -1) for i in range(number)]


@part
def mix_views(views: Sequence[View], shares: Sequence[float]) -> Curriculum:
    """Asks some of what the curricula before it ask under other views, the others as they are.

    Shares are exact in every round; which ask gets which view is random.

    Args:
      views: at least one.
      shares: of the asks, one for each view, whose sum is at most 1.
    Reads: what the views read. Metrics: outcome/<view> and outcome/plain, means over the groups;
      plain is also what a view shows as it is.
    Raises:
      ValueError: no views, another number of shares, or shares that are negative or above 1
        together.
    """
    if not views or len(views) != len(shares):
        raise ValueError(
            f"mix_views: shares must be one for each of the {len(views)} views, at least one, got"
            f" {list(shares)}"
        )
    if min(shares) < 0 or not sum(shares) <= 1:
        raise ValueError(
            f"mix_views: shares must be at least 0 and at most 1 together, got {list(shares)}"
        )

    def propose(asks, state, turn):
        del state
        kinds = np.array(exact_shares(len(asks), shares), int)
        random = turn.random().spawn(turn.round + 1)[-1]
        kinds = random.permutation(kinds)
        return [
            ask if kind < 0 else replace(ask, view=views[kind])
            for ask, kind in zip(asks, kinds.tolist(), strict=True)
        ]

    def observe(state, turn, seen, learned):
        del learned
        told: dict[str, list[float]] = {}
        for batch in seen:
            for rows, outcomes in zip(batch.groups, batch.outcomes(), strict=True):
                ask = batch.asks[rows[0]]
                if not ask.rating and not np.isnan(outcomes).all():
                    bare = shows_nothing(ask, turn.setting.task)
                    label = PLAIN.label if bare else ask.view.label
                    told.setdefault(label, []).append(float(np.nanmean(outcomes)))
        return state, {f"outcome/{name}": float(np.mean(x)) for name, x in told.items()}

    return Curriculum(
        propose,
        observe=observe,
        reads=frozenset().union(*(view.reads for view in views)),
        views=tuple(views),
    )


@part
def begin_with_flaw(kind: str) -> View:
    """Lets the response begin with a worked solution up to a planted error, which nobody learns.

    It is `Prompt.meta["flawed"][kind]`; a prompt without one is shown as it is.

    Args:
      kind: of the error, such as "calculation".
    """

    def show(prompt: Prompt, task: Task) -> Shown:
        del task
        return Shown(prompt.text, prompt.meta.get("flawed", {}).get(kind, ""))

    return View(show, frozenset({"meta"}))


def flawed_prefix(
    kinds: Sequence[str] = ("calculation", "reasoning"),
    shares: Sequence[float] = (0.25, 0.25),
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO on clean prompts and on answers that begin with an error.

    Args:
      kinds: of errors, names in `Prompt.meta["flawed"]`.
      shares: of the prompts of a step that begin with each.
    """
    views = [begin_with_flaw(kind) for kind in kinds]
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low, clip_high=clip_high, advantage=group_normalized(epsilon)
        ),
        experience=experience([shuffled_epochs(), mix_views(views, shares)]),
    )


METHOD = Method(
    flawed_prefix,
    "Can Large Reasoning Models Improve Accuracy on Mathematical Tasks Using Flawed Thinking?",
    "",
    changes="curriculum, guidance",
    evidence="reconstruction",
    reports=(
        "Qwen3-4B behind flawed beginnings: 24 % (clean RL 19, base 20), clean 41 as by clean RL; "
        "reasoning errors help more"
    ),
    traps=(
        "prompts without flawed beginnings in `Prompt.meta` are asked as they are, so it is GRPO "
        "there; a flaw that does not change the answer is none; report clean and begun accuracy "
        "apart"
    ),
)
