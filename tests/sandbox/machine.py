"""What this machine gives to anybody, told by the system's own tools."""

import shutil
import subprocess

import pytest

from rlvr_jax.sandbox import Sandbox

_ROOT_OF_ITS_OWN = ("unshare", "--user", "--map-root-user", "--mount")
_ROOT_OF_ITS_OWN += ("mount", "-t", "tmpfs", "none", "/tmp")


def needs_root_of_its_own(box: Sandbox) -> None:
    """Skips where programs have none because the system refuses it. Where only the sandbox fails to
    make it, nothing is skipped."""
    lacking = box.missing.keys() & {"user", "root"}
    if not lacking or shutil.which(_ROOT_OF_ITS_OWN[0]) is None:
        return
    asked = subprocess.run(_ROOT_OF_ITS_OWN, capture_output=True, text=True)
    if asked.returncode:
        pytest.skip(f"this machine gives no root of its own: {asked.stderr.strip()}")
