"""Settings of runs that are stopped and resumed."""

import training_runs

SETTINGS = dict(method="grpo", minibatches=2, steps=4, checkpoint_every=1)


def settings_of(model, run_dir, **changes):
    return training_runs.settings(model, run_dir, **{**SETTINGS, **changes})
