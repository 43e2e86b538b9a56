"""What other people's code calls is typed, and a checker has nothing to say of what is checked."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rlvr_jax

ROOT = Path(__file__).parents[1]
STRANGER = """
import numpy as np
import rlvr_jax
rlvr_jax.Rollouts.of_responses(
    np.ones((2, 3), int), np.ones((2, 3), bool), np.ones(2), ["one", "other"]
)
"""


def checked(*arguments: str | Path, **options) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("pyright", reason="pip install -e .[types]")
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, *arguments]
    inherited = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, env=inherited, **options)


@pytest.mark.slow  # a minute
def test_the_public_files_are_checked_without_a_word():
    done = checked(cwd=ROOT)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "0 errors, 0 warnings" in done.stdout


@pytest.mark.slow  # half a minute
def test_every_public_signature_is_known_to_checkers():
    done = checked("--verifytypes", "rlvr_jax", "--ignoreexternal", cwd=ROOT)
    assert "Type completeness score: 100%" in done.stdout, done.stdout[-3000:]
    assert "   rlvr_jax.kernels.token_stats" in done.stdout  # behind the link, and looked at, too


@pytest.mark.slow  # ten seconds
def test_a_stranger_is_told_the_types_of_the_public_names(tmp_path):
    names = [name for name in (*rlvr_jax.__all__, *rlvr_jax._SUBPACKAGES) if name[0] != "_"]
    shown = "".join(f"reveal_type(rlvr_jax.{name})\n" for name in names)
    (tmp_path / "stranger.py").write_text(STRANGER + shown)
    done = checked("stranger.py", cwd=tmp_path)
    assert done.stdout.count("information: Type of") == len(names)
    assert "0 errors" in done.stdout, done.stdout
    assert not [line for line in done.stdout.split("\n") if line.endswith(('"Any"', '"Unknown"'))]
