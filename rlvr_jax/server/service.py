"""Sessions, models in training and samplers of all clients, and the thread that computes.

Threads of connections check requests and wait for replies. One thread executes them, in the order
of their numbers for each model. Requests of responses that are alike are sampled together.
"""

import json
import secrets
import threading
import time
import traceback
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rlvr_jax.server import checkpoints
from rlvr_jax.server.checkpoints import Address
from rlvr_jax.server.learner import Base, Learner
from rlvr_jax.server.refusal import Refused
from rlvr_jax.server.reply import Reply, failed, of_arrays
from rlvr_jax.server.sampling import Policy, SampleRequest, read_sample, sample_together
from rlvr_jax.server.storage import Log, Record, read_arrays, read_log
from rlvr_jax.server.training_run import TrainingRun

_GATHER_SECONDS = 0.02
_MISSING_SECONDS = 60.0
_FUTURES = 4096
_POLICIES = 4


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
    sampler: str
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
    """All that a server knows. Methods take the client, and refuse what is not theirs.

    Args:
      folder: of its files. What it has from an earlier process goes on.
      bases: models by the names that clients use.
    """

    def __init__(self, folder: Path, bases: Mapping[str, Base], limits: Limits):
        self._folder, self.bases, self._limits = folder, bases, limits
        self._lock = threading.RLock()
        self._wake = threading.Condition(self._lock)
        self._work: deque[Any] = deque()
        self._ended = False
        self._sessions: dict[str, tuple[str, bool]] = {}
        self._samplers: dict[str, tuple[str, str]] = {}
        self._runs: dict[str, TrainingRun] = {}
        self._owners: dict[str, str] = {}
        self._futures: OrderedDict[str, Future] = OrderedDict()
        self._policies: OrderedDict[str, Policy] = OrderedDict()
        folder.mkdir(parents=True, exist_ok=True)
        self._recover()
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
        self._log.close()
        for run in self._runs.values():
            run.close()

    def check_base(self, base: str) -> None:
        """Refuses a name that is not of a model of the server."""
        if base not in self.bases:
            raise Refused(f"base_model must be one of {', '.join(self.bases)}, got {base!r:.80}")

    def create_session(self, owner: str) -> str:
        """Makes a session of a client; its name cannot be guessed."""
        name = f"s{secrets.token_hex(8)}"
        self._note("session", {"session": name, "owner": owner})
        return name

    def finish_session(self, owner: str, session: str) -> None:
        """Ends a session: its models leave the memory, and their files stay."""
        self._open_session(owner, session)
        self._note("finish", {"session": session})

    def heartbeat(self, owner: str, session: str) -> None:
        """Refuses a session that has ended."""
        self._open_session(owner, session)

    def submit(self, owner: str, model_id: str, record: Record) -> str:
        """Accepts a request to a model in training, or for a new one; returns its name."""
        with self._lock:
            session, _, number = model_id.partition(":train:")
            self._open_session(owner, session)
            run = self._runs.get(model_id)
            if run is None:
                if record.seq or not (number.isascii() and number.isdecimal()):
                    raise _unknown_model(model_id)
                if len(self._runs) >= self._limits.models:
                    raise Refused(
                        f"the server must have fewer than {self._limits.models} models in training,"
                        " and has that many; end a session, or start it with a larger --models"
                    )
                run = self._runs[model_id] = self._opened(model_id)
                self._owners[model_id] = owner
            request_id = f"{model_id}:{record.seq}"
            if run.accept(record):
                self._new_future(request_id, owner)
                self._schedule(model_id)
            return request_id

    def create_sampler(self, owner: str, session: str, number: int, body: Mapping[str, Any]) -> str:
        """Makes a sampler of a base model or of stored weights."""
        self._open_session(owner, session)
        base, path = body.get("base_model"), body.get("model_path")
        if path is not None:
            source = str(checkpoints.parse_address(path))
            checkpoints.stored_spec(self.file_of(owner, Address(*source[9:].split("/"))))
        else:
            source = str(base)
            self.check_base(source)
        name = f"{session}:sample:{number}"
        with self._lock:
            known = self._samplers.get(name)
            if known is not None and known[1] != source:
                raise Refused(f"sampling_session_seq_id must be new, got {number}")
            if known is None:
                self._note("sampler", {"sampler": name, "owner": owner, "source": source})
        return name

    def tokenizer_of(self, base: str) -> str:
        """The folder of a base model's tokenizer, in the files of this server."""
        return str((self._folder / "tokenizers" / base.replace("/", "--")).absolute())

    def sampler_source(self, owner: str, sampler: str) -> tuple[str, str | None]:
        """The base model of a sampler, and the address of its weights if they have one."""
        source = self._source(owner, sampler)
        if source in self.bases:
            return source, None
        spec = checkpoints.stored_spec(self._source_file(owner, sampler, source))
        return spec.base, source if source.startswith("tinker://") else None

    def sample(self, owner: str, body: Mapping[str, Any]) -> tuple[str, int]:
        """Accepts a request for responses; returns its name and their number."""
        sampler, seq = body.get("sampling_session_id"), body.get("seq_id")
        if not isinstance(sampler, str) or type(seq) is not int:
            raise Refused("sample: sampling_session_id and seq_id must be given")
        request_id = f"{sampler}:{seq}"
        source = self._source(owner, sampler)
        with self._lock:
            known = self._futures.get(request_id)
        if known is not None:
            return request_id, known.samples
        policy = self._policy(owner, sampler, source)
        request = read_sample(sampler, policy, body)
        with self._wake:
            self._new_future(request_id, owner, request.alike.samples)
            self._work.append(_Sample(request_id, sampler, request))
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
        """Drops a request for responses that has not begun."""
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
        if run is None or self._owners.get(model_id) != owner:
            raise _unknown_model(model_id)
        return run

    def folder_of(self, owner: str, model_id: str) -> Path:
        """The folder of the files of a model of this client, in training or not."""
        if self._owners.get(model_id) != owner:
            raise Refused(f"model must be one of yours, got {model_id!r:.80}", 404)
        return self._folder / "models" / model_id.replace(":", "-")

    def file_of(self, owner: str, address: Address) -> Path:
        """The file of stored weights of this client, which may not exist."""
        return checkpoints.stored_file(
            self.folder_of(owner, address.model_id), address.kind, address.name
        )

    def _open_session(self, owner: str, session: Any) -> None:
        known, ended = self._sessions.get(session, (None, False))
        if known != owner or ended:
            raise Refused(f"session_id must be of an open session, got {session!r:.80}", 410)

    def _source(self, owner: str, sampler: str) -> str:
        known, source = self._samplers.get(sampler, (None, ""))
        if known != owner:
            raise Refused(f"sampling_session_id must be of a sampler, got {sampler!r:.80}", 404)
        return source

    def _source_file(self, owner: str, sampler: str, source: str) -> Path:
        if source.startswith("tinker://"):
            return self.file_of(owner, checkpoints.parse_address(source))
        number = sampler.rpartition(":")[2]
        return checkpoints.stored_file(self.folder_of(owner, source), "unnamed", number)

    def _policy(self, owner: str, sampler: str, source: str) -> Policy:
        """The weights of a sampler, from memory or its file."""
        with self._lock:
            if sampler in self._policies:
                self._policies.move_to_end(sampler)
                return self._policies[sampler]
            if source in self.bases:
                base = self.bases[source]
                policy = Policy(base.model, base.params, base.tokenizer)
            else:
                file = self._source_file(owner, sampler, source)
                policy = stored_policy(file, self.bases, self._limits.rows)
            self._policies[sampler] = policy
            while len(self._policies) > _POLICIES:
                self._policies.popitem(last=False)
            return policy

    def _new_future(self, request_id: str, owner: str, samples: int = 0) -> Future:
        future = self._futures[request_id] = Future(owner, samples)
        while len(self._futures) > _FUTURES:
            self._futures.popitem(last=False)
        return future

    def _opened(self, model_id: str) -> TrainingRun:
        def file_of(address: Address) -> Path:
            return self.file_of(self._owners[model_id], address)

        folder = self._folder / "models" / model_id.replace(":", "-")
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
        reply = self.executed(run, record)
        with self._wake:
            future = self._futures.get(f"{model_id}:{record.seq}")
            self._schedule(model_id)
        if future is not None:
            future.set(reply)

    def executed(self, run: TrainingRun, record: Record) -> Reply:
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
            self._register(run.model_id, record, reply)
        return reply

    def _register(self, model_id: str, record: Record, reply: Reply) -> None:
        sampler = json.loads(reply.body).get("sampling_session_id")
        if sampler is not None:
            with self._lock:
                self._samplers[sampler] = self._owners[model_id], model_id

    def _sample_alike(self, first: _Sample) -> None:
        most = max(1, self._limits.sampled_rows // first.request.alike.samples)
        if most > 1:
            time.sleep(_GATHER_SECONDS)
        with self._lock:
            same = [one for one in self._work if isinstance(one, _Sample)]
            same = [one for one in same if one.request.alike == first.request.alike][: most - 1]
            taken = {one.request_id for one in same}
            self._work = deque(
                one for one in self._work if getattr(one, "request_id", None) not in taken
            )
        together = [first, *same]
        try:
            owner, source = self._samplers[first.sampler]
            policy = self._policy(owner, first.sampler, source)
            bodies = sample_together(policy, [one.request for one in together])
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

    def _note(self, kind: str, value: Mapping[str, Any]) -> None:
        with self._lock:
            self._log.append(Record(0, kind, json.dumps(value).encode()))
            self._apply(kind, value)

    def _apply(self, kind: str, value: Mapping[str, Any]) -> None:
        if kind == "session":
            self._sessions[value["session"]] = value["owner"], False
        elif kind == "sampler":
            self._samplers[value["sampler"]] = value["owner"], value["source"]
        else:
            session = value["session"]
            self._sessions[session] = self._sessions[session][0], True
            for model_id in [one for one in self._runs if one.startswith(f"{session}:")]:
                self._runs.pop(model_id).close()

    def _recover(self) -> None:
        """Reads sessions and models of an earlier process, and executes what its logs have."""
        path = self._folder / "sessions.log"
        for record in read_log(path) if path.exists() else ():
            self._apply(record.kind, json.loads(record.body))
        self._log = Log(path)
        for folder in sorted((self._folder / "models").glob("*")):
            session, _, number = folder.name.partition("-train-")
            model_id = f"{session}:train:{number}"
            owner, ended = self._sessions[session]
            self._owners[model_id] = owner
            for file in (folder / "unnamed").glob("*.safetensors"):
                self._samplers[f"{session}:sample:{file.stem}"] = owner, model_id
            if not ended:
                self._replay(model_id, owner)

    def _replay(self, model_id: str, owner: str) -> None:
        run = self._runs[model_id] = self._opened(model_id)
        for seq, reply in run.replies.items():
            self._new_future(f"{model_id}:{seq}", owner).set(reply)
        for record in run.unstarted():
            self._new_future(f"{model_id}:{record.seq}", owner)
        while (record := run.take()) is not None:
            self._futures[f"{model_id}:{record.seq}"].set(self.executed(run, record))


def _unknown_model(model_id: str) -> Refused:
    return Refused(f"model_id must be of a model in training, got {model_id!r:.80}", 404)


def stored_policy(file: Path, bases: Mapping[str, Base], rows: int) -> Policy:
    """The policy of stored weights."""
    spec = checkpoints.stored_spec(file)
    learner = Learner(bases[spec.base], spec, rows)
    learner.restore(read_arrays(file), optimizer=False)
    return Policy(learner.model, learner.params, learner.base.tokenizer)
