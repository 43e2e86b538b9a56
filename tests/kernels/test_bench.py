"""The benchmark prints every program's row, and refuses what it does not know."""

import json

import pytest

from experiments import bench_kernels as bench


@pytest.mark.slow
def test_rows_cover_programs_and_fractions(capsys):
    bench.main(
        ["--shapes", "24x8x40", "--dtypes", "float32", "--repeats", "1", "--chips", "--json"]
    )
    found = json.loads(capsys.readouterr().out)
    measured = {(row["program"], row["pass"]) for row in found["programs"]}
    for program in ("naive", "optax", "xla", "xla full"):
        assert {(program, "forward"), (program, "forward + backward")} <= measured
    assert ("product", "forward") in measured
    assert {row["selected"] for row in found["selection"]} == set(bench.FRACTIONS)
    naive = next(row for row in found["programs"] if row["program"] == "naive")
    assert naive["to_naive"] == 1 and naive["seconds"] > 0
    assert found["chips"] == []


@pytest.mark.slow
def test_the_tpu_kernel_is_among_the_tables():
    pytest.importorskip("libtpu")
    small, large = bench.compiled(["v5e"])[::-1]
    for row in (small, large):
        assert row["chip"] == "v5e" and row["temporary_mebibytes"] < 1
        assert 0.75 < row["matrix_fraction"] < 1
    assert small["milliseconds_at_peak"] < large["milliseconds_at_peak"]


def test_chips_need_the_compiler(monkeypatch, capsys):
    monkeypatch.setattr(bench.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit):
        bench.main(["--shapes", "24x8x40", "--chips", "v5e"])
    assert "--chips: needs libtpu" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, words",
    [(["--shapes", "24x8"], "--shapes: must be"), (["--programs", "xl"], "--programs: must be of")],
)
def test_unknown_arguments_are_refused(arguments, words, capsys):
    with pytest.raises(SystemExit):
        bench.main(arguments)
    assert words in capsys.readouterr().err
