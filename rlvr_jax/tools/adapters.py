"""Adapters: objects with `reset` and `step` as environments, and environments as such objects."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rlvr_jax.tools.base import Lost, as_text, awaited, in_time
from rlvr_jax.tools.environment import Environment, Reply


@dataclass(frozen=True)
class _Played:
    """An object, the prompt for which it was made, and its steps so far."""

    own: Any
    prompt: Any
    actions: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Episode:
    """The environment of objects with `reset()` and `step(action)`, such as gymnasium's.

    A step returns (observation, reward, terminated, truncated, info) or (observation, reward, done,
    info); observations are shown as text. Objects are copied before every step (`copy.deepcopy`).
    An object that cannot be copied is made again and repeats its steps, whose results should be
    equal. A step that raises or exceeds its limit is reported to the policy and counted
    (`step_errors`, `step_timeouts`); the object does not change. The outcome of a response is the
    last reward of an episode that ended, limited to [0, 1].

    Args:
      make: (prompt) -> a new object.
      read: (text of the policy) -> the action.
      stops: texts that end an action; the end of the response also ends it.
      role: role of the observations, see `Reply`.
      seconds: time limit of a step (seconds).
      characters: largest size of an observation; a longer one is truncated with a note.
    Raises:
      ValueError: a limit is not positive.

    Metrics: step_errors (steps that raise), step_timeouts (steps that pass their limit); those of
      the object's info.
    """

    make: Callable[[Any], Any]
    read: Callable[[str], Any] = str.strip
    stops: Sequence[str] = ()
    role: str = "user"
    seconds: float = 30.0
    characters: int = 8000
    judges: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "stops", tuple(self.stops))
        for name in ("seconds", "characters"):
            if not getattr(self, name) > 0:
                raise ValueError(f"episode: {name} must be positive, got {getattr(self, name)}")

    @property
    def label(self) -> str:
        return f"episode({getattr(self.make, '__name__', type(self.make).__name__)})"

    def start(self, prompt: Any) -> tuple[Any, Sequence[Mapping[str, str]]]:
        """The object after its `reset`, whose observation is in the prompt of the task."""
        return _Played(self._begun(prompt), prompt), []

    def reply(self, state: Any, text: str) -> Reply:
        """The result of a step on a copy of the object, so that a row can return to a state. A step
        that raises or exceeds its limit gets a reply in words and is counted; the state does not
        change."""
        counts = {"step_errors": 0.0, "step_timeouts": 0.0}
        try:
            after, result = in_time(lambda: self._step(state, text), self.seconds, self.label)
        except TimeoutError:
            result = f"Error: the step took longer than {self.seconds:g} seconds."
            return self._reply_of(state, result, counts | {"step_timeouts": 1.0})
        except Exception as error:  # a policy may write anything
            result = f"Error: {type(error).__name__}: {error}"
            return self._reply_of(state, result, counts | {"step_errors": 1.0})
        if len(result) not in (4, 5):
            raise ValueError(f"episode: step must return 4 or 5 values, got {len(result)}")
        shown, reward, *ends, info = result  # gymnasium has two ends: terminated, truncated
        counts |= {name: float(x) for name, x in info.items() if isinstance(x, int | float)}
        done = any(ends)
        outcome = min(max(float(reward), 0.0), 1.0) if done else None
        reply = self._reply_of(after, shown, counts)
        return replace(reply, done=done, reward=float(reward), outcome=outcome)

    def _begun(self, prompt: Any) -> Any:
        own = self.make(prompt)
        awaited(own.reset())
        return own

    def _step(self, state: _Played, text: str) -> tuple[_Played, Any]:
        try:
            own = copy.deepcopy(state.own)
        except Exception:  # it has parts that cannot be copied: a lock, a process, a file
            own = self._begun(state.prompt)
            for action in state.actions:
                awaited(own.step(action))
        action = self.read(text)
        result = awaited(own.step(action))
        return _Played(own, state.prompt, (*state.actions, action)), result

    def _reply_of(self, state: _Played, observation: Any, counts: Mapping[str, float]) -> Reply:
        return Reply(state, as_text(observation, self.characters), info=counts, role=self.role)


class Stepped:
    """An environment as an object with `reset(index)` and `step(action)`, such as InterCode's, for
    programs with their own loop.

    Args:
      environment: for example `sql_episodes(…)` of `rlvr_jax.tools.intercode`.
      prompts: prompts of a task; `index` is a position in them.
    Source: https://github.com/princeton-nlp/intercode (ic_env.py).
    """

    def __init__(self, environment: Environment, prompts: Sequence[Any]):
        self._environment, self._prompts = environment, prompts
        self._state, self._done = None, True

    def reset(self, index: int) -> tuple[str, dict[str, Any]]:
        """Starts the episode of a prompt; returns its text and an empty info."""
        prompt = self._prompts[index]
        self._state, _ = self._environment.start(prompt)
        self._done = False
        return prompt.text, {}

    def step(self, action: str) -> tuple[str, float, bool, dict[str, Any]]:
        """(observation, reward, done, info) of an action; info has the environment's counts, and
        the outcome of an episode that has ended.

        Raises:
          ValueError: no episode has started.
          Lost: the observation is unknown.
        """
        if self._done:
            raise ValueError(
                "step: an episode must be running, got none; start one with reset(index)"
            )
        reply = self._environment.reply(self._state, action)
        if reply.lost:
            raise Lost(self._environment.label)
        self._state, self._done = reply.state, reply.done
        info = dict(reply.info)
        if reply.outcome is not None:
            info["outcome"] = reply.outcome
        return reply.text or "", reply.reward or 0.0, reply.done, info


episode = Episode
stepped = Stepped
