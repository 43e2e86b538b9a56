"""Serves models to Tinker clients: training and sampling over HTTP.

    python -m rlvr_jax serve --model smollm2 --run-dir runs/serve
    python -m rlvr_jax serve --model FOLDER --model NAME=FOLDER --run-dir runs/serve

Clients use the printed address and token. A client sees only the models of its token. Accepted
requests survive a kill: start the command again with the same --run-dir.
"""

import os
import secrets
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import tyro

from rlvr_jax import policy
from rlvr_jax.arguments import as_typed
from rlvr_jax.parallel.lock import locked
from rlvr_jax.policy import SHIPPED, shipped_weights
from rlvr_jax.runs import described, guarded
from rlvr_jax.server import Base, Limits, Server, Service

LOOPBACK = ("127.0.0.1", "localhost", "::1")
PREFIX = "tml-"
"""First letters of every token: the client of tinker requires them."""


@dataclass(frozen=True)
class Config:
    """Models, address and limits of the server."""

    model: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    """Policy folder, .gguf file or smollm2, or NAME=FOLDER; once for each model."""
    run_dir: Path = Path("runs/serve")
    """Directory for sessions, stored weights and the token."""
    host: str = "127.0.0.1"
    """Address to listen on; another than loopback is reachable by other machines."""
    port: int = 8471
    """Port; 0: a free one."""
    token_file: Path | None = None
    """File with a token per line, each of a client; none: a token is made in the directory."""
    compute_dtype: str = "float32"
    """Type of activations and matrix products: float32 or bfloat16."""
    rows: int = 8
    """Rows of a micro-batch in training."""
    sampled_rows: int = 64
    """Responses that are sampled at a time."""
    models: int = 8
    """Largest number of models in training."""
    body_megabytes: int = 32
    """Largest body of a request."""


def main(arguments: Sequence[str]) -> None:
    """Loads the models and serves until it is stopped."""
    config = tyro.cli(Config, args=list(arguments), description=described(__doc__))
    check(config)
    # Weights and requests of clients are for the user of this process only.
    config.run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(config.run_dir):
        tokens = read_tokens(config)
        bases = load_models(config)
        limits = Limits(config.rows, config.sampled_rows, config.models)
        service = Service(config.run_dir, bases, limits)
        try:
            server = Server(
                (config.host, config.port), service, tokens, config.body_megabytes << 20
            )
        except OSError as error:
            raise ValueError(
                f"--port must be free on --host, got {config.port} on {config.host}:"
                f" {error.strerror}"
            ) from error
        service.start()
        host, port = server.server_address[:2]
        if config.host not in LOOPBACK:
            print(
                "warning: traffic is not encrypted; put a proxy with TLS before it", file=sys.stderr
            )
        where = config.token_file or config.run_dir / "token"
        print(f"models     {', '.join(bases)}")
        print(f"address    export TINKER_BASE_URL=http://{host}:{port}")
        print(f"token      export TINKER_API_KEY=$(head -n 1 {where})", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("stopped; start again with the same --run-dir to go on")
        finally:
            server.server_close()
            service.close()


def check(config: Config) -> None:
    """Refuses settings out of their ranges."""
    if not config.model:
        raise ValueError("--model must be given, got none; --model smollm2 is a small one")
    for name in ("rows", "sampled_rows", "models", "body_megabytes"):
        if getattr(config, name) < 1:
            flag = name.replace("_", "-")
            raise ValueError(f"--{flag} must be at least 1, got {getattr(config, name)}")
    if config.compute_dtype not in ("float32", "bfloat16"):
        raise ValueError(
            f"--compute-dtype must be float32 or bfloat16, got {config.compute_dtype!r}"
        )


def load_models(config: Config) -> dict[str, Base]:
    """Loads the models, and writes their tokenizers where clients of this machine read them."""
    bases: dict[str, Base] = {}
    for given in config.model:
        name, equals, path = given.partition("=")
        path = path if equals else given
        name = name if equals else (given if given == SHIPPED else Path(given).name)
        if name in bases or not name:
            raise ValueError(f"--model must have a new name, got {name!r} in {given!r}; use NAME=")
        folder = shipped_weights() if path == SHIPPED else Path(path).expanduser()
        with as_typed("--model", "tokenizer: path", "load: path"):
            tokenizer = policy.tokenizer(folder)
            model, params = policy.load(folder)
        shape = replace(model.config, compute_dtype=config.compute_dtype)
        bases[name] = Base(name, replace(model, config=shape), params, tokenizer)
        tokenizer.save_pretrained(config.run_dir / "tokenizers" / name.replace("/", "--"))
    return bases


def read_tokens(config: Config) -> list[str]:
    """The tokens of clients; one is made for a new directory."""
    path = config.token_file or config.run_dir / "token"
    if config.token_file is None and not path.exists():
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{PREFIX}{secrets.token_urlsafe(24)}\n")
    if not path.is_file():
        raise ValueError(f"--token-file must be a file, got {str(path)!r}")
    tokens = path.read_text().split()
    short = [token for token in tokens if len(token) < 20 or not token.startswith(PREFIX)]
    if short or not tokens:
        raise ValueError(
            f"--token-file must have tokens of at least 20 letters that begin with {PREFIX}, got"
            f" {len(short)} others of {len(tokens)} in {path}"
        )
    return tokens


if __name__ == "__main__":
    guarded(main)
