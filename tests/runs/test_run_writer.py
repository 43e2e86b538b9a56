"""The files of a run directory that grow with its steps."""

import json
import math

import pytest

from rlvr_jax.runs.run_writer import RunWriter, write_json


def written(folder, steps, after_step=-1):
    writer = RunWriter(folder, after_step)
    for step in steps:
        writer.log(step, {"reward": step / 2}, {"wall_s": 0.1})
        writer.write_samples(step, [{"step": step, "response": "…"}])
    writer.close()
    return folder


def rows(folder, name="metrics"):
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def test_metrics_and_clock_go_to_two_files(tmp_path):
    written(tmp_path, [0, 1])
    assert rows(tmp_path) == [{"step": 0, "reward": 0.0}, {"step": 1, "reward": 0.5}]
    assert rows(tmp_path, "timings") == [{"step": 0, "wall_s": 0.1}, {"step": 1, "wall_s": 0.1}]
    assert json.loads((tmp_path / "samples/step_000001.jsonl").read_text())["response"] == "…"
    assert any((tmp_path / "tensorboard").iterdir())


def test_a_line_can_be_read_as_soon_as_it_is_logged(tmp_path):
    writer = RunWriter(tmp_path, -1)
    writer.log(1, {"reward": 1.0}, {})
    assert rows(tmp_path) == [{"step": 1, "reward": 1.0}]
    writer.close()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_json_has_no_word_for_is_null(tmp_path, value):
    writer = RunWriter(tmp_path, -1)
    writer.log(1, {"entropy/correct": value, "count": 3}, {})
    writer.close()
    assert (tmp_path / "metrics.jsonl").read_text() == (
        '{"step": 1, "entropy/correct": null, "count": 3}\n'
    )


def test_lines_and_samples_after_the_checkpoint_are_removed(tmp_path):
    once, twice = tmp_path / "once", tmp_path / "twice"
    written(once, range(6))
    written(twice, range(5))
    written(twice, range(3, 6), after_step=2)
    assert (twice / "metrics.jsonl").read_bytes() == (once / "metrics.jsonl").read_bytes()
    assert [row["step"] for row in rows(twice, "timings")] == [0, 1, 2, 3, 4, 5]
    names = [sorted(p.name for p in (f / "samples").iterdir()) for f in (once, twice)]
    assert names[0] == names[1]


@pytest.mark.parametrize("torn", ['{"step": 3, "rew', '{"step": 1}', "{"])
def test_a_torn_last_line_is_removed(tmp_path, torn):
    written(tmp_path, range(3))
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write(torn)
    written(tmp_path, [3], after_step=2)
    assert [row["step"] for row in rows(tmp_path)] == [0, 1, 2, 3]


def test_json_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "summary.json"
    write_json(path, {"steps": 1})
    with pytest.raises(TypeError):
        write_json(path, {"steps": object()})
    assert json.loads(path.read_text()) == {"steps": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["summary.json"]
