"""A judge: texts in, numbers out, or no verdict."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from rlvr_jax.judges.calls import Call, Question, Reply, Spending
from rlvr_jax.judges.parse import Parse
from rlvr_jax.judges.prompts import PromptOf
from rlvr_jax.judges.replies import Known, Replies, key_of

__all__ = ["Judge", "Verdicts", "alone"]

Spread = Callable[
    [Callable[[Sequence[Question]], Sequence[Reply]], Sequence[Question]], Sequence[Reply]
]
"""(ask, questions) -> replies to all of them, each asked by one process."""


class Verdicts(NamedTuple):
    """What a judge said.

    Fields:
      numbers: [n, K], NaN where there is none.
      words: of each text the last words that came back, "" where none did.
      metrics: counts: judge_asked (texts), judge_no_verdict (texts), judge_unreadable (texts, once
        for each try that could not be read), and of the replies that came in this step, each told
        of once, judge_calls, judge_tokens and judge_failed/<why>.
    """

    numbers: np.ndarray
    words: list[str]
    metrics: dict[str, float]


def alone(
    ask: Callable[[Sequence[Question]], Sequence[Reply]], questions: Sequence[Question]
) -> Sequence[Reply]:
    """One process asks everything."""
    return ask(questions)


@dataclass(frozen=True)
class Judge:
    """Asks for numbers.

    Fields:
      call: who is asked; None: the policy itself, which whoever asks puts here.
      prompt_of: texts by name -> messages; none where there is nothing to ask.
      parse: words -> numbers, or None.
      names: of the numbers, as many as `parse` reads.
      tries: questions at most to one text, while the words cannot be read or do not come.
      most_calls, most_tokens: the budget of the run; None: none.
      without: each number of a text about which nothing is asked.
      replies: what was said before.
    Raises:
      ValueError: no names; fewer than one try; a budget below 0.
    """

    call: Call | None
    prompt_of: PromptOf
    parse: Parse
    names: Sequence[str]
    tries: int = 2
    most_calls: int | None = None
    most_tokens: int | None = None
    without: float = float("nan")
    replies: Replies = field(default_factory=Replies)

    def __post_init__(self) -> None:
        if not self.names or isinstance(self.names, str):
            raise ValueError(f"Judge: names must be those of the numbers, got {self.names!r}")
        if self.tries < 1:
            raise ValueError(f"Judge: tries must be at least 1, got {self.tries}")
        for name in ("most_calls", "most_tokens"):
            if (value := getattr(self, name)) is not None and value < 0:
                raise ValueError(f"Judge: {name} must be at least 0, got {value}")

    def ask(
        self,
        texts: Sequence[Mapping[str, Any]],
        step: int,
        spread: Spread = alone,
        shares: int = 1,
    ) -> Verdicts:
        """The verdicts on some texts; equal ones are asked about once.

        Args:
          texts: what `prompt_of` is given, for each.
          step: of the run, from which on replies are known.
          spread: divides questions among processes and brings all replies to each.
          shares: processes that ask at the same time, for the budget.
        """
        messages = [tuple(self.prompt_of(**each)) for each in texts]
        numbers = np.full((len(texts), len(self.names)), np.nan)
        numbers[[not own for own in messages]] = self.without
        words = [""] * len(texts)
        open_ = [place for place, own in enumerate(messages) if own]
        number = len(open_)
        counts: Counter[str] = Counter()
        own = dict.fromkeys(("judge_calls", "judge_tokens", "judge_unreadable"), 0)
        for attempt in range(self.tries):
            if not open_:
                break
            asked = {place: Question(messages[place], attempt) for place in open_}
            known = self._replies(asked, step, spread, shares)
            still = []
            for key, reply in {key: found.reply for key, found in known.values()}.items():
                if self.replies.counted(key, step):
                    continue
                own["judge_calls"] += reply.calls
                own["judge_tokens"] += reply.tokens
                counts[reply.failure] += bool(reply.failure)
            for place in open_:
                _, (_, reply) = known[place]
                said = None if reply.text is None else self.parse(reply.text)
                words[place] = reply.text or words[place]
                if said is None:
                    own["judge_unreadable"] += reply.text is not None
                    still.append(place)
                else:
                    numbers[place] = said
            open_ = still
        metrics = {"judge_asked": number, "judge_no_verdict": len(open_), **own}
        metrics |= {f"judge_failed/{why}": count for why, count in counts.items() if why}
        return Verdicts(numbers, words, {name: float(value) for name, value in metrics.items()})

    def _replies(self, asked, step, spread, shares) -> dict[int, tuple[str, Known]]:
        """Key and reply of each question by its place; what nobody knows is asked."""
        if (call := self.call) is None:
            raise ValueError("Judge: call must say who is asked, got None")
        keys = {place: key_of(call.identity, each) for place, each in asked.items()}
        new = {
            keys[place]: question
            for place, question in asked.items()
            if self.replies.find(keys[place], step) is None
        }
        if new:
            budget = (self.most_calls, self.most_tokens)
            spending = Spending(**self.replies.left(*budget, shares))
            replies = spread(lambda part: call.ask(part, spending), list(new.values()))
            self.replies.keep(list(new), replies, step, budget, shares)
        return {
            place: (key, known)
            for place, key in keys.items()
            if (known := self.replies.find(key, step)) is not None
        }
