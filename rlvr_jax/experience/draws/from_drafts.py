"""Responses that go on from what is left of a prompt's last ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import jax
import numpy as np

from rlvr_jax.experience.asks import PLAIN, Ask
from rlvr_jax.experience.batch import Batch, concatenate
from rlvr_jax.experience.draws.plain import plain
from rlvr_jax.experience.draws.verification import Verified, taken_over, verify
from rlvr_jax.experience.parts import Draw, Setting, Turn
from rlvr_jax.experience.sampling import occurrences
from rlvr_jax.types.hyperparameters import Finite, NonNegative
from rlvr_jax.types.parts import part

__all__ = ["from_drafts"]

COUNTS = ("verified_tokens", "reused_tokens", "reused_responses", "saved_decode_steps")


@part
def from_drafts(lenience: Finite, below: Draw | None = None, exact_mb: NonNegative = 0) -> Draw:
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

    With `exact_mb` responses have the current policy's distribution, as in speculative decoding: a
    rejected token gives way to one of what the draft's distribution lacks, max(p_now - p_then, 0)
    normalized. The state then holds the log-probs of all tokens, 4 bytes for each of prompts ×
    rollouts × budget × vocabulary; a draft is the first answer to its prompt in a step, whatever
    stages make of it, as the right ones alone would be drafts of another distribution; and a second
    scoring pass gives the step's own log-probs. A token of a residual is no decode step: it is
    counted in residual_tokens.

    Args:
      lenience: b, nats: a token is accepted with probability min(1, e^b p_now / p_then).
      below: draws what is not taken over; None: `plain()`.
      exact_mb: megabytes (10^6 bytes) that the log-probs of all tokens may take; 0: not exact.
    Metrics: verified_tokens, reused_tokens, reused_responses (whole ones), saved_decode_steps (by
      how much longer the longest row with a draft is than what was drawn of any); and
      reused_share of the tokens of the step's responses.
    Raises:
      ValueError: a lenience that is not finite, or a draw whose rows are not whole responses; exact
        with a lenience or with a draw below; when a run is made, log-probs that take more than
        exact_mb.
    Source: Liu et al. 2025, https://arxiv.org/abs/2509.23232.
    """
    exact = exact_mb > 0
    if exact and (lenience or below is not None):
        raise ValueError(
            "from_drafts: with exact_mb lenience must be 0 and below None, got"
            f" {lenience} and {below and below.label}"
        )
    # What is drawn has to be of the distribution that is scored.
    below = below or (plain(top_k=0, top_p=1.0, min_p=0.0) if exact else plain())
    if below.of_policy:
        raise ValueError(
            f"from_drafts: below must draw responses as a whole, as plain() does, got {below.label}"
        )
    counts = (*COUNTS, "residual_tokens") if exact else COUNTS

    def init(setting):
        prompts, samples = len(setting.task.train), setting.drawn_samples
        shape = prompts, samples, setting.response_tokens
        whole = {}
        if exact:
            _check_bytes(setting, exact_mb)
            whole["all_logp"] = np.zeros((*shape, setting.vocabulary), np.float32)
            whole["written"] = np.full(prompts, -1, np.int32)
        return whole | {
            "tokens": np.zeros(shape, np.int32),
            "logp": np.zeros(shape, np.float32),
            "length": np.zeros(shape[:2], np.int32),
            "truncated": np.zeros(shape[:2], bool),
            "used": np.full(prompts, -1, np.int32),
            "shares": np.zeros(2),
            "below": below.init(setting),
        }

    def apply(asks, actor, state, turn):
        own, told = dict(state), dict.fromkeys(counts, 0.0)

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
            verified = verify(asks, drafted, actor, state, turn.random(), lenience)
            batch, begun = _continued(asks, drafted, verified, draw)
            for name, number in _counts(verified, batch, begun).items():
                if name in told:
                    told[name] += number
        else:
            batch = draw(asks, 0)
        if exact:
            scored = actor.score(batch, ("logp", "all_logp"))
            number = np.array([ask.number for ask in batch.asks])
            own_prompt = number < len(state["written"])
            number = np.where(own_prompt, number, 0)
            first = np.array([not (ask.rating or ask.first_sample) for ask in batch.asks])
            fresh = own_prompt & first & (state["written"][number] != turn.step)
            own |= _stored(own, batch, scored["logp"], fresh, scored["all_logp"])
            own["written"] = state["written"].copy()
            own["written"][number[fresh]] = turn.step
        length = float(batch.rollouts.length.sum())
        own["shares"] = state["shares"] + np.array([told["reused_tokens"], length])
        return batch, own, told

    def observe(state, turn, seen, learned):
        inner, metrics = below.observe(state["below"], turn, seen, learned)
        reused, whole = state["shares"]
        told = {"reused_share": float(reused / max(whole, 1)), **metrics}
        stored = {}
        if not exact:
            every = np.ones(len(learned), bool)
            stored = _stored(state, learned, learned.rollouts.old_logp, every)
        return {**state, **stored, "shares": np.zeros(2), "below": inner}, told

    return Draw(apply, init, observe, below.reads, below.sampling)


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


