"""Methods whose experience acts are trained end to end, and their parts act."""

from dataclasses import replace

import numpy as np
import pytest
import training_runs
from everyday import everyday


def hinted():
    """Sums with their solutions, which a hint writes behind the prompt."""

    def solved(prompt):
        return replace(prompt, solution=[prompt.gold])

    task = training_runs.sums()
    return replace(
        task,
        train=[solved(prompt) for prompt in task.train],
        test=[solved(prompt) for prompt in task.test],
        show_hint=lambda prompt, hint: f"{prompt.text} {hint}".rstrip(),
    )


ACTS = {
    "cure": ("branched_fraction", {"hyperparameters": ("samples=1", "barred_characters=0")}),
    "depth_breadth_dars": ("extra_rows", {}),
    "brorl": (
        "refill/accepted_fraction",
        {"prompts_per_step": 2, "samples_per_prompt": 32, "sampling_batches": 4},
    ),
    "prof": ("step_score", {"task": "brackets", "model": ""}),
    "grpo_roc": ("selected_rows", {}),
    "ghpo": ("redrawn_fraction", {"task": f"{__name__}:hinted"}),
}
"""By method: a metric that is above 0 if its part acted, and settings of the run."""


@pytest.mark.thorough
@pytest.mark.parametrize("name", everyday(ACTS, "brorl"))
def test_a_run_of_it_acts(name, model, tmp_path):
    part, changes = ACTS[name]
    metric = f"experience/{part}"
    own = {"model": str(model), "method": name, **changes}
    settings = training_runs.settings(model, tmp_path / "run").replace(**own)
    training_runs.quietly(settings)
    lines = training_runs.metrics(tmp_path / "run")
    steps = [line for line in lines if metric in line]
    assert len(steps) == settings.steps
    assert all(np.isfinite(line["loss"]) for line in steps)
    assert sum(line[metric] for line in steps) > 0
