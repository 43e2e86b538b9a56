"""The format of a response: its tags, and two readings of them.

Published readings count different tags: every tag once, the fraction of correct tags, or only the
start. `tags` measures once; `ok` and `fraction` are the two readings in use. If a format enters the
reward, the outcome that pass rates read must remain the correctness.

A truncated response fails the format, so a format reward is a hidden penalty on length. A format
with the weight of the answer ranks an incorrect answer in good form above a correct answer in bad
form.

Sources: https://github.com/Unakar/Logic-RL (all tags once, in order),
https://github.com/wenquanlu/prompt-augmentation-GRPO (fraction of tags).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class TagReport:
    """Result of `tags`.

    Fields:
      ok: every tag once and in order, no prefilled tag again; tags in the thinking do not count.
      counts: occurrences of each tag that the response has to write, in the whole text.
      order: the tags that occur first occur in the order of the spec.
    """

    ok: bool
    counts: Mapping[str, int]
    order: bool

    @property
    def fraction(self) -> float:
        """Fraction of the tags that occur exactly once, (1/m) Σ 1[count = 1], in any order."""
        return sum(count == 1 for count in self.counts.values()) / len(self.counts)

    @property
    def exact(self) -> bool:
        """Every tag once in the whole text and in order, tags in the thinking included."""
        return self.order and self.fraction == 1


def tags(
    text: str, spec: Sequence[str] = ("think", "answer"), prefilled: Sequence[str] = ()
) -> TagReport:
    """Finds the blocks <name>…</name> of a response; linear in the length of the text.

    A response may mention its tags while it thinks ("I should write <answer>"). Tags before the
    first </think> are ignored; after it each further tag must occur once.

    Args:
      text: the response.
      spec: names of the blocks in their order; only "think" has a special meaning.
      prefilled: tags at the end of the prompt, such as ("<think>",) (see `prefilled_tags`). The
        response must not write them, and they are not counted.
    Raises:
      ValueError: spec is empty or has a name twice, or prefilled is not the start of its tags.
    """
    if not spec or len(set(spec)) < len(spec):
        raise ValueError(f"tags: spec must have names, each once, got {tuple(spec)}")
    wanted = _tags_of(spec)
    skipped = len(prefilled)
    if list(prefilled) != wanted[:skipped] or skipped == len(wanted):
        raise ValueError(
            f"tags: prefilled must be the first of the tags {wanted}, got {tuple(prefilled)}"
        )
    closing = text.find("</think>") if "</think>" in wanted[skipped:] else -1
    before = wanted[: wanted.index("</think>") + 1] if closing >= 0 else []
    begin = dict.fromkeys(wanted, closing + len("</think>") if before else 0)
    begin |= dict.fromkeys(before, 0)
    counts = {tag: text.count(tag) for tag in wanted[skipped:]}
    seen = [max(text.find(tag, begin[tag]), text.find(tag)) for tag in counts]
    seen = [place for place in seen if place >= 0]
    once = all(text.count(tag, begin[tag]) == (tag in counts) for tag in wanted)
    order = seen == sorted(seen)
    return TagReport(once and order, counts, order)


def prefilled_tags(prompt_tail: str, spec: Sequence[str] = ("think", "answer")) -> tuple[str, ...]:
    """The tags that a chat template has opened at the end of a prompt, for `tags`.

    Args:
      prompt_tail: as in `Response.prompt_tail`.
      spec: as in `tags`.
    """
    wanted = _tags_of(spec)
    tail = "".join(prompt_tail.split())
    for number in range(len(wanted) - 1, 0, -1):
        if tail.endswith("".join(wanted[:number])):
            return tuple(wanted[:number])
    return ()


def _tags_of(spec: Sequence[str]) -> list[str]:
    return [tag for name in spec for tag in (f"<{name}>", f"</{name}>")]
