"""SPEC-RL: the last epoch's responses are drafts, and only rejected tails are sampled again.

Liu et al. 2025, "SPEC-RL: Accelerating On-Policy Reinforcement Learning via Speculative Rollouts",
https://arxiv.org/abs/2509.23232

    a token of the draft is accepted with probability min(1, e^b π_now / π_then)
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ [max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) + β k3(π ‖ π_ref) - α H] / Σ n_i

b is `lenience`. A response is the accepted prefix of its draft and the continuation by the current
policy. It is trained as if the current policy had sampled all of it: ρ is 1 at the first update,
and nothing corrects for the reuse. This is an approximation, even with b = 0. A rejected token is
sampled from π_now, not from its excess over π_then, so likely tokens are sampled slightly more
often. With b = 0.5, more tokens are reused, and the distribution is further off.

`exact_mb=N` with `lenience=0` samples a rejected token from the excess, max(π_now - π_then, 0)
normalized, as speculative decoding does (ours). Responses then have the distribution of the current
policy. The stored log-probs of all tokens take at most N megabytes.

The loss is GRPO's; `--experience spec_rl` combines the draw with any other loss. Prompts must be
sampled repeatedly: with many prompts and few steps, nothing is reused. The authors use one set of
random numbers in every step; here they are fresh.

Reports: Qwen3-1.7B and 8B on GSM8K, MATH-500, OlympiadBench and MMLU-STEM: 2 to 3 times less
rollout time at equal quality.
Traps: Nothing is reused in the first epoch. A truncated response is never extended. Groups that are
all accepted repeat old rewards.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np

from rlvr_jax.experience import PLAIN, Batch, SampleRequest, concatenate, experience, plain
from rlvr_jax.experience.parts import Actor, Draw, RunInfo, StepContext
from rlvr_jax.experience.sampling import occurrences
from rlvr_jax.objectives import clipped_objective, part
from rlvr_jax.types import Method, Recipe, Shown, arguments_of
from rlvr_jax.types.hyperparameters import EntropyCoefficient, Finite, KLCoefficient, NonNegative

COUNTS = ("verified_tokens", "reused_tokens", "reused_responses", "saved_decode_steps")


@part
def from_drafts(lenience: Finite, exact_mb: NonNegative = 0) -> Draw:
    """Verifies the last responses to a prompt and samples the rest after the first rejected token.

    The draft of a prompt's k-th response is its k-th response when it was last trained on. One
    scoring pass computes the draft's log-probs under the current policy. The tokens before the
    first rejected one are reused (`accepted_prefix`), and plain sampling continues from there. A
    draft that is accepted as a whole is the response, even if the budget truncated it.

    `behaviour_logp` and `entropy` of reused tokens are those of the verifying pass. Old log-probs
    are measured as for any row. The value of `branch_position` is the length of the reused prefix
    (-1: no draft).

    A draft is used once in a step, and only by plain requests for the task's own prompts. Rows that
    were trained on without log-probs (their mask was cleared) leave the older draft in place. The
    state stores tokens and log-probs of the task's prompts × rollouts × budget, 8 bytes each.

    With `exact_mb` the state also stores the log-probs of all tokens, 4 bytes for each of prompts ×
    rollouts × budget × vocabulary. A draft is then the first response to its prompt in a step,
    before any stage selects, because selected drafts have another distribution. A second scoring
    pass computes the step's own log-probs. A token of a residual is not a decode step and is
    counted in residual_tokens.

    Metrics: verified_tokens (tokens of drafts), reused_tokens (accepted tokens), reused_responses
      (whole drafts), saved_decode_steps (length of the longest row with a draft less the most
      tokens sampled for one), reused_fraction (of the tokens of the step's responses),
      residual_tokens (tokens sampled from a residual, with `exact_mb`).
    Raises:
      ValueError: exact with a lenience; when a run is made, log-probs that take more than exact_mb.
    """
    exact = exact_mb > 0
    if exact and lenience:
        raise ValueError(f"from_drafts: with exact_mb lenience must be 0, got {lenience:g}")
    # Tokens must be sampled from the distribution that is scored.
    below = plain(top_k=0, top_p=1.0, min_p=0.0) if exact else plain()
    counts = (*COUNTS, "residual_tokens") if exact else COUNTS

    def init(setting):
        prompts, samples = len(setting.task.train), setting.initial_samples
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
            "fractions": np.zeros(2),
        }

    def apply(requests, actor, state, turn):
        own, metrics = dict(state), dict.fromkeys(counts, 0.0)

        def draw(requests, stream):
            key = jax.random.fold_in(turn.key, stream) if stream else turn.key
            batch, _, _ = below.apply(requests, actor, (), turn._replace(key=key))
            return batch

        drafted = _drafted(requests, state, turn)
        if any(drafted):
            numbers = [
                request.number for request, has in zip(requests, drafted, strict=True) if has
            ]
            own["used"] = state["used"].copy()
            own["used"][numbers] = turn.step
            verified = _verify(requests, drafted, actor, state, turn.random(), lenience)
            batch, prefix = _continued(requests, drafted, verified, draw)
            found = _counts(verified, batch, prefix)
            metrics = {name: found[name] for name in counts}
        else:
            batch = draw(requests, 0)
        if exact:
            scored = actor.score(batch, ("logp", "all_logp"))
            number = np.array([request.number for request in batch.requests])
            own_prompt = number < len(state["written"])
            number = np.where(own_prompt, number, 0)
            first = np.array(
                [not (request.rating or request.first_sample) for request in batch.requests]
            )
            fresh = own_prompt & first & (state["written"][number] != turn.step)
            own |= _stored(own, batch, scored["logp"], fresh, scored["all_logp"])
            own["written"] = state["written"].copy()
            own["written"][number[fresh]] = turn.step
        length = float(batch.rollouts.length.sum())
        own["fractions"] = state["fractions"] + np.array([metrics["reused_tokens"], length])
        return batch, own, metrics

    def observe(state, turn, seen, learned):
        reused, whole = state["fractions"]
        stored = {}
        if not exact:
            every = np.ones(len(learned), bool)
            stored = _stored(state, learned, learned.rollouts.old_logp, every)
        metrics = {"reused_fraction": float(reused / max(whole, 1))}
        return {**state, **stored, "fractions": np.zeros(2)}, metrics

    return Draw(apply, init, observe, sampling=below.sampling)


def _check_bytes(setting: RunInfo, exact_mb: float) -> None:
    """Raises ValueError if the log-probs of all tokens take more than `exact_mb`."""
    prompts, samples, width = (
        len(setting.task.train),
        setting.initial_samples,
        setting.response_tokens,
    )
    if not setting.vocabulary:
        raise ValueError("from_drafts: with exact_mb RunInfo.vocabulary must be known, got 0")
    num_bytes = 4 * prompts * samples * width * setting.vocabulary
    if num_bytes > exact_mb * 1e6:
        least = math.ceil(num_bytes / 1e4) / 100
        raise ValueError(
            f"from_drafts: exact_mb must be at least {least:,} (4 bytes for each of"
            f" {prompts:,} prompts, {samples} rollouts, {width} tokens and a vocabulary of"
            f" {setting.vocabulary:,}: {num_bytes:,} bytes), got {exact_mb:g}"
        )


def _drafted(requests: Sequence[SampleRequest], state, turn: StepContext) -> list[bool]:
    """Requests with drafts that this step has not used yet, list of bool."""
    length, used = state["length"], state["used"]
    again = occurrences(np.array([request.number for request in requests]))
    return [
        request.number < len(length)
        and request.view.label == PLAIN.label
        and not (repeat or request.rating or request.first_sample or len(request.given))
        and used[request.number] != turn.step
        and bool(length[request.number].any())
        for request, repeat in zip(requests, again, strict=True)
    ]


class Verified(NamedTuple):
    """Drafts that the current policy has scored, row by row.

    Fields:
      rows: (place of the request, number of the sample) of each draft.
      batch: the drafts as responses.
      length, accepted: number of their tokens, and of those that are accepted.
      prefix: number of tokens that the response begins with: the accepted ones, and the replacement
        of the rejected one where residuals are known.
      done: whether these are the whole response; False where there are none.
    """

    rows: list[tuple[int, int]]
    batch: Batch
    length: np.ndarray
    accepted: np.ndarray
    prefix: np.ndarray
    done: np.ndarray


def _verify(
    requests: Sequence[SampleRequest],
    drafted: Sequence[bool],
    actor: Actor,
    drafts: dict[str, np.ndarray],
    random: np.random.Generator,
    lenience: float,
) -> Verified:
    """One scoring pass over the drafts of the requests that have some.

    Args:
      drafts: tokens, logp [prompts, samples, T], length, truncated [prompts, samples]; and
        all_logp [prompts, samples, T, V] where rejected tokens are replaced by residuals.
    """
    own = [(place, request) for place, request in enumerate(requests) if drafted[place]]
    rows = [(place, sample) for place, request in own for sample in range(request.samples)]
    stored = drafts["length"].shape[1]
    sample = np.array([sample for _, sample in rows])
    index = np.array([requests[place].number for place, _ in rows]), np.minimum(sample, stored - 1)
    length = np.where(sample < stored, drafts["length"][index], 0)
    tokens = [ids[:n].tolist() for ids, n in zip(drafts["tokens"][index], length, strict=True)]
    batch = actor.written([request for _, request in own], tokens)
    exact = "all_logp" in drafts
    scored = actor.score(batch, ("logp", "entropy", *(["all_logp"] if exact else [])))
    log_ratio = np.asarray(scored["logp"], np.float64) - drafts["logp"][index]
    accepted = accepted_prefix(log_ratio, length, random.random(log_ratio.shape), lenience)
    on, dtype = batch.rollouts.mask, batch.rollouts.temperature.dtype
    batch = batch.with_rollouts(
        behaviour_logp=np.where(on, scored["logp"], 0).astype(dtype),
        entropy=np.where(on, scored["entropy"], 0).astype(dtype),
        truncated=drafts["truncated"][index],
    )
    whole = (accepted == length) & (length > 0)
    verified = Verified(rows, batch, length, accepted, accepted, whole)
    if exact:
        then = drafts["all_logp"][index]
        verified = _replaced(verified, scored["all_logp"], then, random, actor.stop_token())
    return verified


def accepted_prefix(
    log_ratio: np.ndarray, length: np.ndarray, uniform: np.ndarray, lenience: float
) -> np.ndarray:
    """Number of tokens of each draft before the first rejected one, where ln u > Δ + b; int [B].

    Args:
      log_ratio: log-prob of the current policy minus that of the draft, nats, [B, T] (Δ).
      length: number of tokens of the drafts, int [B].
      uniform: random numbers in [0, 1), [B, T] (u).
      lenience: added to the log-ratio, nats (b). 0: the rule of speculative sampling; a larger
        value accepts more tokens.
    """
    there = np.arange(log_ratio.shape[1])[None] < length[:, None]
    rejected = there & (uniform > np.exp(np.minimum(lenience + log_ratio, 0)))
    return np.where(rejected.any(axis=1), rejected.argmax(axis=1), length)


def _replaced(verified: Verified, now, then, random, stop: int) -> Verified:
    """The drafts with a token of the residual in the place of each rejected one.

    Args:
      now, then: log-probs of all tokens, [B, T, V], of the policy and of the drafts.
    """
    rollouts, accepted = verified.batch.rollouts, verified.accepted
    rejected = np.flatnonzero(accepted < verified.length)
    chances = residual(now[rejected, accepted[rejected]], then[rejected, accepted[rejected]])
    # The first token whose cumulative probability exceeds u.
    above = np.cumsum(chances, axis=-1) > random.random(len(rejected))[:, None]
    replacement = np.where(above.any(axis=-1), above.argmax(axis=-1), chances.argmax(axis=-1))
    tokens = np.where(_before(rollouts.tokens, accepted), rollouts.tokens, 0)
    logp, entropy = rollouts.behaviour_logp.copy(), rollouts.entropy.copy()
    tokens[rejected, accepted[rejected]] = replacement
    # The policy's own log-prob: verification and residual together write the token that often.
    logp[rejected, accepted[rejected]] = now[rejected, accepted[rejected], replacement]
    prefix, done = accepted.copy(), verified.done.copy()
    prefix[rejected] += 1
    ended = replacement == stop
    done[rejected] = ended | (prefix[rejected] == tokens.shape[1])
    on = _before(tokens, prefix)
    truncated = rollouts.truncated.copy()
    truncated[rejected] = ~ended
    batch = verified.batch.with_rollouts(
        tokens=tokens,
        length=prefix.astype(rollouts.length.dtype),
        mask=on,
        behaviour_logp=np.where(on, logp, 0),
        entropy=np.where(on, entropy, 0),
        truncated=truncated,
    )
    return verified._replace(batch=batch, prefix=prefix, done=done)


def residual(logp: np.ndarray, drafted_logp: np.ndarray) -> np.ndarray:
    """The distribution that replaces a rejected token, max(p - q, 0) normalized; float64.

    It is p where p = q: only rounding rejects there.

    Args:
      logp, drafted_logp: log-probs of all tokens under p and q, [..., V].
    """
    p, q = np.exp(np.asarray(logp, np.float64)), np.exp(np.asarray(drafted_logp, np.float64))
    more = np.maximum(p - q, 0)
    mass = more.sum(axis=-1, keepdims=True)
    return np.where(mass > 0, more, p) / np.where(mass > 0, mass, p.sum(axis=-1, keepdims=True))


def _before(tokens: np.ndarray, count: np.ndarray) -> np.ndarray:
    return np.arange(tokens.shape[1])[None] < count[:, None]


def _continued(requests, drafted, verified: Verified, draw) -> tuple[Batch, np.ndarray]:
    """Responses to all requests, from drafts where there are some.

    Args:
      draw: (requests, number of their random stream) -> responses.
    Returns:
      The batch, and the number of tokens that each response began with; -1 without a draft.
    """
    done, left = np.flatnonzero(verified.done), np.flatnonzero(~verified.done)
    parts, rows = [verified.batch.take(done)], [verified.rows[row] for row in done]
    fresh = [place for place, has in enumerate(drafted) if not has]
    if fresh:
        parts.append(draw([requests[place] for place in fresh], 0))
        rows += [(place, k) for place in fresh for k in range(requests[place].samples)]
    if len(left):
        again = []
        for row in left:
            place, sample = verified.rows[row]
            given = verified.batch.rollouts.tokens[row, : verified.prefix[row]].tolist()
            again.append(replace(requests[place], samples=1, first_sample=sample, given=given))
        parts.append(_taken_over(draw(again, 1), verified, left))
        rows += [verified.rows[row] for row in left]
    order = sorted(range(len(rows)), key=rows.__getitem__)
    known = {row: place for place, row in enumerate(verified.rows)}
    places = np.array([known.get(rows[row], -1) for row in order])

    def of_drafts(numbers):
        return np.where(places >= 0, numbers[places], -1).astype(np.int32)

    group = np.array([rows[row][0] for row in order], np.int32)
    accepted = of_drafts(verified.accepted)
    batch = concatenate(parts).take(order).with_rollouts(group=group, branch_position=accepted)
    batch = replace(
        batch.renumbered(),
        requests=[requests[place] for place in group],
        sample_seconds=sum(part.sample_seconds for part in parts),
    )
    return batch, of_drafts(verified.prefix)


def _taken_over(sampled: Batch, verified: Verified, rows: np.ndarray) -> Batch:
    """Continuations with the records of the draft tokens before them.

    Args:
      rows: rows of the drafts.
    """
    rollouts, drafts = sampled.rollouts, verified.batch.rollouts
    front = _before(rollouts.tokens, verified.prefix[rows])
    changes = {
        name: np.where(front, getattr(drafts, name)[rows], rollouts.get(name))
        for name in ("behaviour_logp", "entropy")
    }
    changes["mask"] = rollouts.mask | front
    if "origin" in rollouts.records:
        changes["origin"] = np.where(front, 0, rollouts.records["origin"]).astype(np.int32)
    if "sampled_temperature" in rollouts.records:
        heat = np.where(front, rollouts.temperature, rollouts.records["sampled_temperature"])
        changes["sampled_temperature"] = heat
    return sampled.with_rollouts(**changes)


def _counts(verified: Verified, batch: Batch, prefix: np.ndarray) -> dict[str, float]:
    length, prefix = batch.rollouts.length[prefix >= 0], prefix[prefix >= 0]
    saved = length.max() - (length - prefix).max()
    reused = verified.accepted.sum()
    whole = (verified.accepted == verified.length) & (verified.length > 0)
    residual = (verified.prefix - verified.accepted).sum()
    numbers = (verified.length.sum(), reused, whole.sum(), saved, residual)
    return dict(zip((*COUNTS, "residual_tokens"), map(float, numbers), strict=True))


def _stored(state, batch: Batch, logp: np.ndarray, fresh: Sequence[bool], all_logp=None):
    """The arrays of the state with the responses of a batch as the next drafts of their prompts.

    Args:
      logp, all_logp: log-probs of the responses' tokens, [B, T], and of all tokens, [B, T, V].
      fresh: rows that may become drafts, [B].
    """
    arrays = {"logp": logp, **({} if all_logp is None else {"all_logp": all_logp})}
    stored = {name: state[name].copy() for name in ("tokens", "length", "truncated", *arrays)}
    rollouts = batch.rollouts
    prompts, samples, width = stored["tokens"].shape
    there = np.arange(width)[None] < rollouts.length[:, None]
    usable = (rollouts.mask == there).all(axis=1) & (rollouts.length > 0)
    for name in ("stored", "supervised"):
        flag = rollouts.get(name)
        usable &= True if flag is None else ~flag
    seen: dict[int, int] = {}
    for row, request in enumerate(batch.requests):
        sample = seen[request.number] = seen.get(request.number, -1) + 1
        plainly = (
            request.view.label == PLAIN.label and request.number < prompts and sample < samples
        )
        if plainly and usable[row] and fresh[row]:
            at = request.number, sample
            stored["tokens"][at] = np.where(there[row], rollouts.tokens[row], 0)
            for name, array in arrays.items():
                on = there[row].reshape(-1, *[1] * (array.ndim - 2))
                stored[name][at] = np.where(on, array[row], 0)
            stored["length"][at] = rollouts.length[row]
            stored["truncated"][at] = rollouts.truncated[row]
    return stored


@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon")
def spec_rl(
    lenience: Finite = 0.5,
    kl_coefficient: KLCoefficient = 1e-4,
    entropy_coefficient: EntropyCoefficient = 1e-3,
    exact_mb: NonNegative = 0.0,
    **clip: Any,
) -> Recipe:
    """Applies GRPO to responses that continue the accepted prefixes of the last ones.

    Args:
      lenience: nats by which a token may have become less likely (b).
      exact_mb: megabytes (10^6 bytes) that log-probs of all tokens may take. 0: a rejected token is
        sampled from the policy, as by the authors.
    """
    objective = clipped_objective(
        kl_coefficient=kl_coefficient, entropy_coefficient=entropy_coefficient, **clip
    )
    return Recipe(objective, experience=experience(draw=from_drafts(lenience, exact_mb=exact_mb)))


METHOD = Method(
    spec_rl,
    changes="sampling",
    shown=Shown("brackets:train=64", "experience/reused_tokens"),
)
