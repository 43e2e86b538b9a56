"""What other people's code calls is typed, and a checker has nothing to say of what is checked."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow  # a minute
def test_the_public_files_are_checked_without_a_word():
    pytest.importorskip("pyright", reason="pip install -e .[types]")
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "0 errors, 0 warnings" in done.stdout


@pytest.mark.slow  # half a minute
def test_every_public_signature_is_known_to_checkers():
    pytest.importorskip("pyright", reason="pip install -e .[types]")
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable]
    command += ["--verifytypes", "rlvr_jax", "--ignoreexternal"]
    inherited = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=inherited)
    assert "Type completeness score: 100%" in done.stdout, done.stdout[-3000:]
    assert "   rlvr_jax.kernels.token_stats" in done.stdout  # behind the link, and looked at, too
