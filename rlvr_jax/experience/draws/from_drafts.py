"""Responses that go on from what is left of a prompt's last ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np

from rlvr_jax.experience.asks import PLAIN, Ask
from rlvr_jax.experience.batch import Batch, concatenate
from rlvr_jax.experience.draws.acceptance import accepted_prefix
from rlvr_jax.experience.draws.plain import plain
from rlvr_jax.experience.parts import Actor, Draw, Turn
from rlvr_jax.experience.sampling import occurrences
from rlvr_jax.objectives import describe
from rlvr_jax.objectives.arguments import check_finite

__all__ = ["from_drafts"]

COUNTS = ("verified_tokens", "reused_tokens", "reused_responses", "saved_decode_steps")


def from_drafts(lenience: float, below: Draw | None = None) -> Draw:
    """Verifies the last responses to a prompt and draws only what the policy would not write again.

    The k-th response that was learned from when the prompt came last is the draft of its k-th one
    now. One scoring pass gives its log-probs under the current policy; its tokens are taken over
    up to the first that is rejected (`accepted_prefix`), and the response goes on from there,
    drawn as ever. A draft that is accepted as a whole is the response, also one that the budget
    had cut.

    All tokens are learned from, those that are taken over as if the current policy had drawn them:
    their `behaviour_logp` and `entropy` are those of the verifying pass, and old log-probs are
    measured as for any row. `branch_position` is where a row left its draft (-1: no draft). That
    is an approximation: a rejected token is drawn from the policy again, not from what the draft's
    distribution lacks of it, so that the policy's favourites come a little too often
    (`emitted_distance`), and a lenience above 0 keeps tokens that are not its own.

    A draft is used once in a step, and by plain asks of the task's own prompts alone. Rows that
    were learned from without log-probs (their mask was cleared) leave the older draft in place.

    The state holds tokens and log-probs of the task's prompts × rollouts × budget, 8 bytes each.

    Args:
      lenience: b, nats: a token is accepted with probability min(1, e^b p_now / p_then).
      below: draws what is not taken over; None: `plain()`.
    Metrics: verified_tokens, reused_tokens, reused_responses (whole ones), saved_decode_steps (by
      how much longer the longest row with a draft is than what was drawn of any); and
      reused_share of the tokens of the step's responses.
    Raises:
      ValueError: a lenience that is not finite, or a draw whose rows are not whole responses.
    Source: Liu et al. 2025, https://arxiv.org/abs/2509.23232.
    """
    check_finite("from_drafts", lenience=lenience)
    below = below or plain()
    if below.of_policy:
        raise ValueError(
            f"from_drafts: below must draw responses as a whole, as plain() does, got {below.label}"
        )

    def init(setting):
        prompts, samples = len(setting.task.train), setting.drawn_samples
        shape = prompts, samples, setting.response_tokens
        return {
            "tokens": np.zeros(shape, np.int32),
            "logp": np.zeros(shape, np.float32),
            "length": np.zeros(shape[:2], np.int32),
            "truncated": np.zeros(shape[:2], bool),
            "used": np.full(prompts, -1, np.int32),
            "shares": np.zeros(2),
            "below": below.init(setting),
        }

    def apply(asks, actor, state, turn):
        own, told = dict(state), dict.fromkeys(COUNTS, 0.0)

        def draw(asks, stream):
            key = jax.random.fold_in(turn.key, stream) if stream else turn.key
            own_turn = turn._replace(key=key)
            batch, own["below"], metrics = below.apply(asks, actor, own["below"], own_turn)
            for name, value in metrics.items():
                told[name] = told.get(name, 0.0) + value
            return batch

        drafted = _drafted(asks, state, turn)
        if any(drafted):
            numbers = [ask.number for ask, has in zip(asks, drafted, strict=True) if has]
            own["used"] = state["used"].copy()
            own["used"][numbers] = turn.step
            verified = _verified(asks, drafted, actor, state, turn, lenience)
            batch = _continued(asks, drafted, verified, draw)
            for name, number in _counts(verified, batch).items():
                told[name] += number
        else:
            batch = draw(asks, 0)
        length = float(batch.rollouts.length.sum())
        own["shares"] = state["shares"] + np.array([told["reused_tokens"], length])
        return batch, own, told

    def observe(state, turn, seen, learned):
        inner, metrics = below.observe(state["below"], turn, seen, learned)
        reused, whole = state["shares"]
        told = {"reused_share": float(reused / max(whole, 1)), **metrics}
        return {**_stored(state, learned), "shares": np.zeros(2), "below": inner}, told

    label = describe("from_drafts", lenience=float(lenience), below=below.label)
    return Draw(apply, label, init, observe, below.needs, below.sampling)


def _drafted(asks: Sequence[Ask], state, turn: Turn) -> list[bool]:
    """Which asks have drafts that this step has not used yet."""
    length, used = state["length"], state["used"]
    again = occurrences(np.array([ask.number for ask in asks]))
    return [
        ask.number < len(length)
        and ask.view.label == PLAIN.label
        and not (repeat or ask.rating or ask.first_sample or len(ask.given))
        and used[ask.number] != turn.step
        and bool(length[ask.number].any())
        for ask, repeat in zip(asks, again, strict=True)
    ]


class _Verified(NamedTuple):
    """Drafts that the current policy has scored, row by row.

    Fields:
      rows: of each the place of its ask and the number of the sample.
      batch: the drafts as responses.
      length, cut: their tokens, and those of them that are accepted.
    """

    rows: list[tuple[int, int]]
    batch: Batch
    length: np.ndarray
    cut: np.ndarray

    @property
    def whole(self) -> np.ndarray:
        """Drafts that are responses as they are; one of no token is none."""
        return (self.cut == self.length) & (self.length > 0)

    def given(self, row: int) -> list[int]:
        """The accepted tokens of a draft."""
        return self.batch.rollouts.tokens[row, : self.cut[row]].tolist()


def _verified(asks, drafted, actor: Actor, state, turn: Turn, lenience: float) -> _Verified:
    own = [(place, ask) for place, ask in enumerate(asks) if drafted[place]]
    rows = [(place, sample) for place, ask in own for sample in range(ask.samples)]
    kept = state["length"].shape[1]
    sample = np.array([sample for _, sample in rows])
    index = np.array([asks[place].number for place, _ in rows]), np.minimum(sample, kept - 1)
    length = np.where(sample < kept, state["length"][index], 0)
    drafts = [ids[:n].tolist() for ids, n in zip(state["tokens"][index], length, strict=True)]
    batch = actor.written([ask for _, ask in own], drafts)
    scored = actor.score(batch, ("logp", "entropy"))
    log_ratio = np.asarray(scored["logp"], np.float64) - state["logp"][index]
    cut = accepted_prefix(log_ratio, length, turn.random().random(log_ratio.shape), lenience)
    on, dtype = batch.rollouts.mask, batch.rollouts.temperature.dtype
    batch = batch.with_rollouts(
        behaviour_logp=np.where(on, scored["logp"], 0).astype(dtype),
        entropy=np.where(on, scored["entropy"], 0).astype(dtype),
        truncated=state["truncated"][index],
    )
    return _Verified(rows, batch, length, cut)


def _continued(asks, drafted, verified: _Verified, draw) -> Batch:
    """Responses to all asks: from drafts where there are some, else as a whole.

    Args:
      draw: (asks, number of their random stream) -> responses.
    """
    # Where each response comes from: a part, and the row of it.
    parts = [verified.batch]
    source = {row: (0, i) for i, row in enumerate(verified.rows) if verified.whole[i]}
    fresh = [place for place, has in enumerate(drafted) if not has]
    if fresh:
        answers = [(place, k) for place in fresh for k in range(asks[place].samples)]
        source |= {row: (len(parts), i) for i, row in enumerate(answers)}
        parts.append(draw([asks[place] for place in fresh], 0))
    left = np.flatnonzero(~verified.whole)
    if len(left):
        again = []
        for i in left:
            place, sample = verified.rows[i]
            one = {"samples": 1, "first_sample": sample, "given": verified.given(i)}
            again.append(replace(asks[place], **one))
            source[place, sample] = len(parts), len(again) - 1
        parts.append(_taken_over(draw(again, 1), verified, left))
    starts = np.cumsum([0, *map(len, parts[:-1])])
    order = [(place, k) for place, ask in enumerate(asks) for k in range(ask.samples)]
    taken = np.array([starts[part] + row for part, row in (source[row] for row in order)])
    cut = dict(zip(verified.rows, verified.cut.tolist(), strict=True))
    group = np.repeat(np.arange(len(asks), dtype=np.int32), [ask.samples for ask in asks])
    batch = (
        concatenate(parts)
        .take(taken)
        .with_rollouts(
            group=group, branch_position=np.array([cut.get(row, -1) for row in order], np.int32)
        )
    )
    return replace(
        batch.renumbered(),
        asks=[asks[place] for place, _ in order],
        sample_seconds=sum(part.sample_seconds for part in parts),
    )


def _taken_over(drawn: Batch, verified: _Verified, rows: np.ndarray) -> Batch:
    """Responses that were drawn behind parts of drafts, which are theirs from now on.

    Args:
      rows: of the drafts.
    """
    rollouts, drafts = drawn.rollouts, verified.batch.rollouts
    front = np.arange(rollouts.mask.shape[1])[None] < verified.cut[rows][:, None]
    changes = {
        name: np.where(front, getattr(drafts, name)[rows], getattr(rollouts, name))
        for name in ("behaviour_logp", "entropy")
    }
    changes["mask"] = rollouts.mask | front
    if rollouts.origin is not None:
        changes["origin"] = np.where(front, 0, rollouts.origin).astype(np.int32)
    if rollouts.drawn_temperature is not None:
        heat = np.where(front, rollouts.temperature, rollouts.drawn_temperature)
        changes["drawn_temperature"] = heat
    return drawn.with_rollouts(**changes)


def _counts(verified: _Verified, batch: Batch) -> dict[str, float]:
    branch = batch.rollouts.branch_position
    length = batch.rollouts.length[branch >= 0]
    saved = length.max() - (length - branch[branch >= 0]).max()
    reused = verified.cut.sum()
    numbers = (verified.length.sum(), reused, verified.whole.sum(), saved)
    return dict(zip(COUNTS, map(float, numbers), strict=True))


def _stored(state, learned: Batch):
    """The state with the responses of a batch as drafts of their prompts' next ones."""
    names = ("tokens", "logp", "length", "truncated")
    stored = {name: state[name].copy() for name in names}
    rollouts = learned.rollouts
    prompts, samples, width = stored["tokens"].shape
    there = np.arange(width)[None] < rollouts.length[:, None]
    usable = (rollouts.mask == there).all(axis=1) & (rollouts.length > 0)
    for name in ("stored", "supervised"):
        flag = getattr(rollouts, name)
        usable &= True if flag is None else ~flag
    seen: dict[int, int] = {}
    for row, ask in enumerate(learned.asks):
        sample = seen[ask.number] = seen.get(ask.number, -1) + 1
        plainly = ask.view.label == PLAIN.label and ask.number < prompts and sample < samples
        if plainly and usable[row]:
            at = ask.number, sample
            stored["tokens"][at] = np.where(there[row], rollouts.tokens[row], 0)
            stored["logp"][at] = np.where(there[row], rollouts.old_logp[row], 0)
            stored["length"][at] = rollouts.length[row]
            stored["truncated"][at] = rollouts.truncated[row]
    return {**state, **stored}
