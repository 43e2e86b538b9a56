"""Other people's environments: objects with `reset` and `step`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlvr_jax.tools.environment import Reply

__all__ = ["Episode", "episode"]


@dataclass(frozen=True)
class Episode:
    """An environment of objects that live for one episode; see `episode`."""

    make: Callable[[Any], Any]
    read: Callable[[str], Any]
    stops: tuple[str, ...]
    role: str
    label: str
    judges: bool = True

    def start(self, prompt: Any) -> tuple[Any, Sequence[Mapping[str, str]]]:
        """The object after its `reset`; what that shows stands in the prompt of the task."""
        own = self.make(prompt)
        own.reset()
        return own, []

    def reply(self, state: Any, text: str) -> Reply:
        """What a step of a copy of the object says, so that a row can go back to a state."""
        own = copy.deepcopy(state)
        told = own.step(self.read(text))
        if len(told) == 5:  # gymnasium: observation, reward, terminated, truncated, info
            shown, reward, ended, cut, info = told
            done = bool(ended or cut)
        elif len(told) == 4:
            shown, reward, done, info = told
        else:
            raise ValueError(f"episode: step must return 4 or 5 values, got {len(told)}")
        numbers = {
            name: float(value) for name, value in info.items() if isinstance(value, int | float)
        }
        outcome = min(max(float(reward), 0.0), 1.0) if done else None
        return Reply(own, str(shown), bool(done), float(reward), outcome, numbers, self.role)


def episode(
    make: Callable[[Any], Any],
    read: Callable[[str], Any] = str.strip,
    stops: Sequence[str] = (),
    role: str = "user",
) -> Episode:
    """The environment of objects with `reset()` and `step(action)`, as gymnasium's are.

    A step returns (observation, reward, terminated, truncated, info) or (observation, reward, done,
    info); observations are shown as text. Objects are copied before every step (`copy.deepcopy`).
    The outcome of a response is the last reward of an episode that ended, cut to [0, 1].

    Args:
      make: (prompt) -> a new object.
      read: what the policy wrote -> the action.
      stops: texts behind which an action ends; it ends where the response does, too.
      role: of the observations, see `Reply`.
    """
    name = getattr(make, "__name__", type(make).__name__)
    return Episode(make, read, tuple(stops), role, f"episode({name})")
