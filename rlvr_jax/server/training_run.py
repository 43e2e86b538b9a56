"""A model in training with its log: accepted requests survive a kill.

A request is written to the log before it is answered. After a restart the requests since the last
snapshot are executed again, in their order. Weights, waiting gradients and replies are then the
same. A snapshot follows an optimizer step when the requests since the last one took longer than
`SNAPSHOT_SECONDS`, and twenty times as long as that snapshot.
"""

import json
import sys
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np

from rlvr_jax.server import checkpoints
from rlvr_jax.server.bodies import read_adam, read_spec, stored_name
from rlvr_jax.server.checkpoints import SAMPLER_WEIGHTS, WEIGHTS, Address
from rlvr_jax.server.learner import Learner
from rlvr_jax.server.models import Base, Spec
from rlvr_jax.server.refusal import Refused
from rlvr_jax.server.reply import Reply, finite, of_arrays, of_json
from rlvr_jax.server.storage import Log, Record, read_about, read_arrays, read_log, write_arrays
from rlvr_jax.server.wire import read_forward_backward, write_forward_backward

SNAPSHOT_SECONDS = 30.0
"""Work since the last snapshot, after which the next optimizer step writes one."""

_SNAPSHOT_SHARE = 20  # work is at least so many times the time of a snapshot
_STORED_REPLIES = 64
_WAITING = 1024


