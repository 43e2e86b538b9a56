"""What the policy would answer after each step of its reasoning."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.rewards.score_steps import tokens_up_to
from rlvr_jax.types.parts import part

__all__ = ["probe_steps", "steps_of"]


def steps_of(batch: Batch, separator: str) -> list[list[int]]:
    """How many tokens each row has up to the end of each of its steps; the last step ends with the
    row.

    Args:
      separator: text behind a step, part of it but for white space at its end.
    """
    found, visible = [], len(separator.rstrip())
    for row, response in enumerate(batch.responses):
        length = int(batch.rollouts.length[row])
        text, ends, place = response.text, [], 0
        while (place := text.find(separator, place)) >= 0:
            ends += [place + visible] if place + visible else []
            place += len(separator)
        ids = batch.rollouts.tokens[row, :length].tolist()
        inside = tokens_up_to(batch.tokenizer, ids, ends) if ends else []
        found.append(sorted({*inside, length} - {0}))
    return found


@part(by_row=True)
def probe_steps(separator: str = ".\n\n", opening: str = "\n\n**Final Answer** \\boxed{") -> Stage:
    """Asks after every step how sure and how right the policy would be if it had to answer there.

    Behind the prompt and the response up to the end of a step stand the opening and the reference
    answer, and one pass scores them: the accuracy is the mean probability of the answer's tokens,
    the confidence exp(-H), H the mean entropy where they stand. Reasoning that leaves no room for
    the answer is cut at its end. Both are equal on the tokens of a step.

    Args:
      separator: text that ends a step; what follows the last one is a step, too.
      opening: that makes the policy answer.
    Reads: Prompt.answer, texts. Writes: step, probe_confidence, probe_accuracy. Scores: the
      response up to each step.
    Metrics: steps (per row), probe_confidence, probe_accuracy (means over steps).
    Raises:
      ValueError: no separator; when a run draws, an answer without tokens, or longer than a
        response may be.
    Source: SPAE, https://github.com/cii030/SPAE-RL, which draws answers for the confidence.
    """
    if not separator:
        raise ValueError(f"probe_steps: separator must be a text, got {separator!r}")

    def apply(batch, actor, state, turn):
        rollouts, room = batch.rollouts, turn.setting.response_tokens
        begin = list(actor.encode(opening)) if opening else []
        ends = steps_of(batch, separator)
        rows, owners, counts = [], [], []
        for row, own in enumerate(ends):
            answer = _answer(batch, actor, row, room - len(begin))
            stopped = int(not rollouts.truncated[row])
            for end in own:
                last = end - stopped * (end == rollouts.length[row])
                kept = rollouts.tokens[row, : min(last, room - len(begin) - len(answer))]
                rows.append([*kept.tolist(), *begin, *answer])
                owners.append(row)
                counts.append(len(answer))
        asks = [replace(batch.asks[row], samples=1, given=()) for row in owners]
        accuracy, confidence = _probed(actor, asks, rows, counts)
        step = np.full(rollouts.mask.shape, -1, np.int32)
        shape = rollouts.mask.shape
        known = {name: np.zeros(shape, rollouts.reward.dtype) for name in ("sure", "right")}
        place = 0
        for row, own in enumerate(ends):
            first = 0
            for number, end in enumerate(own):
                step[row, first:end] = number
                known["sure"][row, first:end] = confidence[place]
                known["right"][row, first:end] = accuracy[place]
                first, place = end, place + 1
        told = {
            "steps": len(rows) / len(batch),
            "probe_confidence": float(confidence.mean()),
            "probe_accuracy": float(accuracy.mean()),
        }
        batch = batch.with_rollouts(
            step=np.where(rollouts.mask, step, -1).astype(np.int32),
            probe_confidence=known["sure"],
            probe_accuracy=known["right"],
        )
        return batch, state, told

    gives = frozenset({"step", "probe_confidence", "probe_accuracy"})
    return Stage(apply, writes=gives)


def _answer(batch: Batch, actor, row: int, room: int) -> list[int]:
    """The tokens of a row's reference answer."""
    prompt = batch.asks[row].prompt
    tokens = [] if prompt.answer is None else list(actor.encode(str(prompt.answer)))
    if not 0 < len(tokens) <= room:
        raise ValueError(
            f"probe_steps: the answer must have 1 to {room} tokens, got {len(tokens)} for prompt"
            f" {prompt.text[:80]!r}"
        )
    return tokens


def _probed(actor, asks, rows, counts) -> tuple[np.ndarray, np.ndarray]:
    """Accuracy and confidence of each probe."""
    written = actor.written(asks, rows)
    told = actor.score(written, ["logp", "entropy"])
    length, count = written.rollouts.length[:, None], np.array(counts)[:, None]
    place = np.arange(written.rollouts.tokens.shape[1])[None]
    there = (place < length) & (place >= length - count)
    number = there.sum(axis=1)
    accuracy = np.where(there, np.exp(told["logp"]), 0).sum(axis=1) / number
    return accuracy, np.exp(-np.where(there, told["entropy"], 0).sum(axis=1) / number)
