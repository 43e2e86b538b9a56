"""The tools that ship: what they say, and what they refuse."""

import json

import pytest

from rlvr_jax.sandbox import Limits
from rlvr_jax.tools import ToolError, calculator, python, search, sql
from rlvr_jax.tools.search import read_corpus

CORPUS = [
    "the red fox",
    "a blue whale swims",
    "red and blue make purple",
    "the fox is red, a red fox",
]


def said(tool, state=None, **arguments):
    return tool.run(arguments, state)


@pytest.mark.parametrize(
    ("expression", "value"),
    [("2+3", "5"), ("2 ^ 10 =", "1024"), ("1/3", "1/3"), ("-(4 − 6)×3", "6"), ("0.5*4", "2")],
)
def test_the_calculator_is_exact(expression, value):
    assert said(calculator(), expression=expression)[1] == value


@pytest.mark.parametrize("expression", ["", "1/0", "9^9^9^9", "import os", "1" * 2000, "2 +", "x"])
def test_the_calculator_refuses_what_has_no_value(expression):
    with pytest.raises(ToolError):
        said(calculator(), expression=expression)


def test_python_keeps_names_and_shows_what_is_printed_once():
    tool = python()
    state, told = said(tool, code="x = 6\nprint('six')")
    assert told == "six"
    state, told = said(tool, state, code="y = 7\nx * y")
    assert told == "42"
    state, told = said(tool, state, code="1 / 0")
    assert told == "ZeroDivisionError: division by zero"
    assert said(tool, state, code="print(y)")[1] == "7"


@pytest.mark.parametrize(
    ("code", "limits", "wanted"),
    [
        ("def f(:", Limits(), "SyntaxError"),
        (
            "while True: pass",
            Limits(wall_seconds=1.0, cpu_seconds=1.0),
            "stopped: the program passed",
        ),
        ("import socket; socket.create_connection(('127.0.0.1', 80))", Limits(), "Error"),
        ("open('/etc/passwd').read()", Limits(), "Error"),
        ("x" * 10 + " = '</code>'; print(xxxxxxxxxx)", Limits(), "</code>"),
    ],
)
def test_python_is_kept_in_the_sandbox(code, limits, wanted):
    try:
        told = said(python(limits=limits), code=code)[1]
    except ToolError as error:
        told = str(error)
    assert wanted in told


def test_search_shows_the_best_texts_and_equal_ones_in_their_order():
    tool = search(CORPUS, k=2)
    assert said(tool, query="Red fox!")[1].startswith("(1) ")
    assert "(2)" in said(tool, query="red")[1] and "(3)" not in said(tool, query="red")[1]
    assert said(search(["same words", "same words"], k=1), query="words")[1] == "(1) same words"
    with pytest.raises(ToolError, match="no text has a word"):
        said(tool, query="quantum")


def test_a_corpus_is_read_from_lines_and_folders(tmp_path):
    lines = tmp_path / "corpus.jsonl"
    lines.write_text('"one"\n\n{"text": "two", "title": "T"}\n')
    assert read_corpus(lines) == ["one", "T: two"]
    (tmp_path / "b.md").write_text("B")
    (tmp_path / "a.txt").write_text("A")
    assert read_corpus(tmp_path) == ["A", "B"]
    lines.write_text('{"body": 1}\n')
    with pytest.raises(ValueError, match=r"must be a text or have one, got .*line 1"):
        read_corpus(lines)
    with pytest.raises(ValueError, match="must be a JSONL file or a folder"):
        read_corpus(tmp_path / "none")


@pytest.mark.parametrize(
    ("make", "wrong"),
    [
        (lambda: search([]), "corpus must have texts"),
        (lambda: search(CORPUS, k=0), "k must be at least 1"),
        (lambda: sql(), "exactly one of setup and file"),
    ],
)
def test_bad_arguments_are_named(make, wrong):
    with pytest.raises(ValueError, match=wrong):
        make()


def test_sql_answers_and_changes_nothing():
    tool = sql("create table t(a, b); insert into t values (1, 'x'), (2, null);")
    assert said(tool, query="select a, b from t order by a")[1] == "1 | x\n2 | NULL"
    assert said(tool, query="select a from t where a > 9")[1] == "(no rows)"
    for query in ("drop table t", "attach 'x' as y", "select nothing", "pragma user_version = 3"):
        with pytest.raises(ToolError):
            said(tool, query=query)
    assert said(tool, query="select count(*) from t")[1] == "2"


def test_states_are_json():
    state, _ = said(python(), code="x = 1")
    assert tuple(json.loads(json.dumps(state))) == state
