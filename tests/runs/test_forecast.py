"""Memory that does not suffice is told before the first sample, or where an allocation fails."""

import io
import re

import jax
import numpy as np
import pytest
import training_runs
from rich.console import Console

from rlvr_jax.runs import loop, step, train
from rlvr_jax.runs.checkpoints import latest_step
from rlvr_jax.runs.checks import forecast
from rlvr_jax.runs.checks.forecast import check_forecast

MIB = 2**20
OUT = "RESOURCE_EXHAUSTED: Out of memory allocating 96636764160 bytes."


@pytest.fixture
def told(model, monkeypatch):
    """What is said of a run where so many bytes are free."""

    def check(free, **changes):
        run = training_runs.prepared(training_runs.settings(model, "unused", **changes))
        monkeypatch.setattr(forecast, "free_bytes", lambda device: free)
        return check_forecast(run)

    return check


# A run with 32 x 32 responses of 24 tokens: its caches take some 12 MiB.
LARGE = dict(prompts_per_step=32, samples_per_prompt=32, response_tokens=24)


def caches(model, **changes):
    """Bytes of the caches of a run in one memory."""
    run = training_runs.prepared(training_runs.settings(model, "unused", **changes))
    return run.memory["sampler's cache"] * len(run.start.sampler.model.mesh.local_devices)


@pytest.mark.parametrize("part", [0.9, 0.5, 0.2])
def test_a_cache_that_does_not_fit_is_refused_with_values_that_fit(model, told, part):
    whole = caches(model, **LARGE)
    with pytest.raises(ValueError, match=r"the run needs .* MiB|GiB of memory") as refused:
        told(int(part * whole), **LARGE)
    text = str(refused.value)
    sampling_batches, rows = re.search(
        r"--sampling-batches (\d+) or --rows-at-once (\d+) fits", text
    ).groups()
    for better in ({"sampling_batches": int(sampling_batches)}, {"rows_at_once": int(rows)}):
        run = training_runs.prepared(training_runs.settings(model, "unused", **LARGE, **better))
        own = run.start.sampler
        size = own.cache_bytes(run.start.train_table.tokens.shape[1])
        assert size * own.model.mesh.size < part * whole


def test_a_forecast_near_the_memory_is_a_warning_and_a_small_one_nothing(model, told):
    whole = caches(model, **LARGE)
    near = told(int(1.1 * whole), **LARGE)
    assert re.search(
        r"--sampling-batches \d+ or --rows-at-once \d+ takes half as much or less", near
    )
    assert told(10 * whole, **LARGE) == "" and told(None, **LARGE) == ""


def test_where_no_setting_of_the_sampler_helps_others_are_named(told):
    with pytest.raises(ValueError, match="fewer --response-tokens, --compute-dtype bfloat16, a"):
        told(1024)


def test_nothing_is_sampled_or_written_by_a_run_that_does_not_fit(model, tmp_path, monkeypatch):
    def sampled(*_, **__):
        raise AssertionError("sampled")

    monkeypatch.setattr(forecast, "free_bytes", lambda device: 1024)
    monkeypatch.setattr(step, "collect", sampled)
    with pytest.raises(ValueError, match="of memory"):
        training_runs.quietly(training_runs.settings(model, tmp_path / "run"))
    assert not (tmp_path / "run" / "config.json").exists()


@pytest.mark.thorough
def test_a_run_near_its_memory_says_so_and_goes_on(model, tmp_path, monkeypatch):
    monkeypatch.setattr(forecast, "NEAR", 0.0)
    console = Console(file=io.StringIO(), width=200)
    train(training_runs.settings(model, tmp_path / "run", steps=1), console)
    assert "warning: the run needs" in console.file.getvalue()


@pytest.mark.parametrize(
    ("where", "told"),
    [
        (
            "collect",
            r"memory ran out while responses were sampled; --sampling-batches 2 or",
        ),
        ("learn", r"memory ran out in an update; --micro-batches 2 or --remat layers takes less"),
    ],
)
@pytest.mark.parametrize("error", [jax.errors.JaxRuntimeError(OUT), MemoryError("no")])
def test_an_allocation_that_fails_names_flags_and_the_state_is_saved(
    model, tmp_path, monkeypatch, where, told, error
):
    function = getattr(step, where)

    def fails(*given):
        if given[2] == 1 or given[-2] == 1:
            raise error
        return function(*given)

    monkeypatch.setattr(step, where, fails)
    config = training_runs.settings(model, tmp_path / "run", steps=2, micro_batches=1)
    with pytest.raises(ValueError, match=f"step 2: {told}.*; the state before is saved"):
        training_runs.quietly(config)
    assert latest_step(config.run_dir / "checkpoints") == 1


def test_an_evaluation_without_memory_leaves_the_state_after_its_step(model, tmp_path, monkeypatch):
    evaluate = loop.evaluate

    def fails(*given, **options):
        if np.array_equal(jax.random.key_data(given[5]), asked):
            raise MemoryError("no")
        return evaluate(*given, **options)

    config = training_runs.settings(model, tmp_path / "run", steps=3, evaluate_every=1)
    key = training_runs.prepared(config).key("evaluation", 2)
    asked = jax.random.key_data(key)
    monkeypatch.setattr(loop, "evaluate", fails)
    told = "step 2: memory ran out in an evaluation; .*; the state after it is saved"
    with pytest.raises(ValueError, match=told):
        training_runs.quietly(config)
    assert latest_step(config.run_dir / "checkpoints") == 2
    monkeypatch.undo()
    training_runs.quietly(config.replace(resume=True))
    lines = training_runs.metrics(config.run_dir)
    assert [line["step"] for line in lines] == [0, 1, 2, 3]
    assert ["held_out/pass@1" in line for line in lines] == [True, True, False, True]


def test_other_errors_of_jax_pass(model, monkeypatch):
    run = training_runs.prepared(training_runs.settings(model, "unused"))
    with (
        pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL"),
        forecast.names_memory(run, "in an update", "update"),
    ):
        raise jax.errors.JaxRuntimeError("INTERNAL: a fault")
