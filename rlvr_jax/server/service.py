"""Sessions, models in training and samplers of all clients, and the thread that computes.

Threads of connections check requests and wait for replies. One thread executes them, in the order
of their numbers for each model. Requests of responses that are alike are sampled together.
"""

import json
import threading
import time
import traceback
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from rlvr_jax.server import checkpoints
from rlvr_jax.server.models import Base, stored_params
from rlvr_jax.server.refusal import Refused
from rlvr_jax.server.registry import Registry, Sampler
from rlvr_jax.server.reply import Reply, failed, of_arrays
from rlvr_jax.server.sampling import Policy, SampleRequest, read_sample, sample_together
from rlvr_jax.server.storage import Record, read_arrays
from rlvr_jax.server.training_run import TrainingRun

_GATHER_SECONDS = 0.05
_MISSING_SECONDS = 60.0
_FUTURES = 4096
_POLICIES = 4
_WAITING = 2048


@dataclass(frozen=True)
class Limits:
    """Sizes of a server.

    Fields:
      rows: rows of a micro-batch in training.
      sampled_rows: responses that are sampled at a time.
      models: models in training in memory.
    """

    rows: int = 8
    sampled_rows: int = 64
    models: int = 8


class _Sample(NamedTuple):
    request_id: str
    name: str
    sampler: Sampler
    request: SampleRequest


class Future:
    """A request whose reply comes later."""

    def __init__(self, owner: str, samples: int = 0):
        self.owner, self.samples = owner, samples
        self.made: float = time.monotonic()
        self.done = threading.Event()
        self.reply: Reply | None = None

    def set(self, reply: Reply) -> None:
        """Sets the reply and wakes those who wait."""
        self.reply = reply
        self.done.set()