def _continued(asks, drafted, verified: Verified, draw) -> tuple[Batch, np.ndarray]:
    """Responses to all asks: from drafts where there are some, else as a whole; and with how many
    tokens each was begun, -1 without a draft.

    Args:
      draw: (asks, number of their random stream) -> responses.
    """
    # Where each response comes from: a part, and the row of it.
    parts = [verified.batch]
    source = {row: (0, i) for i, row in enumerate(verified.rows) if verified.done[i]}
    fresh = [place for place, has in enumerate(drafted) if not has]
    if fresh:
        answers = [(place, k) for place in fresh for k in range(asks[place].samples)]
        source |= {row: (len(parts), i) for i, row in enumerate(answers)}
        parts.append(draw([asks[place] for place in fresh], 0))
    left = np.flatnonzero(~verified.done)
    if len(left):
        again = []
        for i in left:
            place, sample = verified.rows[i]
            one = {"samples": 1, "first_sample": sample, "given": verified.given(i)}
            again.append(replace(asks[place], **one))
            source[place, sample] = len(parts), len(again) - 1
        parts.append(taken_over(draw(again, 1), verified, left))
    starts = np.cumsum([0, *map(len, parts[:-1])])
    order = [(place, k) for place, ask in enumerate(asks) for k in range(ask.samples)]
    taken = np.array([starts[part] + row for part, row in (source[row] for row in order)])
    places = {row: i for i, row in enumerate(verified.rows)}
    places = np.array([places.get(row, -1) for row in order])

    def of_drafts(numbers):
        return np.where(places >= 0, numbers[places], -1).astype(np.int32)

    group = np.repeat(np.arange(len(asks), dtype=np.int32), [ask.samples for ask in asks])
    batch = (
        concatenate(parts)
        .take(taken)
        .with_rollouts(group=group, branch_position=of_drafts(verified.cut))
    )
    batch = replace(
        batch.renumbered(),
        asks=[asks[place] for place, _ in order],
        sample_seconds=sum(part.sample_seconds for part in parts),
    )
    return batch, of_drafts(verified.begun)


def _counts(verified: Verified, batch: Batch, begun: np.ndarray) -> dict[str, float]:
    length, begun = batch.rollouts.length[begun >= 0], begun[begun >= 0]
    saved = length.max() - (length - begun).max()
    reused = verified.cut.sum()
    whole = (verified.cut == verified.length) & (verified.length > 0)
    residual = (verified.begun - verified.cut).sum()
    numbers = (verified.length.sum(), reused, whole.sum(), saved, residual)
    return dict(zip((*COUNTS, "residual_tokens"), map(float, numbers), strict=True))


def _stored(state, batch: Batch, logp: np.ndarray, fresh: Sequence[bool], all_logp=None):
    """The arrays of the state with the responses of a batch as drafts of their prompts' next ones.

    Args:
      logp, all_logp: log-probs of their tokens, [B, T], and of all tokens, [B, T, V], or None.
      fresh: rows that may become drafts, [B].
    """
    arrays = {"logp": logp, **({} if all_logp is None else {"all_logp": all_logp})}
    stored = {name: state[name].copy() for name in ("tokens", "length", "truncated", *arrays)}
    rollouts = batch.rollouts
    prompts, samples, width = stored["tokens"].shape
    there = np.arange(width)[None] < rollouts.length[:, None]
    usable = (rollouts.mask == there).all(axis=1) & (rollouts.length > 0)
    for name in ("stored", "supervised"):
        flag = getattr(rollouts, name)
        usable &= True if flag is None else ~flag
    seen: dict[int, int] = {}
    for row, ask in enumerate(batch.asks):
        sample = seen[ask.number] = seen.get(ask.number, -1) + 1
        plainly = ask.view.label == PLAIN.label and ask.number < prompts and sample < samples
        if plainly and usable[row] and fresh[row]:
            at = ask.number, sample
            stored["tokens"][at] = np.where(there[row], rollouts.tokens[row], 0)
            for name, array in arrays.items():
                on = there[row].reshape(-1, *[1] * (array.ndim - 2))
                stored[name][at] = np.where(on, array[row], 0)
            stored["length"][at] = rollouts.length[row]
            stored["truncated"][at] = rollouts.truncated[row]
    return stored


def _check_bytes(setting: Setting, exact_mb: float) -> None:
    """Refuses log-probs of all tokens that take more than they may."""
    prompts, samples, width = (
        len(setting.task.train),
        setting.drawn_samples,
        setting.response_tokens,
    )
    if not setting.vocabulary:
        raise ValueError("from_drafts: with exact_mb Setting.vocabulary must be known, got 0")
    wanted = 4 * prompts * samples * width * setting.vocabulary
    if wanted > exact_mb * 1e6:
        least = math.ceil(wanted / 1e4) / 100
        raise ValueError(
            f"from_drafts: exact_mb must be at least {least:,} (4 bytes for each of"
            f" {prompts:,} prompts, {samples} rollouts, {width} tokens and a vocabulary of"
            f" {setting.vocabulary:,}: {wanted:,} bytes), got {exact_mb:g}"
        )
