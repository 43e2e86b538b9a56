"""The addresses of the protocol, each a function from a client's body to a reply."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from rlvr_jax.server import checkpoints
from rlvr_jax.server.bodies import read_spec
from rlvr_jax.server.models import Spec
from rlvr_jax.server.refusal import Refused
from rlvr_jax.server.reply import Reply, of_json
from rlvr_jax.server.service import Service
from rlvr_jax.server.storage import Record
from rlvr_jax.server.training_run import TrainingRun
from rlvr_jax.server.wire import read_address

CONNECTIONS = 512
"""Largest number of open connections; each waits for one reply at a time."""

WARNING = (
    "rlvr_jax trains adapters of attention and MLP matrices: train_unembed has no effect, and rank"
    " 0 trains all weights. ttl_seconds and user_metadata have no effect"
)
"""Sentence that the SDK logs when a session begins."""

_POLL_SECONDS = 30.0
_CHUNK_BYTES = 4_000_000


Action = Callable[..., Reply]
"""(service, client, body, words of the address at its stars) -> reply."""


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Refused("the body must be an object of JSON, got other bytes")
    return value


def _seq(body: Mapping[str, Any], name: str = "seq_id") -> int:
    value = body.get(name)
    if type(value) is not int or not 0 <= value < 2**31:
        raise Refused(f"{name} must be a number of a request, got {value!r:.80}")
    return value


def _word(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str):
        raise Refused(f"{name} must be a text, got {value!r:.80}")
    return value


def _config(service: Service, owner: str, body: bytes) -> Reply:
    return of_json(
        {
            "use_pyqwest_transport": False,
            "fwdbwd_max_chunk_bytes_count": _CHUNK_BYTES,
            "sample_max_concurrent_requests": CONNECTIONS // 2,
        }
    )


def _nothing(service: Service, owner: str, body: bytes) -> Reply:
    return of_json({})


def _telemetry(service: Service, owner: str, body: bytes) -> Reply:
    return of_json({"status": "accepted"})


def _capabilities(service: Service, owner: str, body: bytes) -> Reply:
    models = [
        {
            "model_name": name,
            "max_context_length": base.model.config.max_positions,
            "trainable": True,
            "sampleable": True,
        }
        for name, base in service.bases.items()
    ]
    return of_json({"supported_models": models})


def _create_session(service: Service, owner: str, body: bytes) -> Reply:
    session = service.registry.create_session(owner)
    return of_json({"type": "create_session", "session_id": session, "warning_message": WARNING})


def _heartbeat(service: Service, owner: str, body: bytes) -> Reply:
    service.registry.check_open(owner, _word(_object(body), "session_id"))
    return of_json({"type": "session_heartbeat"})


def _finish(service: Service, owner: str, body: bytes, session: str) -> Reply:
    service.end_session(owner, session)
    return of_json({})


def _promised(request_id: str, model_id: str) -> Reply:
    return of_json({"request_id": request_id, "model_id": model_id})


def _create_model(service: Service, owner: str, body: bytes) -> Reply:
    given = _object(body)
    model_id = f"{_word(given, 'session_id')}:train:{_seq(given, 'model_seq_id')}"
    service.check_base(read_spec(given, model_id).base)
    request = service.submit(owner, model_id, Record(0, "create_model", body))
    return _promised(request, model_id)


def _load_weights(service: Service, owner: str, body: bytes) -> Reply:
    given = _object(body)
    address = checkpoints.parse_address(given.get("path"))
    spec = checkpoints.stored_spec(service.registry.file_of(owner, address))
    service.check_base(spec.base)
    if given.get("model_id") is not None:
        model_id, seq = _word(given, "model_id"), _seq(given)
    else:
        model_id = f"{_word(given, 'session_id')}:train:{_seq(given, 'model_seq_id')}"
        seq = 0
    request = service.submit(owner, model_id, Record(seq, "load_weights", body))
    return _promised(request, model_id)


def _forward_backward(service: Service, owner: str, body: bytes) -> Reply:
    model_id, seq, forward_only = read_address(body)
    kind = "forward" if forward_only else "forward_backward"
    request = service.submit(owner, model_id, Record(seq, kind, body))
    return _promised(request, model_id)


def _of_model(kind: str) -> Action:
    def action(service: Service, owner: str, body: bytes) -> Reply:
        given = _object(body)
        model_id = _word(given, "model_id")
        return _promised(service.submit(owner, model_id, Record(_seq(given), kind, body)), model_id)

    return action


def _create_sampler(service: Service, owner: str, body: bytes) -> Reply:
    given = _object(body)
    session, number = _word(given, "session_id"), _seq(given, "sampling_session_seq_id")
    name = service.create_sampler(owner, session, number, given)
    return of_json({"type": "create_sampling_session", "sampling_session_id": name})


def _sampler(service: Service, owner: str, body: bytes, sampler: str) -> Reply:
    base, path = service.sampler_source(owner, sampler)
    return of_json({"sampler_id": sampler, "base_model": base, "model_path": path})


def _sample(service: Service, owner: str, body: bytes) -> Reply:
    request, samples = service.sample(owner, _object(body))
    ids = [f"{request}:{number}" for number in range(samples)]
    return of_json({"request_id": request, "sample_sequence_ids": ids})


def _retrieve(service: Service, owner: str, body: bytes) -> Reply:
    request = _word(_object(body), "request_id")
    reply = service.retrieve(owner, request, _POLL_SECONDS)
    if reply is None:
        # The SDK polls again silently; for a reply `try_again` it logs a warning each time.
        raise Refused("the request is not done yet; poll once more", 408)
    return reply


def _cancel(service: Service, owner: str, body: bytes) -> Reply:
    service.cancel(owner, _word(_object(body), "request_id"))
    return of_json({})


def _info(service: Service, owner: str, body: bytes) -> Reply:
    model_id = _word(_object(body), "model_id")
    run = service.training_run(owner, model_id)
    spec = _spec(run)
    about = {"model_name": spec.base, "tokenizer_id": service.registry.tokenizer_folder(spec.base)}
    return of_json(
        {
            "type": "get_info",
            "model_data": about,
            "model_id": model_id,
            "model_name": spec.base,
            "is_lora": spec.rank > 0,
            "lora_rank": spec.rank or None,
        }
    )


def _spec(run: TrainingRun) -> Spec:
    if run.spec is None:
        raise Refused(f"model {run.model_id} must be made first, but is not yet", 404)
    return run.spec


def _weights_info(service: Service, owner: str, body: bytes) -> Reply:
    address = checkpoints.parse_address(_object(body).get("tinker_path"))
    spec = checkpoints.stored_spec(service.registry.file_of(owner, address))
    return of_json(
        {
            "base_model": spec.base,
            "is_lora": spec.rank > 0,
            "lora_rank": spec.rank or None,
            "train_unembed": False,
            "train_mlp": spec.mlp,
            "train_attn": spec.attention,
        }
    )


def _checkpoints(service: Service, owner: str, body: bytes, model_id: str) -> Reply:
    folder = service.registry.folder_of(owner, model_id)
    return of_json({"checkpoints": list(checkpoints.listed(folder, model_id))})


GET: Mapping[str, Action] = {
    "get_server_capabilities": _capabilities,
    "samplers/*": _sampler,
    "training_runs/*/checkpoints": _checkpoints,
}
POST: Mapping[str, Action] = {
    "client/config": _config,
    "client/dynamic_config": _nothing,
    "create_session": _create_session,
    "session_heartbeat": _heartbeat,
    "sessions/*/finish": _finish,
    "create_model": _create_model,
    "get_info": _info,
    "forward_backward": _forward_backward,
    "optim_step": _of_model("optim_step"),
    "save_weights": _of_model("save_weights"),
    "save_weights_for_sampler": _of_model("save_weights_for_sampler"),
    "load_weights": _load_weights,
    "create_sampling_session": _create_sampler,
    "asample": _sample,
    "retrieve_future": _retrieve,
    "cancel_future": _cancel,
    "weights_info": _weights_info,
    "telemetry": _telemetry,
}
