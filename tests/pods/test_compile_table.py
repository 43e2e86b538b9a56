"""The table of models on slices: rows that are missing, and its page."""

import json
import re
from pathlib import Path

import pytest

from experiments import papers
from rlvr_jax.analysis.run_directory import read_json_lines
from rlvr_jax.parallel import compile as command
from rlvr_jax.parallel.topologies import TESTED
from rlvr_jax.pods import compile_table
from rlvr_jax.pods.compile_table import PAPERS, ROWS, Row, fill_table, table_page

BEFORE = {
    "libtpu": "0.0.51",
    "commit": "abc1234",
    "method": "grpo",
    "model": "qwen2.5-0.5b",
    "topology": "v5e-1",
    "seconds": {"sample": [900.0, 300.0], "score": [40.0, 20.0]},
}


def compiled(row, fits=True):
    """What is kept of the report of a row."""
    program = dict(fits=True, bytes=2**33, roofline_seconds=20.0, compiler_seconds=30.0)
    program |= {"kernel_seconds": {"token_stats": 4.0, "splash_mqa_fwd": 6.0}, "calls": 1}
    sampling = program | dict(sampling_batches=4, prompts=2, samples=16, kernel_seconds={}, calls=4)
    programs = {"sample": sampling, "score": program, "update": program | {"fits": fits}}
    report = dict(mesh="data=1", sample_mesh="data=1", micro_batches=8, hbm_bytes=2**34)
    report["step_compiler_seconds"] = 180.0
    own = dict(method=row.method, model=row.model, topology=row.topology, fits=fits)
    return own | report | {"versions": {"jax": "1.2", "libtpu": "0.0.51"}, "programs": programs}


@pytest.fixture
def some_rows(monkeypatch):
    """Three rows and a compiler that notes what it is asked for; the last row does not fit."""
    rows = ROWS[:2] + ROWS[-1:]
    asked = []

    def noted(row):
        asked.append(row)
        return compiled(row, fits=row != rows[-1])

    monkeypatch.setattr(compile_table, "ROWS", rows)
    monkeypatch.setattr(compile_table, "_compiled", noted)
    monkeypatch.setattr(compile_table.metadata, "version", lambda name: "0.0.51")
    return rows, asked


def test_what_the_file_has_of_this_libtpu_is_not_compiled_again(some_rows, tmp_path, capsys):
    rows, asked = some_rows
    known = {"libtpu": "0.0.51", **compiled(rows[1])}
    older = {"libtpu": "0.0.42.1", **compiled(rows[0])}
    lines = "".join(json.dumps(line) + "\n" for line in (BEFORE, known, older))
    (tmp_path / "rows.jsonl").write_text(lines)
    assert command.main(["--table", str(tmp_path)]) == 1  # one does not fit
    assert asked == [rows[0], rows[2]]
    assert "qwen2.5-0.5b, grpo, v5e-1, libtpu 0.0.51\n  fits: True" in capsys.readouterr().out
    assert fill_table(tmp_path, print) is False and len(asked) == 2
    page = (tmp_path / "README.md").read_text()
    assert page.index("libtpu 0.0.42.1") < page.index("libtpu 0.0.51")


def test_a_line_has_the_ratio_and_none_of_an_older_commit():
    row = {"libtpu": "0.0.51", **compiled(ROWS[0])}
    page = table_page([BEFORE, row, {"libtpu": "0.0.51", **compiled(ROWS[-1], fits=False)}])
    wanted = (
        "| qwen2.5-0.5b | v5e-1 | data=1; data=1 | 4 × 2·16 | 8.0 | 8.0 | 8.0 of 16.0 |"
        " 120 (1.50) | 30 (1.50) | 30 (1.50) | 180 |"
    )
    assert wanted in page.splitlines()
    assert "8.0 of 16.0, does not fit" in page and "abc1234" not in page
    row["programs"]["update"]["loops_counted_once"] = ["decode/while"]
    assert " 30 (1.50 at least) |" in table_page([row])


@pytest.mark.thorough
def test_a_row_that_cannot_be_compiled_says_why_and_is_tried_again(tmp_path, monkeypatch):
    row = Row("grpo", "no such model", "v5e-1")
    monkeypatch.setattr(compile_table, "ROWS", (row,))
    monkeypatch.setattr(compile_table.metadata, "version", lambda name: "0.0.51")
    said = []
    assert fill_table(tmp_path, said.append) is fill_table(tmp_path, said.append) is False
    assert "error: model must be one of" in said[1] and said[2:] == said[:2]
    assert not (tmp_path / "rows.jsonl").exists()


def test_without_libtpu_the_way_to_install_it_is_said(monkeypatch, tmp_path, capsys):
    def missing(name):
        raise compile_table.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(compile_table.metadata, "version", missing)
    assert command.main(["--table", str(tmp_path)]) == 2
    assert "--table needs the compiler of libtpu: pip install libtpu" in capsys.readouterr().err
    assert command.main([]) == 2
    assert "either TOPOLOGY, such as v5e-256, or --table must be given" in capsys.readouterr().err


def test_every_row_is_a_model_and_a_slice_once():
    assert len(ROWS) == len(set(row[:3] for row in ROWS)) == 48 + 2 * len(PAPERS)
    files = {path.stem for path in Path(papers.__file__).parent.glob("*.py")} - {"__init__"}
    assert files == set(PAPERS)


@pytest.mark.thorough
def test_a_paper_is_compiled_by_its_own_file():
    with pytest.raises(ValueError, match="v5e comes with 1, 4, 8"):
        compile_table._compiled(Row(compile_table._PAPER, "gspo_8b", "v5e-7"))


DOCS = Path(__file__).parents[2] / "docs"


def kept():
    """All lines of the table of slices."""
    return read_json_lines(DOCS / "results/pods/rows.jsonl")


def kept_of(version):
    """Of a libtpu, by method, model and slice."""
    lines = [line for line in kept() if line["libtpu"] == version and "commit" not in line]
    return {(line["method"], line["model"], line["topology"]): line for line in lines}


@pytest.mark.parametrize("version", TESTED["libtpu"])
def test_every_row_is_there_and_fits(version):
    lines = kept_of(version)
    assert all(lines[row[:3]]["fits"] for row in ROWS)


def test_the_page_and_the_guide_are_of_the_rows():
    assert (DOCS / "results/pods/README.md").read_text() == table_page(kept())
    guide = (DOCS / "pods.md").read_text()
    lines = kept_of(re.search(r"estimate \(libtpu ([\d.]+)\)", guide)[1])
    steps = {key: f"{line['step_compiler_seconds']:,.0f}" for key, line in lines.items()}
    for model, slices in compile_table._SLICES.items():
        *small, pod = [steps["grpo", model, name] for name in slices]
        cells = [f"{name}: {step}" for name, step in zip(slices, small, strict=False)]
        assert f"| {' | '.join([model, *cells, pod])} |" in guide.splitlines()
    for paper in PAPERS:
        cells = []
        for name in ("v5e-256", "v5p-64"):
            key = compile_table._PAPER, paper, name
            programs = lines[key]["programs"]
            sampled = programs["sample"]["calls"] * programs["sample"]["compiler_seconds"]
            most = max(program["bytes"] for program in programs.values())
            cells += [steps[key], f"{sampled:,.0f}", f"{most / 2**30:.1f}"]
        assert f"| {' | '.join([paper, *cells])} |" in guide.splitlines()