class Service:
    """Models in training, samplers and their requests. Methods take the client.

    Args:
      folder: of its files. Sessions and models of an earlier process go on.
      bases: models by the names that clients use.
    """

    def __init__(self, folder: Path, bases: Mapping[str, Base], limits: Limits):
        self.registry, self.bases, self._limits = Registry(folder), bases, limits
        self._lock = threading.RLock()
        self._wake = threading.Condition(self._lock)
        self._work: deque[Any] = deque()
        self._ended = False
        self._runs: dict[str, TrainingRun] = {}
        self._futures: OrderedDict[str, Future] = OrderedDict()
        self._policies: OrderedDict[str, Policy] = OrderedDict()
        for model_id in self.registry.open_models():
            self._replay(model_id)
        self._thread = threading.Thread(target=self._loop, name="device", daemon=True)

    def start(self) -> None:
        """Starts the thread that computes."""
        self._thread.start()

    def close(self) -> None:
        """Ends that thread after the current request, and closes the files."""
        with self._wake:
            self._ended = True
            self._wake.notify()
        self._thread.join()
        self.registry.close()
        for run in self._runs.values():
            run.close()

    def check_base(self, base: str) -> None:
        """Refuses a name that is not of a model of the server."""
        if base not in self.bases:
            raise Refused(f"base_model must be one of {', '.join(self.bases)}, got {base!r:.80}")

    def end_session(self, owner: str, session: str) -> None:
        """Ends a session: its models leave the memory, and their files stay."""
        self.registry.end_session(owner, session)
        with self._lock:
            for model_id in [one for one in self._runs if one.startswith(f"{session}:")]:
                self._runs.pop(model_id).close()

    def submit(self, owner: str, model_id: str, record: Record) -> str:
        """Accepts a request to a model in training, or for a new one; returns its name."""
        with self._lock:
            session, _, number = model_id.partition(":train:")
            self.registry.check_open(owner, session)
            run = self._runs.get(model_id)
            if run is None:
                if record.seq or not (number.isascii() and number.isdecimal()):
                    raise _unknown_model(model_id)
                if len(self._runs) >= self._limits.models:
                    raise Refused(
                        f"the server must have fewer than {self._limits.models} models in training,"
                        " and has that many; end a session, or start it with a larger --models"
                    )
                self.registry.add_model(owner, model_id)
                run = self._runs[model_id] = self._opened(model_id)
            request_id = f"{model_id}:{record.seq}"
            if run.accept(record):
                self._new_future(request_id, owner)
                self._schedule(model_id)
            return request_id

    def create_sampler(self, owner: str, session: str, number: int, body: Mapping[str, Any]) -> str:
        """Makes a sampler of a base model or of stored weights."""
        self.registry.check_open(owner, session)
        base, path = body.get("base_model"), body.get("model_path")
        if path is not None:
            address = checkpoints.parse_address(path)
            checkpoints.stored_spec(self.registry.file_of(owner, address))
            source = str(address)
        else:
            source = str(base)
            self.check_base(source)
        name = f"{session}:sample:{number}"
        self.registry.add_sampler(name, Sampler(owner, source))
        return name

    def sampler_source(self, owner: str, name: str) -> tuple[str, str | None]:
        """The base model of a sampler, and the address of its weights if they have one."""
        sampler = self.registry.sampler(owner, name)
        if sampler.source in self.bases:
            return sampler.source, None
        spec = checkpoints.stored_spec(self.registry.sampler_file(name, sampler))
        return spec.base, sampler.source if sampler.source.startswith("tinker://") else None

    def sample(self, owner: str, body: Mapping[str, Any]) -> tuple[str, int]:
        """Accepts a request for responses; returns its name and their number."""
        name, seq = body.get("sampling_session_id"), body.get("seq_id")
        sampler = self.registry.sampler(owner, name)
        if type(seq) is not int:
            raise Refused(f"sample: seq_id must be the number of a request, got {seq!r:.80}")
        request_id = f"{name}:{seq}"
        with self._lock:
            known = self._futures.get(request_id)
        if known is not None:
            return request_id, known.samples
        request = read_sample(name, self._policy(name, sampler), body)
        with self._wake:
            if len(self._work) >= _WAITING:
                raise Refused("the server must have fewer requests that wait", 429)
            self._new_future(request_id, owner, request.alike.samples)
            self._work.append(_Sample(request_id, name, sampler, request))
            self._wake.notify()
        return request_id, request.alike.samples

    def retrieve(self, owner: str, request_id: str, seconds: float) -> Reply | None:
        """The reply to a request; None if it does not come within some seconds."""
        with self._lock:
            future = self._futures.get(request_id)
        if future is None or future.owner != owner:
            raise Refused(f"request_id must be of a known request, got {request_id!r:.120}", 410)
        if not future.done.wait(seconds):
            model_id, _, seq = request_id.rpartition(":")
            run = self._runs.get(model_id)
            if run is not None and time.monotonic() - future.made > _MISSING_SECONDS:
                run.give_up(int(seq))
                with self._lock:
                    self._schedule(model_id)
        return future.reply

    def cancel(self, owner: str, request_id: str) -> None:
        """Drops a request for responses that still waits."""
        with self._lock:
            future = self._futures.get(request_id)
            if future is None or future.owner != owner:
                return
            left = [one for one in self._work if getattr(one, "request_id", None) != request_id]
            if len(left) < len(self._work):
                self._work = deque(left)
                future.set(failed("the request was cancelled", "user"))

    def training_run(self, owner: str, model_id: str) -> TrainingRun:
        """A model in training of this client."""
        run = self._runs.get(model_id)
        if run is None or self.registry.owner_of(model_id) != owner:
            raise _unknown_model(model_id)
        return run

    def _policy(self, name: str, sampler: Sampler) -> Policy:
        """The weights of a sampler, from memory or its file."""
        with self._lock:
            if name in self._policies:
                self._policies.move_to_end(name)
                return self._policies[name]
            if sampler.source in self.bases:
                base = self.bases[sampler.source]
                policy = Policy(base.model, base.params, base.tokenizer)
            else:
                file = self.registry.sampler_file(name, sampler)
                spec = checkpoints.stored_spec(file)
                base = self.bases[spec.base]
                model, params = stored_params(base, spec, read_arrays(file))
                policy = Policy(model, params, base.tokenizer)
            self._policies[name] = policy
            while len(self._policies) > _POLICIES:
                self._policies.popitem(last=False)
            return policy

    def _new_future(self, request_id: str, owner: str, samples: int = 0) -> Future:
        future = self._futures[request_id] = Future(owner, samples)
        while len(self._futures) > _FUTURES:
            self._futures.popitem(last=False)
        return future

    def _opened(self, model_id: str) -> TrainingRun:
        owner = self.registry.owner_of(model_id)
        folder = self.registry.folder_of(owner, model_id)
        file_of = partial(self.registry.file_of, owner)
        return TrainingRun(model_id, folder, self.bases, self._limits.rows, file_of)

    def _schedule(self, model_id: str) -> None:
        if model_id not in self._work:
            self._work.append(model_id)
            self._wake.notify()

    def _loop(self) -> None:
        while True:
            with self._wake:
                while not self._work and not self._ended:
                    self._wake.wait()
                if self._ended:
                    return
                work = self._work.popleft()
            if isinstance(work, _Sample):
                self._sample_alike(work)
            else:
                self._train(work)

    def _train(self, model_id: str) -> None:
        run = self._runs.get(model_id)
        record = None if run is None else run.take()
        if run is None or record is None:
            return
        reply = self._executed(run, record)
        with self._wake:
            future = self._futures.get(f"{model_id}:{record.seq}")
            self._schedule(model_id)
        if future is not None:
            future.set(reply)

    def _executed(self, run: TrainingRun, record: Record) -> Reply:
        """Executes a request of a model and stores its reply."""
        try:
            reply = run.execute(record)
        except Refused as error:
            reply = failed(str(error), "user")
        except Exception as error:
            traceback.print_exc()
            reply = failed(f"the server failed: {type(error).__name__}: {error}", "server")
        run.finish(record, reply)
        if record.kind == "save_weights_for_sampler":
            sampler = json.loads(reply.body).get("sampling_session_id")
            if sampler is not None:
                source = Sampler(self.registry.owner_of(run.model_id), run.model_id)
                self.registry.add_sampler(sampler, source)
        return reply

    def _taken_along(self, first: _Sample, most: int) -> list[_Sample]:
        """Takes waiting requests that are alike. A client sends the prompts of a step one by one,
        so this waits until no more come."""
        alike, seen, same = first.request.alike, -1, []
        while seen < len(same) < most:
            seen = len(same)
            time.sleep(_GATHER_SECONDS)
            with self._lock:
                same = [one for one in self._work if isinstance(one, _Sample)]
            same = [one for one in same if one.request.alike == alike][:most]
        with self._lock:
            taken = {one.request_id for one in same}
            self._work = deque(
                one for one in self._work if getattr(one, "request_id", None) not in taken
            )
        return same

    def _sample_alike(self, first: _Sample) -> None:
        most = max(1, self._limits.sampled_rows // first.request.alike.samples)
        together = [first, *self._taken_along(first, most - 1)]
        try:
            policy = self._policy(first.name, first.sampler)
            requests = [one.request for one in together]
            bodies = sample_together(policy, requests, self._limits.sampled_rows)
            replies = [of_arrays(body) for body in bodies]
        except Refused as error:
            replies = [failed(str(error), "user")] * len(together)
        except Exception as error:
            traceback.print_exc()
            replies = [failed(f"the server failed: {type(error).__name__}: {error}", "server")]
            replies *= len(together)
        for one, reply in zip(together, replies, strict=True):
            with self._lock:
                future = self._futures.get(one.request_id)
            if future is not None:
                future.set(reply)

    def _replay(self, model_id: str) -> None:
        """Executes the requests of the log of an earlier process."""
        owner = self.registry.owner_of(model_id)
        run = self._runs[model_id] = self._opened(model_id)
        for seq, reply in run.replies.items():
            self._new_future(f"{model_id}:{seq}", owner).set(reply)
        for record in run.unstarted():
            self._new_future(f"{model_id}:{record.seq}", owner)
        while (record := run.take()) is not None:
            self._futures[f"{model_id}:{record.seq}"].set(self._executed(run, record))


def _unknown_model(model_id: str) -> Refused:
    return Refused(f"model_id must be of a model in training, got {model_id!r:.80}", 404)