class TrainingRun:
    """A model in training, its log and its stored weights.

    Args:
      folder: of its files; made if it is new.
      bases: the server's models by name.
      rows: rows of a micro-batch.
      file_of: from an address to the file of stored weights of this client.

    Fields:
      replies: replies by the number of the request; the last ones only.
    """

    def __init__(
        self,
        model_id: str,
        folder: Path,
        bases: Mapping[str, Base],
        rows: int,
        file_of: Callable[[Address], Path],
    ):
        self.model_id, self.folder = model_id, folder
        self._bases, self._rows, self._file_of = bases, rows, file_of
        self._lock = threading.Lock()
        self._waiting: dict[int, Record] = {}
        self._accepted: dict[int, int] = {}
        self.replies: dict[int, Reply] = {}
        self.learner: Learner | None = None
        self._failed: int | None = None
        self._next = 0
        self._seconds = self._snapshot_seconds = 0.0
        self._number = 0
        folder.mkdir(parents=True, exist_ok=True)
        self._recover()

    @property
    def spec(self) -> Spec | None:
        """The spec of the model; None before it was made."""
        return None if self.learner is None else self.learner.spec

    def accept(self, record: Record) -> bool:
        """Writes a request to the log.

        Returns:
          Whether it is new; the same request again changes nothing.
        Raises:
          Refused: another request had this number.
        """
        checksum = zlib.crc32(record.kind.encode() + record.body)
        with self._lock:
            if record.seq < self._next or record.seq in self._accepted:
                if self._accepted.get(record.seq, checksum) != checksum:
                    raise Refused(f"seq_id must be new for another request, got {record.seq} again")
                return False
            if len(self._waiting) >= _WAITING:
                raise Refused(f"model {self.model_id} must have fewer requests that wait", 429)
            self._log.append(record)
            self._accepted[record.seq] = checksum
            self._waiting[record.seq] = record
            return True

    def take(self) -> Record | None:
        """The next request in order; None if it has not come yet."""
        with self._lock:
            record = self._waiting.get(self._next)
            if record is not None:
                self._next += 1
            return record

    def give_up(self, seq: int) -> None:
        """Lets a request run whose predecessors have not come; these fail."""
        with self._lock:
            if seq not in self._waiting or self._next in self._waiting:
                return
            for number in range(self._next, min(self._waiting)):
                record = Record(number, "missing", b"")
                self._log.append(record)
                self._accepted[number] = 0
                self._waiting[number] = record

    def execute(self, record: Record) -> Reply:
        """Executes a request that `take` returned.

        Raises:
          Refused: a request that this server does not execute; the model is as before.
        """
        start = time.monotonic()
        try:
            return _ACTIONS[record.kind](self, record)
        except Exception:
            if record.kind in ("forward_backward", "missing"):  # not "forward"
                self._failed = record.seq
            raise
        finally:
            self._seconds += time.monotonic() - start

    def finish(self, record: Record, reply: Reply) -> None:
        """Stores the reply, and a snapshot if it is time for one."""
        self.replies[record.seq] = reply
        with self._lock:
            self._waiting.pop(record.seq, None)
            for old in [seq for seq in self.replies if seq <= record.seq - _STORED_REPLIES]:
                del self.replies[old]
                self._accepted.pop(old, None)
            whole = self.learner is not None and not self.learner.pending and self._failed is None
            least = max(SNAPSHOT_SECONDS, _SNAPSHOT_SHARE * self._snapshot_seconds)
            stepped = record.kind == "optim_step" and self._seconds > least
            # What was loaded may be replaced, so it cannot be loaded once more.
            if whole and (stepped or record.kind == "load_weights"):
                self._snapshot()

    def close(self) -> None:
        """Closes the log and drops the model; its files stay."""
        with self._lock:
            self._log.close()
            self.learner = None

    def unstarted(self) -> list[Record]:
        """Requests of the log that are not executed yet."""
        return [self._waiting[seq] for seq in sorted(self._waiting)]

    def _files(self, number: int) -> tuple[Path, Path]:
        return self.folder / f"snapshot-{number}.safetensors", self.folder / f"log-{number}"

    def _snapshot(self) -> None:
        """Writes the state and a new log with the requests that are not executed yet."""
        learner, start = self.learner, time.monotonic()
        assert learner is not None
        old, (snapshot, log) = self._files(self._number), self._files(self._number + 1)
        log.unlink(missing_ok=True)  # of a process that was killed here
        new_log = Log(log)
        replies = {
            f"reply/{seq}": np.frombuffer(r.body, np.uint8) for seq, r in self.replies.items()
        }
        kinds = {seq: reply.kind for seq, reply in self.replies.items()}
        about = {"spec": asdict(learner.spec), "next": self._next, "kinds": kinds}
        about["accepted"] = {seq: one for seq, one in self._accepted.items() if seq < self._next}
        try:
            new_log.append(*self.unstarted())
            write_arrays(snapshot, {**learner.state(), **replies}, about)
        except OSError as error:
            # The last snapshot and its log have all requests.
            new_log.close()
            print(f"warning: no snapshot of {self.model_id}: {error}", file=sys.stderr)
            self._seconds = 0.0
            return
        self._log.close()
        self._log, self._number = new_log, self._number + 1
        for path in old:
            path.unlink(missing_ok=True)
        self._seconds, self._snapshot_seconds = 0.0, time.monotonic() - start

    def _recover(self) -> None:
        numbers = [int(path.stem.partition("-")[2]) for path in self.folder.glob("snapshot-*")]
        self._number = max(numbers, default=0)
        snapshot, log = self._files(self._number)
        if snapshot.exists():
            arrays, about = read_arrays(snapshot), read_about(snapshot)
            self.learner = self._made(Spec(**about["spec"]))
            self.learner.restore(arrays)
            self._next = about["next"]
            self._accepted = {int(seq): one for seq, one in about["accepted"].items()}
            for seq, kind in about["kinds"].items():
                self.replies[int(seq)] = Reply(kind, arrays[f"reply/{seq}"].tobytes())
        if log.exists():
            for record in read_log(log):
                self._accepted[record.seq] = zlib.crc32(record.kind.encode() + record.body)
                self._waiting[record.seq] = record
        self._log = Log(log)

    def _made(self, spec: Spec) -> Learner:
        if spec.base not in self._bases:
            raise Refused(f"base_model must be one of {', '.join(self._bases)}, got {spec.base!r}")
        width = self._bases[spec.base].model.config.width
        if spec.rank > width:
            raise Refused(f"lora_config: rank must be at most {width}, got {spec.rank}")
        return Learner(self._bases[spec.base], spec, self._rows)

    def _model(self) -> Learner:
        if self.learner is None:
            raise Refused(f"model {self.model_id} must be made first, but that failed")
        return self.learner

    def _missing(self, record: Record) -> Reply:
        raise Refused(f"request {record.seq} of {self.model_id} did not arrive")

    def _create(self, record: Record) -> Reply:
        body = json.loads(record.body)
        self.learner = self._made(read_spec(body, self.model_id))
        return of_json({"model_id": self.model_id, "type": "create_model"})

    def _forward_backward(self, record: Record) -> Reply:
        outputs = self._model().forward_backward(read_forward_backward(record.body))
        return of_arrays(write_forward_backward(finite(outputs.metrics), outputs.arrays))

    def _optim_step(self, record: Record) -> Reply:
        learner, failed = self._model(), self._failed
        self._failed = None
        if failed is not None:
            learner.drop_gradient()
            raise Refused(
                f"optim_step: request {failed} failed, so the gradient of this step is incomplete;"
                " it is dropped and the weights are unchanged"
            )
        metrics = learner.optim_step(read_adam(json.loads(record.body)))
        return of_json({"metrics": finite(metrics), "type": "optim_step"})

    def _save(self, record: Record) -> Reply:
        body, learner = json.loads(record.body), self._model()
        if learner.pending:
            raise Refused(
                "save_weights: an optim_step must come after forward_backward and before it, as"
                " stored weights have no gradient"
            )
        address = Address(self.model_id, WEIGHTS, stored_name(body, record.seq))
        self._store(address, record, learner, optimizer=True, overwrite=bool(body.get("overwrite")))
        return of_json({"path": str(address), "type": "save_weights"})

    def _save_for_sampler(self, record: Record) -> Reply:
        body, learner = json.loads(record.body), self._model()
        if body.get("kind", "snapshot") != "snapshot":
            raise Refused(
                f"kind must be snapshot, the only kind that is supported, got {body['kind']!r}"
            )
        if body.get("path") is None:
            session = self.model_id.partition(":")[0]
            number = body.get("sampling_session_seq_id")
            if type(number) is not int:
                raise Refused(
                    "save_weights_for_sampler: path or sampling_session_seq_id must be given"
                )
            file = checkpoints.stored_file(self.folder, checkpoints.UNNAMED, str(number))
            checkpoints.store(file, learner, optimizer=False, request=str(record.seq))
            checkpoints.drop_old_unnamed(self.folder)
            found = {"sampling_session_id": f"{session}:sample:{number}"}
        else:
            address = Address(self.model_id, SAMPLER_WEIGHTS, stored_name(body, record.seq))
            self._store(address, record, learner, optimizer=False, overwrite=False)
            found = {"path": str(address)}
        return of_json({**found, "type": "save_weights_for_sampler"})

    def _store(
        self,
        address: Address,
        record: Record,
        learner: Learner,
        *,
        optimizer: bool,
        overwrite: bool,
    ) -> None:
        file, request = self._file_of(address), f"{self.model_id}:{record.seq}"
        if not overwrite:
            checkpoints.check_new(file, request)
        checkpoints.store(file, learner, optimizer, request)

    def _load(self, record: Record) -> Reply:
        body = json.loads(record.body)
        address = checkpoints.parse_address(body.get("path"))
        file = self._file_of(address)
        spec = checkpoints.stored_spec(file)
        if body.get("optimizer") and address.kind != WEIGHTS:
            raise Refused(f"load_weights: {address} has no optimizer, as it is for sampling only")
        learner = self.learner
        if learner is None:
            learner = self._made(spec)
        elif learner.pending:
            raise Refused("load_weights: an optim_step must come after forward_backward, got none")
        learner.restore(read_arrays(file), optimizer=bool(body.get("optimizer")))
        self.learner = learner
        return of_json({"path": str(address), "model_id": self.model_id, "type": "load_weights"})


_ACTIONS: Mapping[str, Callable[[TrainingRun, Record], Reply]] = {
    "create_model": TrainingRun._create,
    "missing": TrainingRun._missing,
    "forward": TrainingRun._forward_backward,
    "forward_backward": TrainingRun._forward_backward,
    "optim_step": TrainingRun._optim_step,
    "save_weights": TrainingRun._save,
    "save_weights_for_sampler": TrainingRun._save_for_sampler,
    "load_weights": TrainingRun._load,
}
