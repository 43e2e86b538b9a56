"""The public description of a run directory is all that a reader needs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import training_runs

from docs.metrics_page import unknown

ROOT = Path(__file__).parents[2]
READER = ROOT / "tests/support/described_run.py"

# What this run does not come to: each is an event, or belongs to a part that the run lacks.
UNSEEN = {
    ".lock",
    "config.json: mixture.<kind>",
    *(f"metrics.jsonl: {name}" for name in ("infinite_loss", "kl_penalty/k3", "left_out_rows")),
    "metrics.jsonl: slope_distance",
    *(f"metrics.jsonl: engine/{name}" for name in ("gap_max", "gap_mean", "reported_gap_max")),
    *(f"metrics.jsonl: engine/{name}_s" for name in ("sync", "probe", "generate", "grade")),
    *(
        f"metrics.jsonl: engine/{name}{by}"
        for name in ("k1", "k3", "gap", "gap_p99")
        for by in ("", "_position/<quarter>", "_length/<quarter>")
    ),
    *(f"metrics.jsonl: critic/{name}" for name in ("loss", "gradient_norm", "explained_variance")),
    *(f"metrics.jsonl: critic/{name}" for name in ("value", "return", "score")),
    *(f"metrics.jsonl: further/{name}" for name in ("loss", "gradient_norm", "updates")),
    *(f"metrics.jsonl: {name}" for name in ("differing_fraction", "update_tokens_fraction")),
    *(f"samples/step_<step>.jsonl: {name}" for name in ("row", "compared")),
}


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    """A run with tools, adapters and a judge: it writes every kind of file."""
    folder = tmp_path_factory.mktemp("public")
    (folder / "prompt.txt").write_text("{response} =")
    training_runs.on_brackets(
        "verltool",
        folder / "run",
        task="calculations",
        hyperparameters=("tools=None",),
        steps=3,
        evaluate_every=2,
        prompts_per_step=4,
        samples_per_prompt=4,
        evaluation_prompts=4,
        lora_rank=2,
        judge="own_judges:longer",
        judge_prompt=str(folder / "prompt.txt"),
    )
    return folder / "run"


@pytest.mark.thorough
def test_a_run_is_read_by_its_description_and_the_standard_library(run_dir):
    pages = [ROOT / "docs" / name for name in ("run_directory.md", "metrics.md")]
    command = [sys.executable, "-I", "-S", READER, *pages, run_dir]
    found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert "model.embed_tokens.weight" in found.pop("tensors")
    assert set(found.pop("unseen")) == UNSEEN
    assert found == {name: [] for name in found}


@pytest.mark.thorough
def test_metrics_of_tools_and_of_a_judge_are_on_the_page(run_dir):
    assert (
        unknown({name for row in training_runs.metrics(run_dir) for name in row} - {"step"}) == []
    )


@pytest.mark.thorough
def test_texts_of_a_run_have_no_addresses_of_its_process(run_dir):
    assert " at 0x" not in (run_dir / "config.json").read_text()
