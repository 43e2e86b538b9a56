"""Rows of files: JSON, CSV, Parquet and Arrow, packed or not, and what cannot be read."""

import gzip
import json
import sys

import pytest

from rlvr_jax.tasks.data.tables import rows_of

ROWS = [{"question": "a, b", "answer": 1}, {"question": "c\u2028d", "answer": 2}]


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def values(kind, path, columns=None):
    return [row for _, row in rows_of(kind, path, columns)]


LINES = "\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS)


@pytest.mark.parametrize(
    "content",
    (
        LINES,
        LINES.replace("\n", "\r\n\r\n"),
        "\ufeff" + LINES,
        LINES.encode("utf-16"),
        gzip.compress(LINES.encode()),
        gzip.compress(LINES.encode("utf-8-sig")),
    ),
    ids=["plain", "other line ends", "mark", "wide", "packed", "packed with a mark"],
)
def test_lines_of_json_are_read_in_every_wrapping(content, tmp_path):
    path = written(tmp_path / "a.jsonl", content)
    assert values("jsonl", path) == ROWS
    assert values("json", path) == ROWS


@pytest.mark.parametrize(
    "content",
    (
        json.dumps(ROWS, indent=2),
        json.dumps({"version": "1.0", "data": ROWS}),
        json.dumps({"question": ["a, b", "c\u2028d"], "answer": [1, 2]}),
        gzip.compress(json.dumps(ROWS).encode()),
    ),
    ids=["array", "array in an object", "columns", "packed"],
)
def test_json_files_are_arrays_or_hold_one(content, tmp_path):
    assert values("json", written(tmp_path / "a.json", content)) == ROWS


@pytest.mark.parametrize(
    ("content", "rows"),
    (
        ("q,a\nx,1\n", [{"q": "x", "a": "1"}]),
        ('q,a\n"x, ""y""\nz",1\n', [{"q": 'x, "y"\nz', "a": "1"}]),
        ("\ufeffq;a\nx, y;1\n", [{"q": "x, y", "a": "1"}]),
        ("q\ta\r\nx\t1\r\n\r\n", [{"q": "x", "a": "1"}]),
        ("q,a\nx\n", [{"q": "x"}]),
        ("q\nx\n", [{"q": "x"}]),
        ("q,a\n" + "x" * 200_000 + ",1\n", [{"q": "x" * 200_000, "a": "1"}]),
        ("q,a\n", []),
        ("", []),
    ),
)
def test_tables_are_parted_by_what_their_first_line_says(content, rows, tmp_path):
    path = written(tmp_path / "a.csv", content)
    assert values("csv", path) == rows
    assert values("csv", written(tmp_path / "a.gz", gzip.compress(content.encode()))) == rows


def test_places_are_lines_and_rows(tmp_path):
    table = written(tmp_path / "a.csv", 'q,a\n"x\ny",1\nz,2\n')
    assert [place for place, _ in rows_of("csv", table)] == [f"{table}, line 3", f"{table}, line 4"]
    array = written(tmp_path / "a.json", json.dumps(ROWS))
    assert [place for place, _ in rows_of("json", array)] == [f"{array}, row 1", f"{array}, row 2"]


DEEP = [{"prompt": [{"role": "user", "content": "a"}], "reward_model": {"ground_truth": "1"}}]


def test_parquet_is_read_with_structures_by_the_columns_that_are_needed(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    parquet.write_table(arrow.Table.from_pylist([{**row, "unread": "x"} for row in DEEP]), path)
    assert values("parquet", path, ["prompt", "reward_model"]) == DEEP
    assert values("parquet", path) == [{**DEEP[0], "unread": "x"}]
    parquet.write_table(arrow.Table.from_pylist([{"a.b": 1, "c": 2}]), path)
    assert values("parquet", path, ["a.b"]) == [{"a.b": 1, "c": 2}]


def test_parquet_is_read_by_duckdb_where_pyarrow_is_missing(tmp_path, monkeypatch):
    pytest.importorskip("duckdb")
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    parquet.write_table(arrow.Table.from_pylist(DEEP), path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert values("parquet", path) == DEEP
    with pytest.raises(ValueError, match="parquet: path must be a readable parquet file"):
        values("parquet", written(tmp_path / "b.parquet", "PAR1"))


@pytest.mark.parametrize("form", ["stream", "file"])
def test_arrow_is_read_as_a_stream_or_a_file(form, tmp_path):
    arrow = pytest.importorskip("pyarrow")
    table = arrow.Table.from_pylist(DEEP)
    path = tmp_path / "a.arrow"
    new = arrow.ipc.new_stream if form == "stream" else arrow.ipc.new_file
    with new(path, table.schema) as writer:
        writer.write_table(table)
    assert values("arrow", path) == DEEP


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_missing_package_is_named_with_its_command(kind, tmp_path, monkeypatch):
    for name in ("pyarrow", "duckdb"):
        monkeypatch.setitem(sys.modules, name, None)
    path = written(tmp_path / f"a.{kind}", "")
    with pytest.raises(ValueError, match=f"{kind}: .* not installed: run `pip install pyarrow`"):
        values(kind, path)


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    (
        ("jsonl", b"\xff", "readable UTF-8 file"),
        ("jsonl", b"\x1f\x8bnothing", "readable UTF-8 file"),
        ("jsonl", gzip.compress(b"{}\n" * 99, mtime=0)[:-9], "readable UTF-8 file"),
        ("csv", b"PAR1", "must be a text file, got .*: name it parquet:"),
        ("csv", b"q,a\nx,1,2\n", r"line 2: must have at most 2 values, .* got 3"),
        ("csv", b"q,q\nx,1\n", "columns must have different names, got 'q' twice"),
        ("csv", b'q,a\n"x', None),
        ("json", b"[1, 2]", "row 1: must be a JSON object, got int"),
        ("json", b"3", "must be an array of objects, got int"),
        ("json", b'{"a": 1}', "must be an array of objects, got dict"),
        ("json", b"[", "must be JSON, got Expecting"),
        ("json", b'{"a": 1}\n{"b"', "line 2: must be a JSON object, got"),
        ("jsonl", b'[{"a": 1},\n{"b": 2}]', "Read a file that is one array with json:"),
        ("parquet", b"nothing", "readable parquet file"),
        ("arrow", b"nothing", "readable arrow file"),
    ),
)
def test_what_cannot_be_read_is_said(kind, content, message, tmp_path):
    pytest.importorskip("pyarrow")
    path = written(tmp_path / "a.txt", content)
    if message is None:
        assert values(kind, path) == [{"q": "x"}]
        return
    with pytest.raises(ValueError, match=f"{kind}: .*{message}"):
        values(kind, path)


def test_a_file_that_may_not_be_read_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"jsonl: path must be a readable UTF-8 file, got .*re"):
        values("jsonl", tmp_path / "nowhere")
