"""Requests for responses, several of them in one call of the sampler."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from rlvr_jax.experience.stops import completes, stops_of
from rlvr_jax.keys import plain_key
from rlvr_jax.policy import Model, Params, score_prompts
from rlvr_jax.rollout import Prompts, Sampling, sample
from rlvr_jax.server.datums import padded_size
from rlvr_jax.server.refusal import Refused
from rlvr_jax.server.wire import SampledSequence, write_sample

_SAMPLES = 4096
_REFUSED = ("target_prompt_logprobs", "prompt_alt_tokens_k", "topk_prompt_logprobs")
_REFUSED += ("record_stability_info",)


@dataclass(frozen=True)
class Policy:
    """Weights that sample; they never change."""

    model: Model
    params: Params
    tokenizer: Any


class Alike(NamedTuple):
    """The common settings of the requests of one call of the sampler.

    Fields:
      width: prompt tokens, padded.
      stop_tokens: ids that end a response; stop_texts: texts that do.
      top: number of most probable tokens to report at each place.
    """

    sampler: str
    samples: int
    width: int
    max_tokens: int
    top_k: int
    top_p: float
    stop_tokens: tuple[int, ...]
    stop_texts: tuple[str, ...]
    top: int
    prompt_logprobs: bool


@dataclass(frozen=True)
class SampleRequest:
    """A checked request: the prompt, and what it shares with others.

    Fields:
      number: key of its random numbers; responses depend on weights, prompt and this number.
      scored: number of last prompt tokens whose log-probs are reported; None: all.
    """

    alike: Alike
    prompt: np.ndarray
    temperature: float
    number: int
    scored: int | None


def read_sample(sampler: str, policy: Policy, body: Mapping[str, Any]) -> SampleRequest:
    """Reads and checks the body of `asample`.

    Raises:
      Refused: a value out of its range, or something that this server does not have.
    """
    for name in _REFUSED:
        if body.get(name):
            raise Refused(f"sample: {name} must be left out, as this server does not have it")
    config, own = policy.model.config, dict(body.get("sampling_params") or {})
    tokens = prompt_tokens(body.get("prompt"), config.vocab_size)
    room = config.max_positions - len(tokens)
    most = own.get("max_tokens")
    most = room if most is None else _whole("max_tokens", most, 1)
    if most > room:
        raise Refused(
            f"sampling_params: max_tokens must be at most {room} after this prompt, got {most}"
        )
    samples = _whole("num_samples", body.get("num_samples", 1), 1)
    if samples > _SAMPLES:
        raise Refused(f"sample: num_samples must be at most {_SAMPLES}, got {samples}")
    temperature, top_p = (_number(name, own.get(name, 1.0)) for name in ("temperature", "top_p"))
    if temperature < 0 or not 0 < top_p <= 1:
        raise Refused(
            "sampling_params: temperature must be at least 0 and top_p in (0, 1], got"
            f" {temperature} and {top_p}"
        )
    top_k = _whole("top_k", own.get("top_k", -1), -1)
    ids, texts = _stops(policy, own.get("stop"))
    top = _whole("topk_sample_logprobs", body.get("topk_sample_logprobs") or 0, 0)
    if top > config.vocab_size:
        raise Refused(f"topk_sample_logprobs must be at most {config.vocab_size}, got {top}")
    scored = body.get("prompt_logprobs_last_n")
    width = min(padded_size(len(tokens), 16), config.max_positions - most)
    alike = Alike(
        sampler,
        samples,
        width,
        most,
        max(top_k, 0),
        top_p,
        ids,
        texts,
        top,
        bool(body.get("prompt_logprobs")),
    )
    seed = own.get("seed")
    name = f"{sampler}:{body.get('seq_id')}" if seed is None else f"seed {_whole('seed', seed)}"
    number = zlib.crc32(name.encode()) & 0x7FFFFFFF
    return SampleRequest(
        alike, tokens, temperature, number, None if scored is None else _whole("last_n", scored, 1)
    )


def prompt_tokens(prompt: Any, vocabulary: int) -> np.ndarray:
    """The token ids of a prompt of JSON.

    Raises:
      Refused: chunks other than text tokens, no token, or ids outside of the vocabulary.
    """
    chunks = prompt.get("chunks") if isinstance(prompt, Mapping) else None
    ids: list[Any] = []
    for chunk in chunks if isinstance(chunks, list) else [None]:
        if not isinstance(chunk, Mapping) or not isinstance(chunk.get("tokens"), list):
            raise Refused("sample: prompt must have chunks of text tokens, got others")
        ids += chunk["tokens"]
    if not ids or not all(isinstance(one, int) and 0 <= one < vocabulary for one in ids):
        raise Refused(f"sample: prompt must have token ids below {vocabulary}, got others or none")
    return np.array(ids, np.int32)


def sample_together(policy: Policy, requests: Sequence[SampleRequest], rows: int) -> list[bytes]:
    """Replies to requests that are alike, in one call of the sampler.

    Args:
      rows: largest number of responses that are computed at a time.
    """
    alike = requests[0].alike
    count = 1 << (len(requests) - 1).bit_length()  # few sizes, as each is compiled
    # The call is filled up with the first request, whose further responses are dropped.
    filled = [*requests, *[requests[0]] * (count - len(requests))]
    tokens = np.stack([np.pad(one.prompt, (0, alike.width - len(one.prompt))) for one in filled])
    length = np.array([len(one.prompt) for one in filled], np.int32)
    prompts = Prompts(
        tokens,
        length,
        np.array([one.number for one in filled], np.int32),
        np.zeros(count, np.int32),
        temperature=np.array([one.temperature for one in filled], np.float32),
    )
    stops = stops_of(policy.tokenizer, alike.stop_texts, policy.model.config.vocab_size)
    rollouts = sample(
        policy.model,
        policy.params,
        prompts,
        plain_key(0),
        samples=alike.samples,
        response_tokens=alike.max_tokens,
        sampling=Sampling(top_k=alike.top_k, top_p=alike.top_p, stops=stops),
        stop_tokens=alike.stop_tokens,
        record_top=alike.top,
        at_once=rows if count * alike.samples > rows else None,
    )
    scores = None
    if alike.prompt_logprobs:
        scores = np.asarray(_prompt_scores(policy.model, policy.params, rollouts, alike.samples))
    found = jax.device_get(rollouts)
    replies = []
    for place, request in enumerate(requests):
        own = range(place * alike.samples, (place + 1) * alike.samples)
        sequences = [_sequence(policy, alike, found, row) for row in own]
        prompt = None if scores is None else _of_prompt(scores[place], request)
        replies.append(write_sample(sequences, prompt))
    return replies


@partial(jax.jit, static_argnums=(0, 3))
def _prompt_scores(model, params, rollouts, samples):
    rows = jax.tree.map(lambda x: x[::samples], rollouts)
    return score_prompts(model, params, rows)


def _of_prompt(scores: np.ndarray, request: SampleRequest) -> np.ndarray:
    own = scores[: len(request.prompt)].astype(np.float32)
    own[0] = np.nan
    if request.scored is not None:
        own[: -request.scored] = np.nan
    return own


def _sequence(policy: Policy, alike: Alike, found: Any, row: int) -> SampledSequence:
    count = int(found.length[row])
    tokens = found.tokens[row, :count]
    # Texts pause a row: it counts as truncated there.
    stopped = not found.truncated[row] or count < alike.max_tokens
    stopped = stopped or completes(policy.tokenizer, tokens.tolist(), alike.stop_texts)
    top = None
    if alike.top:
        names = "sampled_topk_ids", "sampled_topk_logp"
        ids, logp = (np.asarray(found.records[name])[row, :count] for name in names)
        top = ids, logp
    return SampledSequence(tokens, found.behaviour_logp[row, :count], stopped, top)


def _stops(policy: Policy, stop: Any) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Ids and texts that end a response.

    None and texts leave the ends of the model in place; an empty list ends nothing.
    """
    usual = tuple(dict.fromkeys([policy.tokenizer.eos_token_id, *policy.model.stop_tokens]))
    if stop is None:
        return usual, ()
    given = [stop] if isinstance(stop, str) else stop
    if isinstance(given, list) and all(isinstance(one, str) and one for one in given):
        return (usual if given else ()), tuple(given)
    size = policy.model.config.vocab_size
    if isinstance(given, list) and all(type(one) is int and 0 <= one < size for one in given):
        return tuple(dict.fromkeys([*usual, *given])), ()
    raise Refused(f"sampling_params: stop must be texts or token ids, got {stop!r:.80}")


def _whole(name: str, value: Any, least: int | None = None) -> int:
    if type(value) is not int or (least is not None and value < least):
        wanted = "an integer" if least is None else f"an integer of at least {least}"
        raise Refused(f"sample: {name} must be {wanted}, got {value!r:.80}")
    return value


def _number(name: str, value: Any) -> float:
    if type(value) not in (int, float) or not np.isfinite(value):
        raise Refused(f"sampling_params: {name} must be a number, got {value!r:.80}")
    return float(value)
