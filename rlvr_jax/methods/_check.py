"""Checks custom code against the laws: `python -m rlvr_jax.methods my_file:my_method --check`."""

import inspect
from collections.abc import Callable
from typing import Any

from rlvr_jax import laws
from rlvr_jax.experience import (
    Curriculum,
    Draw,
    Experience,
    Stage,
    experience,
    laws as of_experience,
)
from rlvr_jax.methods import method
from rlvr_jax.objectives import (
    Aggregation,
    Objective,
    Surrogate,
    Transform,
    group_normalized,
    laws as of_objective,
    objective,
    ppo_clip,
    token_mean,
)
from rlvr_jax.own import own
from rlvr_jax.tasks import Task, laws as of_task
from rlvr_jax.types import Method, Recipe

MADE = "a Recipe, an Objective, a part of one of them, or a Task"


def report(name: str) -> tuple[str, int]:
    """Checks which laws a method, a part or a task fulfils.

    Args:
      name: a method, or "module:name" of a custom Recipe, Objective, Experience, part or
        Task. It may also be a function without required arguments that returns one.
    Returns:
      A table to print, and the number of broken laws.
    Raises:
      ValueError: no object has that name, or it is not one of these.
    """
    lines, broken, held = [], 0, 0
    for subject, (known, found) in _checks(name).items():
        lines += ["", f"{name}: laws of the {subject}"]
        width = max(map(len, found))
        for law, reason in found.items():
            word = "BROKEN" if reason else "holds "
            lines.append(f"  {word}  {law.ljust(width)}  {laws.statement(known[law])}")
            lines += [f"{' ' * (width + 12)}{line}" for line in reason.splitlines()]
            broken, held = broken + bool(reason), held + (not reason)
    summary = f"{held} laws hold, {broken} are broken" if broken else f"all {held} laws hold"
    return "\n".join([*lines[1:], "", summary]), broken


def _checks(name: str) -> dict[str, tuple[laws.Laws, dict[str, str]]]:
    if ":" not in name:
        return _of_method(method(name))
    make = _maker(name, own("--check", name))
    made = make()
    if isinstance(made, Recipe):
        return _of_method(method(name))
    if isinstance(made, Task):
        return {"task": (of_task.LAWS, of_task.check(make))}
    if isinstance(made, Experience):
        return _of_experience(make)
    if isinstance(made, Curriculum):
        return _of_experience(lambda: experience(curriculum=make()))
    if isinstance(made, Draw):
        return _of_experience(lambda: experience(draw=make()))
    if isinstance(made, Stage):
        return _of_experience(lambda: experience(stages=[make()]))
    if isinstance(made, Objective | Transform | Surrogate | Aggregation):
        return _of_objective(_around(made))
    raise ValueError(f"--check: {name} must be {MADE}, got {type(made).__name__}")


def _maker(name: str, found: Any) -> Callable[[], Any]:
    """() -> the object of a name; a function makes a new one at each call."""
    if not inspect.isfunction(found):
        return lambda: found
    required = [
        parameter.name
        for parameter in inspect.signature(found).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if required:
        raise ValueError(
            f"--check: {name} must have defaults for {', '.join(required)}; name an object that is"
            f" made with values instead, such as CHECKED = {found.__name__}({required[0]}=…)"
        )
    return found


def _around(made: Objective | Transform | Surrogate | Aggregation) -> Objective:
    """A loss that contains the part as advantage, regularizer or another transform."""
    if isinstance(made, Objective):
        return made
    surrogate = ppo_clip(low=0.2, high=0.2)
    chain = {"advantage": group_normalized(), "surrogate": surrogate, "aggregation": token_mean()}
    if isinstance(made, Surrogate):
        return objective(**chain | {"surrogate": made})
    if isinstance(made, Aggregation):
        return objective(**chain | {"aggregation": made})
    writes = made.writes or frozenset()
    if writes == {"advantage"}:
        return objective(**chain | {"advantage": made})
    if writes and writes <= {"penalty", "term", "chosen"}:
        return objective(**chain, regularizers=[made])
    return objective(**chain, transforms=[made])


def _of_method(card: Method) -> dict[str, tuple[laws.Laws, dict[str, str]]]:
    found = _of_objective(card.recipe(**card.small).objective, card)
    if card.recipe().experience is not None:
        found |= _of_experience(lambda: card.recipe().experience)
    return found


def _of_objective(made, card=None):
    return {"objective": (of_objective.LAWS, of_objective.check(made, card))}


def _of_experience(make):
    return {"experience": (of_experience.LAWS, of_experience.check(make))}
