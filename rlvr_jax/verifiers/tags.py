"""Format rewards: which tags a response has, and three ways to let that count.

Published readings differ in what they count (every tag once, the share of right tags, only the
start) and in how the format enters the reward (added, multiplied, as a floor). `tags` measures
once; `ok` and `share` are the two readings in use; `add`, `gate` and `floor` combine. Whatever is
chosen, the outcome that pass rates read must stay the correctness alone.

A truncated response fails the format, so any of these is a hidden penalty on length. A format term
that weighs as much as the answer ranks a wrong answer in good form above a right one in bad form.

Sources: https://github.com/Unakar/Logic-RL (all tags once, in order),
https://github.com/wenquanlu/prompt-augmentation-GRPO (share of tags),
https://github.com/LeapLabTHU/Absolute-Zero-Reasoner (floor).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

_Combine = Callable[[float, float], float]


@dataclass(frozen=True)
class TagReport:
    """What `tags` found.

    Fields:
      ok: every tag once and in order, no prefilled tag again; tags quoted in the thinking are free.
      counts: occurrences of each tag that the response has to write, in the whole text.
      order: the tags that occur first occur in the order of the spec.
      think_span: (start, end) of the text between <think> and the first </think>; None without.
      answer_span: (start, end) of the text of the one answer block; without such a block in the
        spec, of what follows the last block. None if it is missing or not alone.
    """

    ok: bool
    counts: Mapping[str, int]
    order: bool
    answer_span: tuple[int, int] | None
    think_span: tuple[int, int] | None

    @property
    def share(self) -> float:
        """Share of the tags that occur exactly once, (1/m) Σ 1[count = 1], in whatever order."""
        return sum(count == 1 for count in self.counts.values()) / len(self.counts)

    @property
    def exact(self) -> bool:
        """Every tag once in the whole text and in order: none that the thinking quotes is free."""
        return self.order and self.share == 1


def tags(
    text: str, spec: Sequence[str] = ("think", "answer"), prefilled: Sequence[str] = ()
) -> TagReport:
    """Finds the blocks <name>…</name> of a response; linear in the length of the text.

    A response may talk about its tags while it thinks ("I should write <answer>"): behind the first
    </think> each further tag has to occur once, before it they are not looked at.

    Args:
      text: the response.
      spec: names of the blocks in their order; "think" and "answer" have a meaning, others none.
      prefilled: tags that the prompt ends with, as ("<think>",) (`prefilled_tags` finds them): the
        response must not write them, and they are not counted.
    Raises:
      ValueError: spec is empty or has a name twice, or prefilled is not the start of its tags.
    """
    if not spec or len(set(spec)) < len(spec):
        raise ValueError(f"tags: spec must have names, each once, got {tuple(spec)}")
    wanted = [tag for name in spec for tag in (f"<{name}>", f"</{name}>")]
    skipped = len(prefilled)
    if list(prefilled) != wanted[:skipped] or skipped == len(wanted):
        raise ValueError(
            f"tags: prefilled must be the first of the tags {wanted}, got {tuple(prefilled)}"
        )
    closing = text.find("</think>") if "</think>" in wanted[skipped:] else -1
    thought = closing + len("</think>") if closing >= 0 else 0
    before = wanted.index("</think>") + 1 if closing >= 0 else 0

    def begin(tag: str) -> int:
        return 0 if wanted.index(tag) < before else thought

    places = {tag: text.find(tag, begin(tag)) for tag in wanted[skipped:]}
    seen = [place if place >= 0 else text.find(tag) for tag, place in places.items()]
    seen = [place for place in seen if place >= 0]
    order = seen == sorted(seen)
    once = all(text.count(tag, begin(tag)) == 1 for tag in places)
    again = any(text.count(tag, begin(tag)) for tag in prefilled)

    def span(name: str) -> tuple[int, int] | None:
        first, last = f"<{name}>", f"</{name}>"
        start = 0 if first in prefilled else places.get(first, -1)
        end = places.get(last, -1)
        start += 0 if first in prefilled or start < 0 else len(first)
        return (start, end) if 0 <= start <= end else None

    think = span("think") if "think" in spec else None
    if "answer" in spec:
        alone = all(
            text.count(tag, thought) == 1
            for tag in ("<answer>", "</answer>")
            if tag not in prefilled
        )
        answer = span("answer") if alone else None
    else:
        place = places[wanted[-1]]
        answer = (place + len(wanted[-1]), len(text)) if place >= 0 else None
    counts = {tag: text.count(tag) for tag in places}
    return TagReport(once and order and not again, counts, order, answer, think)


def prefilled_tags(prompt_tail: str, spec: Sequence[str] = ("think", "answer")) -> tuple[str, ...]:
    """The tags that a prompt ends with, for `tags`: those of a chat template that has opened them.

    Args:
      prompt_tail: of a `Response`.
      spec: as in `tags`.
    """
    wanted = [tag for name in spec for tag in (f"<{name}>", f"</{name}>")]
    tail = "".join(prompt_tail.split())
    for number in range(len(wanted) - 1, 0, -1):
        if tail.endswith("".join(wanted[:number])):
            return tuple(wanted[:number])
    return ()


def add(weight: float) -> _Combine:
    """Adds the format to the outcome: outcome + weight · form.

    The mixture (1 - w) · outcome + w · form is add(w / (1 - w)) times 1 - w.

    Args:
      weight: 0 switches it off; at 1 and above format outweighs correctness.
    Returns:
      (outcome, form) -> reward, where form is `report.ok` or `report.share`; so for all three.
    Raises:
      ValueError: weight is negative.
    """
    if not weight >= 0:
        raise ValueError(f"add: weight must be at least 0, got {weight}")
    return lambda outcome, form: float(outcome + weight * form)


def gate(outcome: float, form: float) -> float:
    """Gives the outcome if the form is perfect (1 or True), else 0."""
    return float(outcome) if form == 1 else 0.0


def floor(values: tuple[float, float, float] = (-1.0, -0.5, 1.0)) -> _Combine:
    """Maps (malformed, well-formed but wrong, right) to three values; outcomes between lie between.

    Args:
      values: rewards in that order; the default is the one of Absolute Zero.
    Raises:
      ValueError: the values are not three in rising order.
    """
    if len(values) != 3 or list(values) != sorted(values):
        raise ValueError(f"floor: values must be three in rising order, got {values}")
    malformed, wrong, right = values
    return lambda outcome, form: float(
        wrong + (right - wrong) * outcome if form == 1 else malformed
    )
