"""The task of a run: options and columns of a command line, and prompts that are too long."""

import json
import re
from dataclasses import replace

import pytest
import training_runs

from experiments import compare, evaluate
from rlvr_jax.runs import check_config, parse_config
from rlvr_jax.runs.resolved import resolve
from rlvr_jax.runs.step import collect
from rlvr_jax.runs.task import load_task
from rlvr_jax.tasks import GradingError, Response, grades_of


@pytest.fixture
def path(tmp_path):
    rows = [{"ask": f"{a} + {b} =", "sum": a + b} for a in range(5) for b in range(4)]
    rows.append({"ask": "1 + 1 + 1 + 1 =", "sum": 4})
    file = tmp_path / "sums.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def config_of(model, path, *line):
    options = ["--columns", "prompt=ask,answer=sum", "--task-options", "instruction="]
    return parse_config(["--task", f"jsonl:{path}", "--model", str(model), *options, *line])


def test_options_and_columns_of_a_command_line_reach_the_task(model, path):
    config = config_of(model, path, "held_out=0.5", "answer_line=true,relative_tolerance=0.1")
    task = load_task(config)
    assert len(task.train) + len(task.test) == 21 and len(task.test) > 5
    assert all("boxed" not in prompt.text for prompt in task.train)
    card = resolve(config).card()
    assert card["task_notes"] == ["columns are read: prompt=ask, answer=sum"]
    assert card["settings"]["columns"] == ["prompt=ask,answer=sum"]


def test_prompts_over_the_budget_are_left_out_and_counted(model, path):
    config = config_of(model, path, "--prompt-tokens", "4", "--drop-long-prompts")
    said = r"\d of \d+ train prompts and \d of \d+ test prompts have more than --prompt-tokens 4"
    with pytest.warns(UserWarning, match=said):
        task = load_task(config)
    assert len(task.train) + len(task.test) == 20
    assert load_task(config_of(model, path, "--prompt-tokens", "8", "--drop-long-prompts"))
    with pytest.raises(ValueError, match="--drop-long-prompts must come with --prompt-tok"):
        resolve(config_of(model, path, "--drop-long-prompts"))


@pytest.mark.thorough
def test_a_run_learns_from_a_file_and_says_how_it_was_read(model, path, tmp_path, capsys):
    settings = training_runs.settings(model, tmp_path / "run", task=f"jsonl:{path}", steps=1)
    line = ["--columns", "prompt=ask,answer=sum", "--task-options", "instruction=", "held_out=0.4"]
    config = parse_config([*training_runs.arguments(settings), *line, "--response-tokens", "6"])
    training_runs.train(config)
    said = capsys.readouterr().out
    assert said.count("columns are read: prompt=ask, answer=sum") == 1
    (sample, *_) = (tmp_path / "run/samples").iterdir()
    rows = [json.loads(text) for text in sample.read_text().splitlines()]
    assert {row["stage"] for row in rows} <= {"no answer", "exact"}
    small = ["--prompts", "2", "--samples", "2", "--response-tokens", "6"]
    evaluate.main(
        ["--model", str(tmp_path / "run/policy"), "--task", f"jsonl:{path}", *line, *small]
    )


def test_a_comparison_hands_them_to_every_run():
    options = compare.Config(task_options=("held_out=0.5",), columns=("prompt=ask,answer=sum",))
    settings = compare._settings(options, "grpo", 0)
    assert (settings.data.task_options, settings.data.columns) == (
        options.task_options,
        options.columns,
    )
    with pytest.raises(ValueError, match="settings that this command does not set itself"):
        compare._settings(options, "grpo:columns=x", 0)


@pytest.mark.thorough
def test_texts_of_one_token_end_responses(model, tmp_path):
    run = training_runs.prepared(training_runs.settings(model, tmp_path / "run", stop=("3", "+")))
    batch = collect(run, run.initial_state(), 0).batch
    rollouts, ends = (
        batch.rollouts,
        {training_runs.WORDS.index(word) for word in ("<eos>", "3", "+")},
    )
    last = []
    for row, response in enumerate(batch.responses):
        written = rollouts.tokens[row, : rollouts.length[row]].tolist()
        assert not ends & set(written[:-1])
        assert (written[-1] in ends) != rollouts.truncated[row]
        # A verifier is not shown what ended the response.
        assert not {"3", "+"} & set(response.text.split())
        last.append(written[-1])
    assert ends <= set(last)
    assert rollouts.mask[:, 0].all()


@pytest.mark.parametrize("text, parts", [("1 2", ["1", "2"]), ("", [])])
def test_a_stop_of_several_tokens_is_refused(model, tmp_path, text, parts):
    config = training_runs.settings(model, tmp_path / "run", stop=(text,))
    message = f"--stop must be texts of one token each, got {text!r}, which is {parts}"
    with pytest.raises(ValueError, match=re.escape(message)):
        training_runs.prepared(config)


def test_a_reward_that_raises_ends_the_run_or_is_no_verdict(model, tmp_path):
    def verify(prompts, responses):
        if any("5" in response.text for response in responses):
            raise KeyError("five")
        return training_runs.verify(prompts, responses)

    def load(*_):
        return replace(training_runs.sums(), verify=verify)

    responses = [Response("4"), Response("5"), Response("6")]
    config = training_runs.settings(model, tmp_path / "run")
    task = load_task(config, load)
    with pytest.raises(GradingError, match=r"raised KeyError.*--failed-grades no_verdict"):
        grades_of(task, task.train[:3], responses)
    task = load_task(config.replace(failed_grades="no_verdict"), load)
    outcomes = [grade.outcome for grade in grades_of(task, task.train[:3], responses)]
    assert outcomes[1] is None and None not in (outcomes[0], outcomes[2])
    with pytest.raises(
        ValueError, match="--failed-grades must be one of 'raise', 'no_verdict', got 'skip'"
    ):
        check_config(config.replace(failed_grades="skip"))
