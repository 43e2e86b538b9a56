"""The equations of a brackets trace, each right if a solution of the prompt begins so."""

from rlvr_jax.tasks.base import Prompt, StepScore
from rlvr_jax.tasks.bracket_equations import equation_scores
from rlvr_jax.tasks.brackets import legal_attempts


def path_scores(prompt: Prompt, text: str) -> list[StepScore]:
    """The steps of `equation_scores`, with score 1 where the attempt up to its end is how one
    begins that reaches the target, else 0: an equation may be right and lead nowhere.

    Args:
      prompt: of brackets.
    """
    *numbers, target = prompt.answer
    ways = [attempt.text for attempt in legal_attempts(*numbers) if attempt.value == target]
    scored = []
    for step in equation_scores(prompt, text):
        attempt = text[: step.end].rpartition(";")[2].split()
        begun = any(way.split()[: len(attempt)] == attempt for way in ways)
        scored.append(StepScore(step.end, float(begun)))
    return scored
