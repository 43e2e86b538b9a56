"""The unmodified SDK, the program of the page, and two loops of the cookbook against a server."""

import contextlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from served_process import Process

from rlvr_jax.policy import shipped_weights

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how_to/tinker.md").read_text()


def interpreter(*modules):
    """An interpreter that has some modules: this one, or that of TINKER_PYTHON."""
    other = os.environ.get("TINKER_PYTHON")
    if all(importlib.util.find_spec(name) for name in modules):
        return sys.executable
    code = "".join(f"import {name};" for name in modules)
    if not other or subprocess.run([other, "-c", code], capture_output=True).returncode:
        pytest.skip(
            f"{' and '.join(modules)} must be installed here (pip install -e .[tinker]) or in the"
            " interpreter TINKER_PYTHON"
        )
    return other


def run(python, process, *line, folder):
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "TINKER_BASE_URL": f"http://127.0.0.1:{process.port}",
        "TINKER_API_KEY": process.token,
        "TINKER_TELEMETRY": "0",
    }
    done = subprocess.run(
        [python, *map(str, line)], capture_output=True, text=True, cwd=folder, env=environment
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@contextlib.contextmanager
def smollm2(folder):
    try:
        shipped_weights()
    except ValueError as error:
        pytest.skip(str(error))
    process = Process(folder, "smollm2")
    try:
        yield process
    finally:
        process.kill()


@pytest.mark.slow
def test_the_sdk_trains_and_samples(tmp_path):
    python = interpreter("tinker", "torch")
    process = Process(tmp_path / "served")
    try:
        text = run(python, process, ROOT / "tests/server/sdk_program.py", folder=tmp_path)
    finally:
        process.kill()
    found = json.loads(text.splitlines()[-1])
    assert found["info"] == "brackets" and found["fields"] == ["entropy", "logprobs"]
    assert found["losses"][0] > 1.2 * found["losses"][1] > 1.2 * found["losses"][2]
    np.testing.assert_allclose(*found["chunks"], rtol=1e-4)
    assert found["outputs"] == 5
    assert found["sampled"][0] == found["sampled"][1]
    assert found["prompt"][0] is None and all(logp < 0 for logp in found["prompt"][1:])
    assert found["top"] == [[found["top"][1], 2], found["top"][1]]
    np.testing.assert_allclose(*found["custom"], rtol=1e-5)
    base, loss, token = found["refused"]
    assert "base_model must be one of brackets, got '../brackets'" in base
    assert "loss_fn must be one of cross_entropy" in loss
    assert "X-API-Key must be the token of this server" in token


@pytest.mark.slow
def test_the_program_of_the_page_runs(tmp_path):
    python = interpreter("tinker")
    (program,) = re.findall(r"```python\n# tinker_client.py.*?\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "tinker_client.py").write_text(program)
    with smollm2(tmp_path / "served") as process:
        text = run(python, process, "tinker_client.py", folder=tmp_path)
    losses = [float(line.split()[0]) for line in text.splitlines()[:3]]
    assert losses[0] > losses[1] > losses[2]
    assert "'covariance'" in text.splitlines()[3]


@pytest.mark.slow
def test_two_loops_of_the_cookbook_train(tmp_path):
    python = interpreter("tinker", "tinker_cookbook")
    loops = ROOT / "tests/server/cookbook_loops.py"
    curves = {}
    with smollm2(tmp_path / "served") as process:
        model = tmp_path / "served/tokenizers/smollm2"
        for name, steps, more in (("supervised", 6, []), ("rl", 5, ["rlvr:clip_cov"])):
            log = tmp_path / name
            run(python, process, loops, name, model, steps, log, *more, folder=tmp_path)
            lines = (log / "metrics.jsonl").read_text().splitlines()
            curves[name] = [json.loads(line) for line in lines]
    loss = [step["train_mean_nll"] for step in curves["supervised"]]
    assert loss[-1] < loss[0] / 3
    correct = [step["env/all/correct"] for step in curves["rl"]]
    assert correct[-1] > correct[0] + 0.1
    assert all("clipped_fraction" in step for step in curves["rl"])
