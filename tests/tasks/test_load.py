"""Names of tasks: built-in ones, prefixes, a user's own, and what is wrong with the others."""

import importlib
import inspect
import subprocess
import sys
from types import SimpleNamespace
from typing import Literal

import pytest

from rlvr_jax.tasks import (
    Prompt,
    Task,
    graded_one_by_one,
    load,
    load_as_written,
    names,
    without_options,
)
from rlvr_jax.tasks.options import known_options
from rlvr_jax.verifiers import MathVerifier

USER_MODULE = """
from rlvr_jax.tasks import Prompt, Task, graded_one_by_one

TASK = Task(
    name="mine",
    train=[Prompt("1 + 1", answer="2")],
    test=[Prompt("1 + 2", answer="3")],
    verify=graded_one_by_one(lambda prompt, response: float(prompt.answer == response.text)),
)


def make(budget=7):
    return Task("mine", TASK.train, TASK.test, TASK.verify, response_tokens=budget)


def broken():
    return "no task"


LIST = []
"""


@pytest.fixture
def user_module(tmp_path, monkeypatch):
    """A module in the current directory whose name no other test uses."""
    name = f"tasks_of_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(USER_MODULE)
    monkeypatch.chdir(tmp_path)
    yield name
    sys.modules.pop(name, None)


# They need data or an engine; their own tests load them where these are.
ELSEWHERE = {"gsm8k", "gsm_symbolic", "humaneval", "ifbench", "lean", "optimisation", "verilog"}


@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(set(names()) - ELSEWHERE))
def test_built_in_tasks_load_under_their_name(name):
    assert load(name).name == name


def test_questions_of_arithmetic_are_named_after_the_colon():
    task = load("arithmetic:hard")
    assert task.name == "arithmetic:hard"
    assert {prompt.kind for prompt in task.train} == {"sum", "two_digit_sum"}
    with pytest.raises(ValueError, match="questions must be one of 'easy', 'hard', got 'soft'"):
        load("arithmetic:soft")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "same", "options"),
    (
        ("brackets:train=9", "brackets", dict(train=9)),
        ("brackets:train=9,held_out=dev", "brackets", dict(train=9, held_out="dev")),
        ("arithmetic:hard,held_out=.5", "arithmetic:hard", dict(held_out=0.5)),
        ("arithmetic:questions=hard", "arithmetic:hard", {}),
        ("operators:seed=3", "operators", dict(seed=3)),
    ),
)
def test_options_stand_behind_the_name(name, same, options):
    task, wanted = load(name), load(same, **options)
    assert (task.train, task.test) == (wanted.train, wanted.test)
    assert task.name == name


def test_options_in_a_name_and_beside_it_go_together():
    task = load("brackets:train=9", held_out="dev")
    assert task.train == load("brackets", train=9).train
    assert task.test == load("brackets", held_out="dev").test


@pytest.mark.parametrize(
    ("name", "message"),
    (
        ("brackets:train=x", "option train of task 'brackets' must be an integer, got 'x'"),
        ("brackets:train=", "option train of task 'brackets' must be an integer, got ''"),
        ("brackets:trian=5", "must be among .*, got trian; closest: train"),
        ("brackets:train=5,train=6", "option train of task 'brackets' must be given once"),
        ("brackets:dev", "'brackets' must be written option=value, got 'dev' in 'brackets:dev'"),
        ("brackets:train=5,", "option train of task 'brackets' must be an integer, got '5,'"),
        ("arithmetic:held_out=x", "option held_out of task 'arithmetic' must be a number, got 'x'"),
        ("arithmetic:hard,12,seed=1", "questions must be one of 'easy', 'hard', got 'hard,12'"),
        ("arithmetic:hard,questions=hard", "must be among .*, got questions"),
    ),
)
def test_what_is_wrong_with_options_in_a_name_is_said(name, message):
    with pytest.raises(ValueError, match=message):
        load(name)


def test_an_option_is_not_given_twice():
    with pytest.raises(ValueError, match="option train of task 'brackets' must be given once"):
        load("brackets:train=5", train=6)


