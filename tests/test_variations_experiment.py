"""The experiment in which a policy writes problems: its traces, its table, and a run of both
stages on a tiny policy."""

import math

import pytest
import training_runs

from experiments import variations
from rlvr_jax.analysis.run_directory import read_json_lines
from rlvr_jax.tasks import Response
from rlvr_jax.tasks.sums.arithmetic import last_number
from rlvr_jax.verifiers.fences import last_fence


def test_traces_answer_sums_and_write_problems_in_turn():
    task = variations.traces(count=200)
    assert len(task.train) == 200 and not {p.text for p in task.train} & {p.text for p in task.test}
    for prompt in task.train[::2]:
        (grade,) = task.verify([prompt], [Response("".join(prompt.solution))])
        assert grade.outcome == 1
    problems = [last_fence("".join(p.solution), "text") for p in task.train[1::2]]
    assert all(problem and last_number(problem) is not None for problem in problems)
    beginnings = {wording.split("{")[0] for wording in variations.WORDINGS}
    assert {b for b in beginnings for p in problems if p.strip().startswith(b)} == beginnings
    for prompt in task.train[1::2]:
        assert prompt.text.startswith(tuple("123456789")) and "```text" in prompt.text


def test_what_was_written_is_counted_over_steps():
    names = ("sources", "written_problems", "written_fraction", "written_rate")
    rows = ((2, 8, 0.25, 0.5), (0, None, None, None), (1, 4, 1.0, 0.25), (1, 0, 0.0, None))
    steps = [
        {f"experience/{name}": value for name, value in zip(names, row, strict=True)}
        for row in rows
    ]
    found = list(variations.written(steps, samples=4).values())
    # 4 sources in 4 steps, 12 of 16 can be read, (8 · .5 + 4 · .25) / 12 solved, 8 · .25 + 4 · 1.
    assert found == [1.0, 3.0, 12 / 16, 5 / 12, 6 / 16]
    nothing = list(variations.written(steps[1:2], samples=4).values())
    assert nothing[:2] == [0, 0] and all(map(math.isnan, nothing[2:]))


@pytest.mark.slow
def test_both_stages_run(tmp_path, capsys, monkeypatch):
    numbers = [f"{number}{end}" for number in range(200) for end in ("", "?", ".")]
    words = [*training_runs.WORDS, *variations.REQUEST.split(), "What", "is", *numbers]
    monkeypatch.setattr(training_runs, "WORDS", list(dict.fromkeys(words)))
    policy = training_runs.write_policy(tmp_path / "policy", max_positions=256)
    small = "--traces 8 --prompts-per-step 2 --samples-per-prompt 4 --steps 5"
    small += " --evaluation-prompts 4 --evaluation-samples 2"
    place = tmp_path / "runs"
    variations.main(["--model", str(policy), "--run-dir", str(place), *small.split()])
    assert "their solve rate" in capsys.readouterr().out
    warm = read_json_lines(place / "warm" / "metrics.jsonl")
    assert sum(line.get("experience/imitated_solutions", 0) for line in warm) == 8
    assert (place / "report.html").is_file()
