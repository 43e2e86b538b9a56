"""The command that writes a predicted policy: policies on a line of rank 1, where it is exact."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from analysis_runs import write_run
from safetensors.numpy import load_file, save_file

from rlvr_jax import policy, tasks
from rlvr_jax.diagnosis.extrapolate import main

START = Path(tasks.load("brackets").base_model)
FILE = "model.safetensors"
RTOL = 1e-4  # float32 weights


def matrices(tensors):
    return [n for n, x in tensors.items() if x.ndim == 2 and "embed" not in n]


def on_the_line(folder, size, noise=0.0):
    """The initial policy plus `size` of an update of rank 1 in each matrix."""
    shutil.copytree(START, folder)
    tensors = load_file(folder / FILE)
    random = np.random.default_rng(0)
    for name in matrices(tensors):
        rows, columns = tensors[name].shape
        direction = np.outer(random.normal(size=rows), random.normal(size=columns)) / 1000
        extra = noise * random.normal(size=(rows, columns)) / 1000
        tensors[name] = (tensors[name] + size * direction + extra).astype(np.float32)
    save_file(tensors, folder / FILE)
    return str(folder)


def test_a_linear_update_of_rank_one_is_continued_to_the_target(tmp_path, capsys):
    paths = [on_the_line(tmp_path / str(i), size) for i, size in enumerate((1, 2, 3))]
    out = tmp_path / "out"
    line = ["--start", str(START), *paths, "--scores", "0.1", "0.2", "0.3"]
    main([*line, "--target", "0.5", "--out", str(out)])
    told = capsys.readouterr().out
    assert "target 0.500" in told and "R² of the line of the scores" in told
    start, made = load_file(START / FILE), load_file(out / FILE)
    wanted = load_file(Path(on_the_line(tmp_path / "five", 5)) / FILE)
    for name in start:
        np.testing.assert_allclose(made[name], wanted[name], RTOL, 1e-5)
    policy.load(out)  # it is a policy folder
    capped = tmp_path / "capped"
    main([*line, "--target", "5", "--out", str(capped)])
    name = matrices(start)[0]
    step, last = (
        np.linalg.norm(load_file(Path(path) / FILE)[name] - start[name])
        for path in (capped, paths[-1])
    )
    np.testing.assert_allclose(step, 3 * last, RTOL)


def test_an_update_of_rank_one_is_its_own_replacement_and_the_scores_of_runs_are_read(tmp_path):
    run = write_run(tmp_path / "run", model=str(START))
    for score, place in ((0.2, run), (0.4, tmp_path / "other")):
        if place != run:
            shutil.copytree(run, place)
        rows = [{"step": 0, "held_out/pass@1": 0.1}, {"step": 60, "held_out/pass@1": score}]
        (place / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        shutil.rmtree(place / "policy", ignore_errors=True)
        on_the_line(place / "policy", 10 * score)
    runs = [str(run), str(tmp_path / "other")]
    main(["--start", str(START), *runs, "--target", "0.6", "--out", str(tmp_path / "six")])
    main(["--start", str(START), runs[0], "--rank", "1", "--out", str(tmp_path / "two")])
    for name, size in (("six", 6), ("two", 2)):
        made = load_file(tmp_path / name / FILE)
        wanted = load_file(Path(on_the_line(tmp_path / f"{name}_wanted", size)) / FILE)
        for tensor in made:
            np.testing.assert_allclose(made[tensor], wanted[tensor], RTOL, 1e-5)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["a", "b"], "either --target or --rank must be given"),
        (["a", "--target", "1"], "POLICY must be given twice or more"),
        (["a", "b", "--rank", "1"], "--rank must be at least 1, with one POLICY"),
        (["a", "b", "--target", "1"], "--scores must be given, as a is not a run"),
        (["a", "b", "--target", "1", "--scores", "1"], "--scores must be 2, one per POLICY, got 1"),
        (["a", "b", "--target", "1", "--scores", "1", "2"], r"a must hold model.safetensors"),
        ([str(START), "--rank", "1"], "every POLICY must differ"),
    ],
)
def test_what_cannot_be_extrapolated_ends_in_a_sentence(tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match=sentence):
        main([*arguments, "--start", str(START), "--out", "out"])
