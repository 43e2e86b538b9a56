"""The way that CONTRIBUTING.md shows works to the letter, with two files and no other change."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
FILES = dict(re.findall(r"```python\n# ([\w/]+\.py)\n(.*?)```", PAGE, re.DOTALL))
(COMMANDS,) = re.findall(r"nothing else has to change:\n\n((?:    .*\n)+)", PAGE)


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A copy of the repository with the two files of the page."""
    folder = tmp_path_factory.mktemp("clone")
    for path in ROOT.iterdir():
        if path.name in ("rlvr_jax", "tests"):
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(path, folder / path.name, symlinks=True, ignore=ignored)
        elif path.name[0] != "." and path.name not in ("runs", "build"):
            (folder / path.name).symlink_to(path)
    for name, text in FILES.items():
        assert not (folder / name).exists()
        (folder / name).write_text(text)
    return folder


def test_the_page_has_a_method_and_a_test():
    assert [name.split("/")[:2] for name in FILES] == [
        ["rlvr_jax", "methods"],
        ["tests", "methods"],
    ]
    assert len(COMMANDS.splitlines()) == 4


@pytest.mark.thorough
@pytest.mark.parametrize("line", COMMANDS.splitlines())
def test_a_command_of_the_page_works(clone, line):
    command = [*shlex.split(line)]
    command = [sys.executable, *(["-m"] if command[0] == "pytest" else []), *command]
    if "pytest" in command:
        command += ["-n", "0", "-q", "-p", "no:cacheprovider"]
    command = [word for word in command if word != "python"]
    where = os.environ | {"PYTHONPATH": str(clone)}
    done = subprocess.run(command, cwd=clone, env=where, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    if "pytest" in command:
        assert re.search(r"\d+ passed", done.stdout)
    elif "train" in command:
        assert (clone / "runs/certain/policy/config.json").exists()
    else:
        assert "soften_certain_tokens(strength=0.5)" in done.stdout


def test_the_paths_of_the_page_are_there():
    paths = re.findall(r"`((?:tests|rlvr_jax|docs)/[\w/]*(?:\.py|\.md)?)`", PAGE)
    assert len(paths) > 5
    assert [path for path in paths if not (ROOT / path).exists()] == []
