"""The command for gains by the pass rate of the base: by hand, and on the lines of the boards."""

import json
from pathlib import Path

import pytest
from analysis_runs import write_run

from rlvr_jax.analysis.boundary.model_task_alignment import main
from rlvr_jax.analysis.run_directory import read_json_lines

LINES = Path(__file__).parents[2] / "docs" / "results" / "leaderboard" / "results.jsonl"


def written(path, cells, **changes):
    """A run with a first and a last evaluation: pass@1 and pass@8 before, pass@1 after, by kind."""
    run = write_run(path, model="m", task="t", **changes)
    rows = [{"step": 0}, {"step": 60}]
    for kind, (first, reached, last) in cells.items():
        rows[0] |= {f"held_out/{kind}/pass@1": first, f"held_out/{kind}/pass@8": reached}
        rows[1] |= {f"held_out/{kind}/pass@1": last, f"held_out/{kind}/pass@8": last}
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(run)


def test_gains_are_means_over_seeds_in_the_cells_of_the_base(tmp_path, capsys):
    # Gains of 2 times the worked example, whose correlation is 0.958002.
    cells = {
        name: (0.0, reached, gain)
        for name, reached, gain in zip(
            "abcd", (0.1, 0.4, 0.7, 0.9), (0.0, 0.02, 0.05, 0.1), strict=True
        )
    }
    other = {name: (first, reached, 3 * gain) for name, (first, reached, gain) in cells.items()}
    paths = [
        written(tmp_path / str(seed), own, method="grpo") for seed, own in enumerate((cells, other))
    ]
    main(paths)
    told = capsys.readouterr().out.splitlines()
    assert [line.split()[2] for line in told[1:5]] == [
        *("unaligned", "undecided", "aligned", "aligned")
    ]
    gains = ["+0.000", "+0.040", "+0.100", "+0.200"]
    assert told[-1].split() == [*gains, "+0.000", "+0.150", "+0.958", "2", "grpo"]


def test_the_lines_of_the_boards_have_cells_of_every_kind(capsys):
    main([str(LINES), "--methods", "grpo", "random"])
    told = capsys.readouterr().out.splitlines()
    lines = [line for line in read_json_lines(LINES) if line["entry"] == "random"]
    hard = [
        own["end"]["hard/pass@1"] - own["start"]["hard/pass@1"]
        for own in lines
        if "hard/pass@1" in own["start"]
    ]
    assert f"{sum(hard) / len(hard):+.3f}" in told[-1] and told[-1].endswith("random")
    assert {"unaligned", "undecided", "aligned"} <= {line.split()[2] for line in told[1:8]}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "must be a run directory with a config.json"),
        (["run"], r"must have two evaluations with pass@1 and pass@8 .*--evaluate-every"),
        (["empty.jsonl"], "must have lines with start and end and pass@8, got none"),
        (["good", "--methods", "dapo"], "--methods must be of grpo, got 'dapo'"),
    ],
)
def test_what_cannot_be_read_ends_in_a_sentence(tmp_path, monkeypatch, arguments, sentence):
    run = write_run(tmp_path / "run", model="m")
    (run / "metrics.jsonl").write_text('{"step": 1, "held_out/pass@1": 0.5}\n')
    (tmp_path / "empty.jsonl").write_text('{"method": "grpo"}\n')
    written(tmp_path / "good", dict.fromkeys("ab", (0, 0.5, 1)), method="grpo")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match=sentence):
        main(arguments)
