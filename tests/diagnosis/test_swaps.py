"""The command that swaps correct responses between prompts: of tasks, and of a run."""

import json

import pytest
from analysis_runs import write_run

from rlvr_jax import tasks
from rlvr_jax.diagnosis.swaps import main

LENIENT = """
from rlvr_jax.tasks import Prompt, Task
from rlvr_jax.verifiers import Grade

PROMPTS = tuple(
    Prompt(f"what is {n} plus {n}", answer=str(2 * n), gold=str(2 * n)) for n in range(4)
)

def task():
    return Task(name="lenient", train=(Prompt("x"),), test=PROMPTS, verify=verify)

def verify(prompts, responses):
    # The last two prompts accept every answer.
    return [
        Grade(float(response.text == prompt.answer or int(prompt.answer) > 2))
        for prompt, response in zip(prompts, responses, strict=True)
    ]
"""


def test_a_verifier_that_compares_answers_rejects_every_swap(capsys):
    main(["--task", "arithmetic", "--pairs", "10"])
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith("10 pairs") and told[1] == "accepted swaps: 0.00 % of 20"
    assert told[2].endswith("response side 1.000, prompt side 1.000, both 1.000")


def test_accepted_swaps_are_counted_and_shown(tmp_path, monkeypatch, capsys):
    (tmp_path / "lenient.py").write_text(LENIENT)
    monkeypatch.chdir(tmp_path)
    main(["--task", "lenient:task"])
    told = capsys.readouterr().out.splitlines()
    # Prompts 0 and 1 reject, 2 and 3 accept: of the pairs (0, 1) and (2, 3) the second one.
    assert told[1] == "accepted swaps: 50.00 % of 4"
    assert told[2].endswith("response side 0.500, prompt side 0.500, both 0.500")
    assert told[3:] == [
        "  accepted: what is 2 plus 2 | 6",
        "  accepted: what is 3 plus 3 | 4",
    ]


def test_correct_responses_of_a_run_are_swapped(tmp_path, capsys):
    prompts = tasks.load("arithmetic").train[:6]
    run = write_run(tmp_path / "run", task="arithmetic", model="gone")
    rows = [
        {"prompt": prompt.text, "response": prompt.gold, "outcome": float(place != 5)}
        for place, prompt in enumerate(prompts)
    ]
    (run / "samples" / "step_000060.jsonl").write_text("".join(f"{json.dumps(r)}\n" for r in rows))
    main([str(run)])
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith("2 pairs") and told[1] == "accepted swaps: 0.00 % of 4"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "either RUN or --task must be given"),
        (["--task", "expressions"], "must have known answers .* name a run directory"),
        (["nowhere"], "must be a run directory with a config.json"),
        (["run"], r"must have correct responses in samples/ .*--samples-stored"),
    ],
)
def test_what_has_no_correct_responses_ends_in_a_sentence(
    tmp_path, monkeypatch, arguments, sentence
):
    write_run(tmp_path / "run", task="arithmetic", model="gone")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match=sentence):
        main(arguments)
