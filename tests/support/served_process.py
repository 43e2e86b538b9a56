"""A server of the Tinker protocol in a process of its own, which may be killed."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from rlvr_jax import tasks

ROOT = Path(__file__).parents[2]


class Process:
    """A server of a model, brackets if none is named.

    Fields:
      port, token: of the server.
    """

    def __init__(self, folder: Path, model: str | None = None):
        model = model or f"brackets={tasks.load('brackets').base_model}"
        line = [sys.executable, "-m", "rlvr_jax.experiments.serve", "--model", model]
        line += ["--port", "0", "--run-dir", str(folder), "--rows", "4"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            line, stdout=subprocess.PIPE, text=True, cwd=folder.parent, env=environment
        )
        head = "".join(self.process.stdout.readline() for _ in range(3))
        self.port = int(re.search(r"http://127.0.0.1:(\d+)\n", head)[1])
        self.token = (folder / "token").read_text().strip()

    def kill(self) -> None:
        """Kills the process without a warning."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()
