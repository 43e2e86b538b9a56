"""What `python -m rlvr_jax.tasks` prints."""

import importlib
import sys

import pytest

from rlvr_jax.tasks import load, module_of, names
from rlvr_jax.tasks.__main__ import main
from rlvr_jax.tasks.catalogue import entry, packages_of


def test_every_task_is_printed_with_what_is_known_of_it(capsys):
    main(["operators", "arithmetic:hard"])
    said = capsys.readouterr().out
    lines = said.splitlines()
    assert lines[0] == "operators" and "arithmetic:hard" in lines
    assert lines[1].startswith("  4052 prompts to learn from, 520 to evaluate; made in ")
    assert lines[2:4] == ["  verifier rlvr_jax.tasks.operators:_verify", "  needs nothing else"]
    assert lines[4].split() == ["kind", "prompts", "gold", "half", "empty", "wrong", "ms/grade"]
    assert lines[5].split()[2:6] == ["1.00", "0.00", "0.00", "0.00"]


def test_notes_and_the_verifier_of_files_are_printed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("question,answer\n" + "".join(f"Q{i},{i}\n" for i in range(5)))
    said = str(entry(f"csv:{path}", load, module_of("csv:x")))
    assert "verifier rlvr_jax.verifiers.maths:MathVerifier" in said
    assert "columns are read: prompt=question, answer=answer" in said


def test_a_missing_package_is_named_and_no_error(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    monkeypatch.setattr(importlib.util, "find_spec", _without("reasoning_gym"))
    main(["reasoning_gym:chain_sum"])
    said = capsys.readouterr().out
    assert "not made: load: task 'reasoning_gym:chain_sum' needs the package reasoning-gym" in said
    assert "reasoning-gym (not installed: pip install reasoning-gym)" in said


def _without(missing):
    find = importlib.util.find_spec
    return lambda name, package=None: None if name == missing else find(name, package)


def test_packages_are_found_through_what_a_module_names():
    assert packages_of("rlvr_jax.tasks.operators") == {}
    assert {"tensorflow-datasets", "sympy"} <= set(packages_of("rlvr_jax.tasks.tfds"))
    assert packages_of("no_such_module") == {}


def test_every_built_in_task_has_a_module():
    for name in names():
        assert importlib.import_module(module_of(name))
    assert module_of("jsonl:x") == "rlvr_jax.tasks.data.files"
    assert module_of("mine.own:task") == "mine.own"


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_is_printed(flag, capsys):
    main([flag])
    assert "python -m rlvr_jax.tasks" in capsys.readouterr().out