def of_all_kinds(
    exact: bool,
    scale: float | None = None,
    names: list[str] = (),
    boxes: Literal["each", "last"] = "each",
):
    """In the place of a task's function: says what it was given."""
    raise ValueError(f"made of {exact!r} {scale!r} {names!r} {boxes}")


@pytest.mark.parametrize(
    ("options", "message"),
    (
        ("exact=true,scale=2", "made of True 2.0"),
        ("exact=false", "made of False None"),
        ("exact=true,boxes=last", r"made of True None \(\) last"),
        ("boxes=first", "option boxes of task 'brackets' must be one of each, last, got 'first'"),
        ("exact=yes", "option exact of task 'brackets' must be true or false, got 'yes'"),
        ("names=a", "option names of task 'brackets' must be given as an argument of load, not as"),
    ),
)
def test_options_are_read_by_their_annotations(options, message, monkeypatch):
    monkeypatch.setattr("rlvr_jax.tasks.brackets.brackets", of_all_kinds)
    with pytest.raises(ValueError, match=message):
        load(f"brackets:{options}")


def own(
    budget: int = 7, scale: float | None = None, exact: bool = False, prefix="", level=1, **others
):
    """A function of a user's; the budget tells what it was given."""
    return Task(
        f"{budget} {scale} {exact} {prefix!r} {level!r} {others}",
        [Prompt("1 + 1")],
        [Prompt("1 + 2")],
        graded_one_by_one(lambda prompt, response: 0.0),
    )


@pytest.mark.parametrize(
    ("options", "made"),
    (
        ((), "7 None False '' 1 {}"),
        (("budget=9",), "9 None False '' 1 {}"),
        (("budget=9", "scale=.5", "exact=true"), "9 0.5 True '' 1 {}"),
        (("budget=9,scale=.5,exact=true",), "9 0.5 True '' 1 {}"),
        (("prefix=First, think, a=b,level=3",), "7 None False 'First, think, a=b' 3 {}"),
        (("max_terms=3", "name=x"), "7 None False '' 1 {'max_terms': 3, 'name': 'x'}"),
    ),
)
def test_options_of_a_command_line_are_read_by_annotations_and_defaults(options, made, user_module):
    sys.modules[user_module] = SimpleNamespace(own=own)
    assert load_as_written(f"{user_module}:own", options).name == made


@pytest.mark.parametrize(
    ("name", "options", "columns", "message"),
    (
        ("brackets", ["train=5"], [], "in its name, --task brackets:train=5, got them apart"),
        ("arithmetic:hard", ["seed=5"], [], "--task arithmetic:hard,seed=5, got them"),
        ("brackets", [], ["prompt=x"], r"--columns must be given for files \(jsonl:"),
        ("jsonl:x", ["held_out"], [], "--task-options must be written name=value, got 'held_out'"),
        ("jsonl:x", ["held_out=1,held_out=2"], [], "must be given once, got held_out twice"),
        ("jsonl:x", ["held_out=few"], [], "held_out of task 'jsonl:x' must be a number, got 'few'"),
        ("jsonl:x", ["choice=maybe"], [], "choice of task 'jsonl:x' must be true or false"),
        ("jsonl:x", ["chioce=true"], [], "must be among .*, got chioce; closest: choice"),
        ("jsonl:x", ["columns=a"], [], "columns of task 'jsonl:x' must be given as an argument"),
        ("jsonl:x", [], ["promt=a"], "columns must be among .*, got 'promt'; closest: prompt"),
        ("jsonl:x,held_out=2", [], [], r"must be outside the name, --task-options held_out=2"),
        ("tfds:x", [], ["prompt=a"], "options of task 'tfds:x' must be among .*, got columns"),
        ("nothing_there", ["a=1"], [], "^--task must be a task .*, got 'nothing_there'"),
    ),
)
def test_what_is_wrong_with_options_of_a_command_line_is_said(name, options, columns, message):
    with pytest.raises(ValueError, match=message):
        load_as_written(name, options, columns)


