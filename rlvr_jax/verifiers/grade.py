"""The grade of a response: what every verifier returns and what a run trains on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

LOST, TIMED_OUT = "lost", "timed out"
"""Stages of grades: the process was lost; the process was stopped at its time limit."""

_ROUNDING = 1e-6


class Comparison(NamedTuple):
    """A judge's comparison of a response with another one.

    Fields:
      other: row of the other response (`Rollouts.rollout_id`).
      response: beginning of the other response.
      first: whether this response was shown before the other one.
      scores: scores of this and of the other response; None if they could not be read.
      words: beginning of the judge's reply.
    """

    other: int
    response: str
    first: bool
    scores: tuple[float, float] | None
    words: str


@dataclass(frozen=True)
class Grade:
    """The verifier's result for one response; numbers of numpy become Python's.

    Fields:
      outcome: correctness in [0, 1]; pass rates and filters read it. None means ungraded, for
        example because the verifier's process was lost, which is not the policy's fault. A run
        removes an ungraded response from the loss and from its group. An evaluation counts it as
        incorrect. Both count it in the metric `verifier_no_verdict`.
      reward: the training signal; equal to the outcome unless the task changes it. None if and
        only if the response is ungraded.
      timed_out: the verifier was stopped; the outcome is then 0, and the run counts it.
      info: further numbers, averaged into metrics by name; NaN does not count.
      answer: the final answer; equal texts are equal answers. None or white space: the response or
        the task has no answers (`Task.answers`).
      stage: stage at which the verifier decided, a word or two such as "exact"; for the samples.
      reply: text of a judge; for the samples.
      compared: a judge's comparisons with other responses; for the samples.
    Raises:
      ValueError: the outcome is outside [0, 1]; a reward without an outcome; a field that must be a
        number or a text is not.
    """

    outcome: float | None
    reward: float | None = None
    timed_out: bool = False
    info: Mapping[str, float] = field(default_factory=dict)
    answer: str | None = None
    stage: str = ""
    reply: str = ""
    compared: Sequence[Comparison] = ()

    def __post_init__(self) -> None:
        if self.outcome is None and self.reward is not None:
            raise ValueError(
                f"Grade: reward must be None where outcome is None, got {self.reward!r}"
            )
        if not isinstance(self.info, Mapping):
            raise ValueError(f"Grade: info must be numbers by name, got {self.info!r}")
        for name in ("answer", "stage", "reply"):
            text = getattr(self, name)
            if not isinstance(text, str) and (text is not None or name != "answer"):
                raise ValueError(f"Grade: {name} must be a text, got {text!r}")
        reward = self.outcome if self.reward is None else self.reward
        # Grades cross processes as JSON, which has no numbers of numpy.
        if self.outcome is not None:
            object.__setattr__(self, "outcome", _fraction(_number("outcome", self.outcome)))
            object.__setattr__(self, "reward", _number("reward", reward))
        object.__setattr__(self, "timed_out", bool(self.timed_out))
        info = {name: _number(f"info[{name!r}]", x) for name, x in self.info.items()}
        object.__setattr__(self, "info", info)
        compared = tuple(Comparison(*one) for one in self.compared)
        object.__setattr__(self, "compared", compared)
        object.__setattr__(self, "answer", (self.answer or "").strip() or None)


def _number(what: str, value: Any) -> float:
    try:
        if not isinstance(value, (str, bytes)):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"Grade: {what} must be a number of Python or numpy, got {value!r}")


def _fraction(outcome: float) -> float:
    """An outcome in [0, 1]; sums of parts may exceed the range by a rounding error."""
    if not -_ROUNDING <= outcome <= 1 + _ROUNDING:
        raise ValueError(
            f"Grade: outcome must be in [0, 1], got {outcome}. For a reward of another range use"
            f" Grade(outcome, reward={outcome}), for several rewards store each in info,"
            " under a name of Task.rewards"
        )
    return min(max(outcome, 0.0), 1.0)
