"""Mixed-CoT-RL: half of the responses begin with a solution that contains one planted error.

"Can Large Reasoning Models Improve Accuracy on Mathematical Tasks Using Flawed Thinking?" (only the
abstract was read)

    prompts   clean, or with the beginning of a worked solution that has exactly one error: an
              incorrect result ("calculation") or a missing step ("reasoning"); it ends there
    R         = 1 if the final answer is correct, else 0
    loss      = GRPO's clip on the token mean, over the responses to one beginning

The planted text is context and is never trained on. Evaluate on clean and on flawed prompts; the
curves report both. A reconstruction: fractions, truncation and clip are ours. Tasks have the
beginnings as `Prompt.meta["flawed"]`, as `partial_sums` and `brackets` do.

Reports: Qwen3-4B after flawed beginnings: 24 % (clean RL: 19 %, base: 20 %). On clean prompts: 41
%, as with clean RL. Reasoning errors help more.
Traps: Prompts without flawed beginnings in `Prompt.meta` are shown unchanged; for them, the method
is GRPO. A flaw must change the answer.
"""

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rlvr_jax.experience import Curriculum, experience, part, shuffled_epochs
from rlvr_jax.experience.curricula.history import outcomes_by
from rlvr_jax.experience.requests import PLAIN, ShownPrompt, View, shows_nothing
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.types import Method, Recipe, Shown
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon, Unit


@part
def mix_views(views: Sequence[View], fractions: Sequence[float]) -> Curriculum:
    """Shows some of the requested prompts under other views, and the others unchanged.

    Fractions are exact in every round; the choice of prompts is random.

    Args:
      views: at least one.
      fractions: fraction of the prompts for each view, with a sum of at most 1.
    Metrics: outcome/<view>, outcome/plain (means over the groups; plain includes prompts that a
      view shows unchanged), flawed_fraction (fraction of the groups that a view changes).
    Raises:
      ValueError: no views, another number of fractions, negative ones, or a sum above 1.
    """
    if not views or len(views) != len(fractions):
        raise ValueError(
            f"mix_views: fractions must be one for each of the {len(views)} views, at least one,"
            f" got {list(fractions)}"
        )
    if min(fractions) < 0 or not sum(fractions) <= 1:
        raise ValueError(
            f"mix_views: fractions must be at least 0 and at most 1 together, got {list(fractions)}"
        )

    def propose(requests, state, turn):
        random = turn.random().spawn(turn.round + 1)[-1]
        kinds = random.permutation(np.array(exact_fractions(len(requests), fractions), int))
        return [
            request if kind < 0 else replace(request, view=views[kind])
            for request, kind in zip(requests, kinds.tolist(), strict=True)
        ]

    def observe(state, turn, seen, learned):
        def label(request):
            return PLAIN.label if shows_nothing(request, turn.setting.task) else request.view.label

        found = outcomes_by(seen, label)
        number = sum(map(len, found.values()))
        metrics = {f"outcome/{name}": float(np.mean(x)) for name, x in found.items()}
        metrics["flawed_fraction"] = 1 - len(found.get(PLAIN.label, ())) / max(number, 1)
        return state, metrics

    return Curriculum(propose, observe=observe, views=tuple(views))


def exact_fractions(number: int, fractions: Sequence[float]) -> list[int]:
    """The kind of each of `number` places, in blocks; -1 for the rest.

    Block sizes are the integers nearest to the given fractions.

    Args:
      fractions: of each kind, with a sum of at most 1.
    """
    ends = [round(number * total) for total in itertools.accumulate(fractions)]
    return [next((kind for kind, end in enumerate(ends) if i < end), -1) for i in range(number)]


@part(reads={"meta"})
def begin_with_flaw(kind: str) -> View:
    """Begins the response with `Prompt.meta["flawed"][kind]`, which is not trained on.

    A prompt without one is shown unchanged.
    """

    def show(prompt: Prompt, task: Task) -> ShownPrompt:
        return ShownPrompt(prompt.text, prompt.meta.get("flawed", {}).get(kind, ""))

    return View(show)


def flawed_prefix(
    kinds: Sequence[str] = ("calculation", "reasoning"),
    fractions: Sequence[Unit] = (0.25, 0.25),
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """Applies GRPO to clean prompts and to responses that begin with an error.

    Args:
      kinds: kinds of errors, names in `Prompt.meta["flawed"]`.
      fractions: fraction of a step's prompts for each kind.
    """
    views = [begin_with_flaw(kind) for kind in kinds]
    return Recipe(
        objective=clipped_objective(clip_low, clip_high, epsilon=epsilon),
        experience=experience([shuffled_epochs(), mix_views(views, fractions)]),
    )


METHOD = Method(
    flawed_prefix,
    changes="curriculum, guidance",
    evidence="reconstruction",
    shown=Shown("brackets", "experience/flawed_fraction", steps=300),
)