def test_every_option_of_the_mathematics_verifier_is_one_of_files_and_data_sets():
    own = set(inspect.signature(MathVerifier).parameters) - {"workers"}
    for name, module in (("jsonl", "data.files"), ("parquet", "data.files"), ("gsm8k", "tfds")):
        source = getattr(importlib.import_module(f"rlvr_jax.tasks.{module}"), name)
        assert own <= set(known_options(source))


@pytest.mark.parametrize(
    ("name", "plain"),
    (
        ("brackets", "brackets"),
        ("brackets:train=512", "brackets"),
        ("arithmetic:hard", "arithmetic:hard"),
        ("arithmetic:hard,seed=1", "arithmetic:hard"),
        ("jsonl:a=b.jsonl", "jsonl:a=b.jsonl"),
        ("gsm8k:instruction=Think, then say,choice=true", "gsm8k"),
        ("mine:task", "mine:task"),
    ),
)
def test_a_name_without_its_options(name, plain):
    assert without_options(name) == plain


def test_a_task_of_the_current_directory_is_loaded(user_module):
    assert load(f"{user_module}:TASK").name == "mine"


def test_a_function_of_the_user_is_called_with_the_options(user_module):
    assert load(f"{user_module}:make").response_tokens == 7
    assert load(f"{user_module}:make", budget=9).response_tokens == 9


def test_loading_leaves_the_import_path_alone(user_module):
    before = list(sys.path)
    load(f"{user_module}:TASK")
    assert sys.path == before


@pytest.mark.parametrize(
    ("attribute", "options", "message"),
    (
        ("TASQ", {}, "closest: TASK"),
        ("broken", {}, "must return a Task, got str"),
        ("LIST", {}, "must be a Task or a function that returns one, got list"),
        ("TASK", {"size": 3}, r"takes no options, got \['size'\]"),
        ("make", {"bugdet": 3}, "must be among budget, got bugdet; closest: budget"),
    ),
)
def test_what_is_wrong_with_a_task_of_the_user_is_said(user_module, attribute, options, message):
    with pytest.raises(ValueError, match=message):
        load(f"{user_module}:{attribute}", **options)


def test_a_module_that_the_module_of_the_user_misses_is_its_own_error(tmp_path, monkeypatch):
    (tmp_path / "imports_nothing_there.py").write_text("import nothing_there")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="nothing_there"):
        load("imports_nothing_there:task")


@pytest.mark.parametrize(
    ("name", "message"),
    (
        ("opertors", "closest: operators"),
        ("bracket", "closest: brackets"),
        ("jsonl", "closest: .*jsonl:path/to/file.jsonl"),
        ("reasoninggym:chain_sum", "closest: reasoning_gym:chain_sum"),
        ("nothing_there:task", "no module 'nothing_there' can be imported"),
        ("nothing.there:task", "no module 'nothing.there' can be imported"),
        (":task", "must have text on both sides of ':'"),
        ("jsonl:", "must have text on both sides of ':'"),
    ),
)
def test_unknown_names_are_refused_with_the_closest(name, message):
    with pytest.raises(ValueError, match=f"load: name .*{message}"):
        load(name)


def test_an_unknown_option_is_refused_with_the_closest():
    with pytest.raises(ValueError, match=r"must be among seed, .*got sed; closest: seed"):
        load("operators", sed=1)


@pytest.mark.parametrize(
    ("name", "module", "package"),
    (
        ("reasoning_gym:chain_sum", "reasoning_gym", "reasoning-gym"),
        ("tfds:anything", "tensorflow_datasets", "tensorflow-datasets"),
        ("gsm8k", "tensorflow_datasets", "tensorflow-datasets"),
    ),
)
def test_a_missing_package_is_named_with_its_command(name, module, package, monkeypatch):
    # Python raises ModuleNotFoundError for a name that is None here.
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ValueError, match=f"run `pip install {package}`"):
        load(name)


@pytest.mark.thorough
def test_the_room_does_not_import_what_tasks_need():
    heavy = ("jax", "sympy", "tensorflow_datasets", "reasoning_gym")
    code = f"import sys, rlvr_jax.tasks; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_a_task_is_what_load_gives():
    assert isinstance(load("operators"), Task)
