"""Losses that are not finite: which of them end a run, and how."""

import numpy as np
import pytest
import training_runs
from everyday import everyday
from training_runs import GRPO

from rlvr_jax import policy
from rlvr_jax.objectives import (
    Transform,
    group_centered,
    importance_weighted,
    objective,
    token_mean,
)
from rlvr_jax.types import Recipe, replace


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("minibatches", "saved", "kept"),
    everyday(
        [
            (1, True, "the state before this update is saved"),
            (2, False, "the last checkpoint is unchanged"),
        ],
        (1, True, "the state before this update is saved"),
    ),
)
def test_a_loss_that_is_not_finite_ends_the_run(model, tmp_path, minibatches, saved, kept):
    broken, params = policy.load(model)
    params["final_norm"] = params["final_norm"] * np.nan
    policy.save(tmp_path / "policy", broken, params, policy.tokenizer(model))
    settings = GRPO | {"minibatches": minibatches}
    config = training_runs.settings(tmp_path / "policy", tmp_path / "run", **settings)
    with pytest.raises(FloatingPointError, match=f"step 1: loss is nan.*; {kept}"):
        training_runs.quietly(config)
    assert [row["step"] for row in training_runs.metrics(tmp_path / "run")] == [0]
    # Of two updates one may have been made, which going on from here would make again.
    assert (tmp_path / "run/checkpoints/0").is_dir() == saved


def unbounded(value):
    """Plain policy gradient, with a penalty of that value whose gradient is 0."""

    def apply(signals, context, state):
        del context
        return replace(signals, term=signals.term + value), state, {}

    return Recipe(
        objective(
            advantage=group_centered(),
            surrogate=importance_weighted(),
            regularizers=[Transform(apply)],
            aggregation=token_mean(),
        )
    )


def infinite():
    return unbounded(np.inf)


def not_a_number():
    return unbounded(np.nan)


@pytest.mark.slow
def test_a_loss_that_is_infinite_ends_no_run_whose_gradient_is_finite(model, tmp_path):
    config = training_runs.settings(
        model, tmp_path / "run", **GRPO | {"method": f"{__name__}:infinite", "hyperparameters": ()}
    )
    training_runs.quietly(config)
    rows = [row for row in training_runs.metrics(tmp_path / "run") if row["step"]]
    assert rows and all(row["loss"] is None and row["infinite_loss"] == 1.0 for row in rows)
    assert any(row["gradient_norm"] > 0 and row["skipped_updates"] < 1 for row in rows)


@pytest.mark.thorough
def test_a_loss_that_is_no_number_ends_it_whatever_its_gradient(model, tmp_path):
    own = GRPO | {"method": f"{__name__}:not_a_number", "hyperparameters": ()}
    config = training_runs.settings(model, tmp_path / "run", **own)
    with pytest.raises(FloatingPointError, match="step 1: loss is nan"):
        training_runs.quietly(config)
