"""A judge reads texts and returns numbers, or NaN without a verdict."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from rlvr_jax.arguments import check_arguments
from rlvr_jax.judges.calls import Call, Question, Reply, Spending
from rlvr_jax.judges.parse import Parse
from rlvr_jax.judges.prompts import PromptOf
from rlvr_jax.judges.replies import Known, Replies, key_of
from rlvr_jax.types.hyperparameters import Count, NonNegativeInt

__all__ = ["Judge", "Verdicts", "alone"]

Query = Callable[[Sequence[Question]], Sequence[Reply]]
"""(questions) -> replies to all questions, each requested by one process."""


class Verdicts(NamedTuple):
    """A judge's verdicts on some texts.

    Fields:
      numbers: [n, K], NaN without a verdict.
      words: last reply to each text; "" without one.
      metrics: counts of texts: judge_asked, judge_no_verdict, and judge_unreadable (once per
        unreadable attempt). Counts of the new replies of this step: judge_calls, judge_tokens and
        judge_failed/<reason>.

    Metrics: judge_asked, judge_no_verdict (texts), judge_unreadable (texts, once for each
      unreadable try), judge_calls, judge_tokens, judge_failed/<reason> (of new replies).
    """

    numbers: np.ndarray
    words: list[str]
    metrics: dict[str, float]


def alone(query: Query, questions: Sequence[Question]) -> Sequence[Reply]:
    """One process requests all replies."""
    return query(questions)


@dataclass(frozen=True)
class Judge:
    """Requests numbers from a judge.

    Fields:
      call: source of replies; None: the policy, which the caller of `query` sets here.
      prompt_of: (texts by name) -> messages; an empty list: no question.
      parse: (reply) -> numbers, or None.
      names: names of the numbers that `parse` reads.
      tries: largest number of questions about one text, if replies fail or are unreadable.
      most_calls, most_tokens: budget of the run; None: unlimited.
      without: value of each number for a text without a question.
      replies: stored replies.
    """

    call: Call | None
    prompt_of: PromptOf
    parse: Parse
    names: Sequence[str]
    tries: Count = 2
    most_calls: NonNegativeInt | None = None
    most_tokens: NonNegativeInt | None = None
    without: float = float("nan")
    replies: Replies = field(default_factory=Replies)

    def __post_init__(self) -> None:
        if not self.names or isinstance(self.names, str):
            raise ValueError(f"Judge: names must be those of the numbers, got {self.names!r}")
        bounded = ("tries", "most_calls", "most_tokens")
        check_arguments(Judge, {name: getattr(self, name) for name in bounded})

    def __repr__(self) -> str:
        """The names of the numbers: labels of a run's parts must not contain server addresses."""
        return f"Judge({', '.join(self.names)})"

    def query(
        self,
        texts: Sequence[Mapping[str, Any]],
        step: int,
        spread: Callable[[Query, Sequence[Question]], Sequence[Reply]] = alone,
        processes: int = 1,
    ) -> Verdicts:
        """The verdicts on some texts; equal texts share one question.

        Args:
          texts: arguments of `prompt_of` for each text.
          step: step of the run; replies are known from their step on.
          spread: divides questions among processes and returns all replies to each process.
          processes: number of processes that send requests simultaneously, for the budget.
        """
        messages = [tuple(self.prompt_of(**each)) for each in texts]
        numbers = np.full((len(texts), len(self.names)), np.nan)
        numbers[[not own for own in messages]] = self.without
        words = [""] * len(texts)
        open_ = [place for place, own in enumerate(messages) if own]
        metrics = {"judge_calls": 0, "judge_tokens": 0, "judge_unreadable": 0}
        metrics["judge_asked"] = len(open_)
        failures: Counter[str] = Counter()
        for attempt in range(self.tries):
            if not open_:
                break
            asked = {place: Question(messages[place], attempt) for place in open_}
            known = self._replies(asked, step, spread, processes)
            for key, (_, reply) in dict(known.values()).items():
                if not self.replies.counted(key, step):
                    metrics["judge_calls"] += reply.calls
                    metrics["judge_tokens"] += reply.tokens
                    failures[reply.failure] += 1
            still = []
            for place in open_:
                _, (_, reply) = known[place]
                found = None if reply.text is None else self.parse(reply.text)
                words[place] = reply.text or words[place]
                if found is None:
                    metrics["judge_unreadable"] += reply.text is not None
                    still.append(place)
                else:
                    numbers[place] = found
            open_ = still
        metrics["judge_no_verdict"] = len(open_)
        metrics |= {f"judge_failed/{why}": count for why, count in failures.items() if why}
        return Verdicts(numbers, words, {name: float(value) for name, value in metrics.items()})

    def _replies(self, asked, step, spread, processes) -> dict[int, tuple[str, Known]]:
        """Key and reply of each question by its position; unknown replies are requested."""
        if (call := self.call) is None:
            raise ValueError("Judge: call must be a source of replies, got None")
        keys = {place: key_of(call.identity, each) for place, each in asked.items()}
        new = {
            keys[place]: question
            for place, question in asked.items()
            if self.replies.find(keys[place], step) is None
        }
        if new:
            budget = (self.most_calls, self.most_tokens)
            spending = Spending(**self.replies.left(*budget, processes))
            replies = spread(lambda part: call.query(part, spending), list(new.values()))
            self.replies.keep(list(new), replies, step, budget, processes)
        return {
            place: (key, known)
            for place, key in keys.items()
            if (known := self.replies.find(key, step)) is not None
        }
