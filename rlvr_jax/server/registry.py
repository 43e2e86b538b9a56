"""Sessions, models and samplers by client, and their files. It survives a restart."""

import json
import secrets
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rlvr_jax.server import checkpoints
from rlvr_jax.server.checkpoints import Address
from rlvr_jax.server.refusal import Refused
from rlvr_jax.server.storage import Log, Record, read_log


class Sampler(NamedTuple):
    """A sampler of a client.

    Fields:
      source: name of a base model, address of stored weights, or the model in training of a
        sampler without a name.
    """

    owner: str
    source: str


class Registry:
    """Names of sessions, models and samplers, each with the client that made it.

    A name that is unknown or of another client is refused with the same sentence.

    Args:
      folder: of all files of the server; made if it is new.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self._lock = threading.RLock()
        self._sessions: dict[str, str] = {}
        self._ended: set[str] = set()
        self._samplers: dict[str, Sampler] = {}
        self._models: dict[str, str] = {}
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "sessions.log"
        for record in read_log(path) if path.exists() else ():
            self._apply(record.kind, json.loads(record.body))
        self._log = Log(path)
        for folder in sorted((self._folder / "models").glob("*-train-*")):
            model_id = folder.name.replace("-", ":")
            session = model_id.partition(":")[0]
            if session not in self._sessions:
                continue
            owner = self._models[model_id] = self._sessions[session]
            for file in (folder / checkpoints.UNNAMED).glob("*.safetensors"):
                self._samplers[f"{session}:sample:{file.stem}"] = Sampler(owner, model_id)

    def close(self) -> None:
        """Closes the log."""
        self._log.close()

    def create_session(self, owner: str) -> str:
        """Makes a session of a client; its name cannot be guessed."""
        name = f"s{secrets.token_hex(8)}"
        self._note("session", {"session": name, "owner": owner})
        return name

    def end_session(self, owner: str, session: str) -> None:
        """Ends a session."""
        self.check_open(owner, session)
        self._note("end", {"session": session})

    def check_open(self, owner: str, session: Any) -> None:
        """Refuses a session that has ended."""
        if self._sessions.get(session) != owner or session in self._ended:
            raise Refused(f"session_id must be of an open session, got {session!r:.80}", 410)

    def open_models(self) -> Iterator[str]:
        """The models whose session has not ended."""
        return (one for one in self._models if one.partition(":")[0] not in self._ended)

    def add_model(self, owner: str, model_id: str) -> None:
        """Adds a model of a session."""
        self._models[model_id] = owner

    def owner_of(self, model_id: str) -> str:
        """The client of a model."""
        return self._models[model_id]

    def folder_of(self, owner: str, model_id: str) -> Path:
        """The folder of the files of a model."""
        if self._models.get(model_id) != owner:
            raise Refused(f"model must be one of yours, got {model_id!r:.80}", 404)
        return self._folder / "models" / model_id.replace(":", "-")

    def file_of(self, owner: str, address: Address) -> Path:
        """The file of stored weights, which may not exist."""
        folder = self.folder_of(owner, address.model_id)
        return checkpoints.stored_file(folder, address.kind, address.name)

    def add_sampler(self, name: str, sampler: Sampler) -> None:
        """Adds a sampler; again the same one changes nothing."""
        with self._lock:
            known = self._samplers.get(name)
            if known is None:
                self._note("sampler", {"sampler": name, **sampler._asdict()})
            elif known != sampler:
                raise Refused(f"sampling_session_seq_id must be new, got that of {name}")

    def sampler(self, owner: str, name: Any) -> Sampler:
        """A sampler of a client."""
        found = self._samplers.get(name) if isinstance(name, str) else None
        if found is None or found.owner != owner:
            raise Refused(f"sampling_session_id must be of a sampler, got {name!r:.80}", 404)
        return found

    def sampler_file(self, name: str, sampler: Sampler) -> Path:
        """The file of the weights of a sampler that is not of a base model."""
        if sampler.source.startswith("tinker://"):
            return self.file_of(sampler.owner, checkpoints.parse_address(sampler.source))
        folder = self.folder_of(sampler.owner, sampler.source)
        return checkpoints.stored_file(folder, checkpoints.UNNAMED, name.rpartition(":")[2])

    def tokenizer_folder(self, base: str) -> str:
        """The folder of a base model's tokenizer."""
        return str((self._folder / "tokenizers" / base.replace("/", "--")).absolute())

    def _note(self, kind: str, value: Mapping[str, Any]) -> None:
        with self._lock:
            self._log.append(Record(0, kind, json.dumps(value).encode()))
            self._apply(kind, value)

    def _apply(self, kind: str, value: Mapping[str, Any]) -> None:
        if kind == "session":
            self._sessions[value["session"]] = value["owner"]
        elif kind == "sampler":
            self._samplers[value["sampler"]] = Sampler(value["owner"], value["source"])
        else:
            self._ended.add(value["session"])
