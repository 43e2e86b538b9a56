"""Run directories: finished, growing, torn and broken."""

import json

import numpy as np
import pytest
from analysis_runs import write_run

from rlvr_jax.analysis.run_directory import flatten, load_run, read_json_lines


@pytest.fixture(scope="module")
def run_path(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("runs") / "a", method="clip_cov", seed=3, steps=20)


def test_a_finished_run_is_read_whole(run_path):
    run = load_run(run_path)
    assert (run.method, run.seed, run.setting("samples_per_prompt")) == ("clip_cov", 3, 8)
    assert [row["step"] for row in run.metrics] == list(range(21))
    assert run.sample_steps() == [1, 20]
    assert run.samples(20)[0]["tokens"][-1] == "."
    assert run.summary == {"steps": 20}


def test_a_file_of_another_name_is_no_step(tmp_path):
    path = write_run(tmp_path / "a", steps=4)
    (path / "samples" / "step_x.jsonl").write_text("")
    run = load_run(path)
    assert run.sample_steps() == [1, 4] and run.samples(4)


def test_a_series_leaves_out_what_is_missing_null_or_not_finite(tmp_path):
    rows = [
        {"step": 0},
        {"step": 1, "x": 1.0},
        {"step": 2, "x": None},
        {"step": 3, "x": float("nan")},
    ]
    _write(tmp_path, "".join(json.dumps(row) + "\n" for row in rows))
    steps, values = load_run(tmp_path).series("x")
    assert steps.tolist() == [1] and values.tolist() == [1.0]
    assert load_run(tmp_path).series("y")[1].shape == (0,)


def test_a_run_that_just_began_is_readable(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    run = load_run(tmp_path)
    assert run.method == tmp_path.name and run.seed is None
    assert not run.metrics and not run.timings and not run.summary and not run.sample_steps()


@pytest.mark.parametrize("cut", [1, 5, 12, 13])
def test_a_torn_last_line_is_left_out(tmp_path, cut):
    line = b'{"step": 2, "x": "\xc3\xa4"}\n'
    (tmp_path / "m.jsonl").write_bytes(b'{"step": 1}\n' + line[:cut])
    assert read_json_lines(tmp_path / "m.jsonl") == [{"step": 1}]


def test_a_last_line_without_its_break_counts_if_it_is_whole(tmp_path):
    (tmp_path / "m.jsonl").write_text('{"step": 1}\n{"step": 2}')
    assert len(read_json_lines(tmp_path / "m.jsonl")) == 2


def test_a_torn_summary_means_that_the_run_goes_on(tmp_path):
    _write(tmp_path, '{"step": 0}\n')
    (tmp_path / "summary.json").write_text('{"steps": ')
    assert load_run(tmp_path).summary == {}


def test_after_a_resume_the_later_values_of_a_step_count(tmp_path):
    _write(tmp_path, '{"step": 2, "x": 1}\n{"step": 1, "x": 5}\n{"step": 2, "x": 3}\n')
    steps, values = load_run(tmp_path).series("x")
    assert steps.tolist() == [1, 2] and values.tolist() == [5.0, 3.0]


def test_a_setting_is_the_value_that_ran(tmp_path):
    given, came_to = {"model": "", "steps": 4, "top_k": 0}, {"top_k": 5}
    config = {"model": "base", "settings": given, "resolved": came_to, "versions": {"steps": 1}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    run = load_run(tmp_path)
    assert [run.setting(name) for name in ("model", "steps", "top_k")] == ["base", 4, 5]
    assert run.setting("nothing", 7) == 7 and flatten(config)["settings.top_k"] == 0


def test_broken_files_are_refused_with_file_and_line(tmp_path):
    with pytest.raises(ValueError, match="load_run: path must be a run directory"):
        load_run(tmp_path)
    _write(tmp_path, '{"step": 0}\noops\n{"step": 1}\n')
    with pytest.raises(ValueError, match=r"metrics.jsonl, line 2 must be JSON, got b'oops'"):
        load_run(tmp_path)
    _write(tmp_path, "[1]\n")
    with pytest.raises(ValueError, match="line 1 must be an object"):
        load_run(tmp_path)
    _write(tmp_path, '{"x": 1}\n')
    with pytest.raises(ValueError, match="step must be an int, got None"):
        load_run(tmp_path)
    _write(tmp_path, '{"step": 1, "truncated_share": 0.5}\n')
    with pytest.raises(ValueError, match=r"names of this version.*, got truncated_share"):
        load_run(tmp_path)


def test_a_step_without_samples_is_refused(run_path):
    with pytest.raises(ValueError, match=r"step must be one of \[1, 20\], got 3"):
        load_run(run_path).samples(3)


def test_steps_are_integers_and_values_floats(run_path):
    steps, values = load_run(run_path).series("reward")
    assert steps.dtype == np.int64 and values.dtype == np.float64


def _write(path, metrics):
    (path / "config.json").write_text("{}")
    (path / "metrics.jsonl").write_text(metrics)
