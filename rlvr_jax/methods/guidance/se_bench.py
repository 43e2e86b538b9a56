"""SE-Bench, closed RL: sample with the documentation in the prompt, learn without it.

Yuan et al. 2026, "SE-Bench: Benchmarking Self-Evolution with Knowledge Internalization",
https://arxiv.org/abs/2602.04811, https://github.com/thunlp/SE-Bench

    o_1 … o_N ~ π_old(· | documentation, x)          sampled with the documentation
    ρ_t  = π(o_t | x, o_<t) / π_old(o_t | x, o_<t)   both without it: 1 at the first update
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / Σ n_i

The documentation is `Prompt.hints`; evaluations never show it. The gap between the two prompts is
not corrected, as in the authors' code. It computes log-probs under the sampling prompt and does not
use them. With `closed=False` (open) the documentation stays in the prompt of the loss.

Left out: closed SFT, which imitates the correct rows without the documentation; programs with
tests (`renamed_package` has values).
Reports: open training prevents retention, closed SFT retains, RL does not fully.
Traps: A response that quotes the documentation is learned as a hallucination of it.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from rlvr_jax.experience import PLAIN, Draw, ShownPrompt, View, experience, part
from rlvr_jax.experience.views import NOTE
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.types import Method, Recipe, Shown, arguments_of


@part(reads={"hints"})
def documentation() -> View:
    """Shows all hints of a prompt, in the form of `Task.show_hint` or after the prompt's text."""

    def show(prompt: Prompt, task: Task) -> ShownPrompt:
        text = "\n".join(prompt.hints)
        if not text:
            return ShownPrompt(prompt.text)
        if task.show_hint is not None:
            return ShownPrompt(task.show_hint(prompt, text))
        return ShownPrompt(f"{prompt.text}{NOTE}{text}")

    return View(show)


@part(reads={"hints"})
def draw_with(view: View, closed: bool = True) -> Draw:
    """Samples every response under a view, for training.

    Args:
      view: such as `documentation()`.
      closed: rows are trained, and their old log-probs computed, under the plain prompt.
    Metrics: spliced_fraction (fraction of the rows that are trained under another prompt than they
      were sampled under).
    """

    def apply(requests, actor, state, turn):
        batch = actor.draw([replace(request, view=view) for request in requests], turn.key)
        if not closed:
            return batch, state, {"spliced_fraction": 0.0}
        plain = [replace(request, view=PLAIN) for request in batch.requests]
        tokens, length = actor.prompts(plain)
        shown = batch.rollouts.prompt_tokens, batch.rollouts.prompt_length
        moved = [
            not np.array_equal(own[:n], other[:m])
            for own, n, other, m in zip(tokens, length, *shown, strict=True)
        ]
        batch = batch.with_rollouts(prompt_tokens=tokens, prompt_length=length)
        return batch, state, {"spliced_fraction": float(np.mean(moved))}

    return Draw(apply, views=(view, PLAIN))


@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon")
def se_bench(closed: bool = True, **clip: Any) -> Recipe:
    """Applies GRPO's advantages to responses that were sampled with the documentation.

    Args:
      closed: the loss has the prompt without the documentation; False: with it.
    """
    return Recipe(
        objective=clipped_objective(**clip),
        experience=experience(draw=draw_with(documentation(), closed)),
    )


METHOD = Method(
    se_bench,
    changes="sampling, guidance",
    shown=Shown("hinted_brackets", "experience/spliced_fraction", without={"closed": False}),
)
