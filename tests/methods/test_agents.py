"""Methods of agents: a run that is cut goes on."""

import shutil

import pytest
import training_runs
from turn_runs import run_of


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "given", "changes"),
    [
        ("epo", ("max_steps=3",), {}),
        ("aepo_agentic", ("tools=None", "top=5", "window=2"), {}),
        ("social_rl", (), {"task": "small_environments:played_sums", "response_tokens": 16}),
        (
            "bfs_prover_v2",
            ("expansions=4", "separator= =", "low=0", "high=1"),
            {"task": "small_environments:counted_sums", "response_tokens": 3},
        ),
    ],
)
def test_a_run_that_is_cut_goes_on_in_the_same_bytes(tmp_path, method, given, changes):
    changes = {**changes, "checkpoint_every": 2}
    run_of(tmp_path, method, *given, steps=4, **changes)
    run, whole = tmp_path / "run", tmp_path / "whole"
    shutil.copytree(run, whole)
    shutil.rmtree(run / "checkpoints" / "4")
    (run / "summary.json").unlink()
    run_of(tmp_path, method, *given, steps=4, resume=True, **changes)
    assert training_runs.contents(run) == training_runs.contents(whole)
