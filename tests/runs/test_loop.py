"""A run from its first evaluation to its last: what is logged, learned and left behind."""

import io
import json
import signal

import jax
import numpy as np
import pytest
import training_runs
from compiling import compilations
from rich.console import Console
from training_runs import GRPO

from docs.metrics_page import unknown
from rlvr_jax.analysis.metrics import declared
from rlvr_jax.runs import run_writer, train
from rlvr_jax.runs.step import collect
from rlvr_jax.training.learning import learn
from rlvr_jax.types import replace

FLOAT32 = 1e-5  # two programs that compute the same log-probs of a few nats
CURVES = {
    *("reward", "outcome", "outcome/small", "outcome/large", "length", "truncated_fraction"),
    *(
        "entropy",
        "entropy/p10",
        "entropy/p50",
        "entropy/p90",
        "entropy/correct",
        "entropy/incorrect",
    ),
    *("covariance", "low_entropy_fraction", "chosen_fraction", "clipped_fraction", "info/words"),
    *("ratio/min", "ratio/mean", "ratio/max", "ratio/effective_sample_size"),
    *("gradient_norm", "loss", "skipped_updates", "verifier_timeouts", "verifier_no_verdict"),
    *("chosen_tokens", "sampler_ratio/min", "sampler_ratio/max", "sampler_k3"),
}
HELD_OUT = {
    *("pass@1", "pass@8", "small/pass@1", "small/pass@8", "large/pass@1", "large/pass@8"),
    *("n", "entropy", "kl_to_start/k1", "truncated_fraction", "verifier_no_verdict"),
    *("info/words", "small/info/words", "large/info/words"),
}


@pytest.fixture(scope="module")
def finished(model, tmp_path_factory):
    """The directory of a finished run, and its summary."""
    run_dir = tmp_path_factory.mktemp("finished") / "run"
    config = training_runs.settings(model, run_dir, evaluation_samples=16, **GRPO)
    return run_dir, training_runs.quietly(config)


@pytest.mark.thorough
def test_all_default_curves_are_logged(finished):
    rows = training_runs.metrics(finished[0])
    assert [row["step"] for row in rows] == [0, 1, 2, 3]
    held_out = {f"held_out/{name}" for name in HELD_OUT}
    assert rows[0].keys() == {"step"} | held_out
    for row in rows[1:]:
        assert row.keys() >= CURVES
        assert (row.keys() & held_out) == (held_out if row["step"] in (2, 3) else set())
    assert rows[0]["held_out/kl_to_start/k1"] == 0


def test_the_reference_lists_every_metric_of_a_run(finished):
    run_dir, summary = finished
    assert (
        unknown({name for row in training_runs.metrics(run_dir) for name in row} - {"step"}) == []
    )
    lines = map(json.loads, (run_dir / "held_out.jsonl").read_text().splitlines())
    written = {"held_out": {name for line in lines for name in line} - {"step"}, "summary": summary}
    for file, keys in written.items():
        assert unknown(keys, [name for one in declared(file) for name in one.names]) == []


def test_the_clock_is_kept_apart_from_the_curves(finished):
    names = {name for row in training_runs.metrics(finished[0]) for name in row}
    assert not [name for name in names if name.endswith(("_s", "seconds"))]
    lines = (finished[0] / "timings.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [0, 1, 2, 3]
    wanted = {"sample_s", "verify_s", "update_s", "tokens_per_s", "wall_s"}
    assert all(json.loads(line).keys() >= wanted for line in lines[1:])


def test_a_finished_run_leaves_everything_that_is_read_later(finished):
    run_dir, summary = finished
    files = {path.name for path in run_dir.iterdir()}
    assert files >= {
        "config.json",
        "summary.json",
        "report.html",
        "policy",
        "samples",
        "tensorboard",
    }
    assert json.loads((run_dir / "summary.json").read_text()) == summary
    page = (run_dir / "report.html").read_text()
    assert "not finished" not in page and "reloads" not in page
    assert summary["steps"] == 3 and summary["n"] == 16
    config = json.loads((run_dir / "config.json").read_text())
    assert config["method"] == "grpo" and len(config["loss_terms"]) == 4
    assert config["hyperparameters"]["kl_coefficient"] == 0.04
    assert config["device"] == jax.devices()[0].device_kind


def test_a_report_stands_from_the_first_evaluation_on_and_outlives_the_run(model, tmp_path):
    config = training_runs.settings(model, tmp_path / "run", steps=3, evaluate_every=1, **GRPO)
    seen = {}

    def on_step(step, metrics, timings):
        seen[step] = (tmp_path / "run" / "report.html").read_text()
        if step == 2:
            raise RuntimeError("the machine is gone")

    with pytest.raises(RuntimeError, match="gone"):
        train(config, Console(file=io.StringIO()), lambda *_: on_step)
    seen["after"] = (tmp_path / "run" / "report.html").read_text()
    for moment, steps in ((0, 0), (1, 1), (2, 2), ("after", 2)):
        assert f"{steps} steps, not finished" in seen[moment]
        live = "reloads" in seen[moment]
        assert live == (moment != "after")


def test_a_page_that_cannot_be_written_ends_no_run_and_hides_no_error(model, tmp_path, monkeypatch):
    def fails(*given, **named):
        raise TypeError("no page")

    def on_step(step, metrics, timings):
        if step == 2:
            raise RuntimeError("the machine is gone")

    monkeypatch.setattr(run_writer, "write_report", fails)
    config = training_runs.settings(model, tmp_path / "run", steps=3, evaluate_every=1, **GRPO)
    with (
        pytest.warns(UserWarning, match=r"report\.html was not written: no page"),
        pytest.raises(RuntimeError, match="gone"),
    ):
        train(config, Console(file=io.StringIO()), lambda *_: on_step)


def test_samples_show_each_token_with_its_numbers(finished):
    for path in sorted((finished[0] / "samples").iterdir()):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        assert [row["group"] for row in rows] == [0, 1]
        for row in rows:
            names = ("entropy", "logp", "advantage", "ratio", "chosen", "clipped")
            assert {len(row[name]) for name in names} == {len(row["tokens"])}
            assert "".join(row["tokens"]).removesuffix("<eos>").strip() == row["response"]
            assert row["truncated"] == (row["tokens"][-1].strip() != "<eos>")
            words = row["response"].split()
            assert (row["answer"] or "") == " ".join(words[-1:])
            assert (row["stage"], row["timed_out"], row["verdict"]) == ("", False, True)


def test_equal_seeds_write_equal_bytes_and_others_do_not_by_the_same_programs(
    finished, model, tmp_path
):
    with compilations() as compiled_anew:
        for name, seed in (("same", 0), ("other", 1)):
            config = training_runs.settings(
                model, tmp_path / name, seed=seed, evaluation_samples=16, **GRPO
            )
            training_runs.quietly(config)
    assert not compiled_anew
    wanted = training_runs.contents(finished[0])
    assert training_runs.contents(tmp_path / "same") == wanted
    other = training_runs.contents(tmp_path / "other")
    assert other.keys() == wanted.keys()
    assert all(other[name] != wanted[name] for name in wanted)


@pytest.mark.thorough
def test_after_the_first_step_nothing_is_compiled(model, tmp_path):
    compilations, at_grading = [], []

    def heard(event, seconds, **_):
        if event == "/jax/core/compile/jaxpr_trace_duration":
            compilations.append(seconds)

    jax.monitoring.register_event_duration_secs_listener(heard)
    # Another optimizer than that of the runs above, whose programs are kept.
    own = dict(steps=3, evaluate_every=1, max_gradient_norm=0.9, **GRPO)
    config = training_runs.settings(model, tmp_path / "run", **own)
    try:
        with training_runs.watched(lambda: at_grading.append(len(compilations))):
            training_runs.quietly(config)
    finally:
        jax.monitoring.unregister_event_duration_listener(heard)
    # The self-check, evaluation 0; then rollouts and an evaluation in each step.
    first = training_runs.CHECKS + 1
    assert len(at_grading) == first + 2 * 3
    assert at_grading[first] < at_grading[first + 1]
    assert len(set(at_grading[first + 2 :])) == 1


def test_a_run_leaves_the_process_as_it_was(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    numbers = (signal.SIGINT, signal.SIGTERM)
    settings, handlers = dict(jax.config.values), [signal.getsignal(n) for n in numbers]
    training_runs.quietly(training_runs.settings(model, "run", steps=1, **GRPO))
    assert dict(jax.config.values) == settings
    assert [signal.getsignal(number) for number in numbers] == handlers
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def recording(run):
    """The run, and a list to which it adds (params, rollouts, fresh) of each update."""
    calls = []

    def update(state, rollouts, key, fresh, *others):
        calls.append((jax.device_get(state.params), rollouts, fresh))
        return run.programs.update(state, rollouts, key, fresh, *others)

    return replace(run, programs=replace(run.programs, update=update)), calls


def scores(run, params, rollouts):
    """Log-probs of a whole step's rollouts, in parts of the size that is compiled."""
    size = len(rollouts.group) // run.config.update.minibatches
    parts = [
        jax.tree.map(lambda x, i=i: x[i : i + size], rollouts)
        for i in range(0, len(rollouts.group), size)
    ]
    return np.concatenate([run.programs.score(params, part)["old_logp"] for part in parts])


@pytest.fixture(scope="module")
def two_steps(model):
    """Two steps of two epochs of two minibatches: batch, score at its start, and the updates."""
    config = training_runs.settings(model, "unused", epochs=2, **GRPO)
    run, calls = recording(training_runs.prepared(config))
    state, steps = run.initial_state(), []
    for step in range(2):
        batch = collect(run, state, step).batch
        start = scores(run, state.device.params, batch.rollouts)
        device, _, records = learn(run.learner, state.device, batch.rollouts, step)
        state = replace(state, device=device)
        steps.append((batch, start, calls[4 * step :], records))
    return run, steps


@pytest.mark.thorough
def test_old_log_probs_are_those_of_the_weights_that_sampled(two_steps):
    for batch, start, calls, records in two_steps[1]:
        assert [fresh for *_, fresh in calls[:4]] == [True, False, False, False]
        for number, (_, rollouts, fresh) in enumerate(calls[:4]):
            rows = rollouts.rollout_id
            if not fresh:
                np.testing.assert_allclose(rollouts.old_logp, start[rows], atol=FLOAT32)
            if number < 2:
                np.testing.assert_allclose(records["old_logp"][rows], start[rows], atol=FLOAT32)
        assert (batch.rollouts.mask == (start != 0)).all()


@pytest.mark.thorough
def test_behaviour_log_probs_agree_with_the_scorer(two_steps):
    for batch, start, *_ in two_steps[1]:
        np.testing.assert_allclose(batch.rollouts.behaviour_logp, start, atol=FLOAT32)


def test_reference_log_probs_are_those_of_the_start(two_steps):
    run, steps = two_steps
    for batch, start, calls, _ in steps:
        wanted = scores(run, run.start_params(), batch.rollouts)
        for _, rollouts, _ in calls[:4]:
            np.testing.assert_array_equal(rollouts.reference_logp, wanted[rollouts.rollout_id])
        moved = np.abs(wanted - start).max()
    assert moved > 0.01


def test_each_epoch_sees_every_group_once_and_whole(two_steps):
    for batch, _, calls, _ in two_steps[1]:
        for epoch in (calls[:2], calls[2:4]):
            rows = np.concatenate([rollouts.rollout_id for _, rollouts, _ in epoch])
            assert sorted(rows.tolist()) == list(range(16))
            for _, rollouts, _ in epoch:
                assert np.unique(rollouts.group, return_counts=True)[1].tolist() == [4, 4]
        assert batch.rollouts.group.tolist() == np.repeat(range(4), 4).tolist()


def test_groups_of_equal_rewards_come_last_in_their_update(two_steps):
    kinds = set()
    for _, _, calls, _ in two_steps[1]:
        for _, rollouts, _ in calls[:4]:
            equal = (np.ptp(rollouts.reward.reshape(-1, 4), axis=1) == 0).tolist()
            assert equal == sorted(equal)
            kinds.add(tuple(equal))
    assert (False, True) in kinds


def test_advantages_do_not_depend_on_the_split_into_updates(two_steps):
    for batch, _, _, records in two_steps[1]:
        reward = batch.rollouts.reward.reshape(4, 4)
        spread = reward.std(1, ddof=1, keepdims=True)
        wanted = ((reward - reward.mean(1, keepdims=True)) / (spread + 1e-6)).reshape(-1, 1)
        wanted = np.where(batch.rollouts.mask, wanted, 0)
        found = np.where(batch.rollouts.mask, records["advantage"], 0)
        np.testing.assert_allclose(found, wanted, atol=FLOAT32)


# UCAS divides differences of sums over rollouts by their deviation, which is small in this model.
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("method", "tolerance"),
    [
        ("reinforce_plus_plus", FLOAT32),
        pytest.param("ucas", 30 * FLOAT32, marks=pytest.mark.slow),
    ],
)
def test_what_compares_a_batch_is_decided_before_the_split(model, method, tolerance):
    one, two = (
        training_runs.prepared(
            training_runs.settings(model, "unused", method=method, minibatches=number)
        )
        for number in (1, 2)
    )
    batch = collect(one, one.initial_state(), 0).batch
    (_, whole, wanted), (_, split, found) = (
        learn(run.learner, run.initial_state().device, batch.rollouts, 0) for run in (one, two)
    )
    advantages = [np.where(batch.rollouts.mask, r["advantage"], 0) for r in (found, wanted)]
    assert np.ptp(advantages[0]) > 0
    np.testing.assert_allclose(*advantages, atol=tolerance)
    assert split.keys() == whole.keys()


def test_a_loss_that_is_not_finite_does_not_hide_behind_other_updates(two_steps):
    run = two_steps[0]
    state = run.initial_state()
    batch = collect(run, state, 0).batch
    reward = np.where(batch.rollouts.group == 0, np.nan, batch.rollouts.reward)
    broken = batch.rollouts.replace(reward=reward.astype(np.float32))
    _, metrics, _ = learn(run.learner, state.device, broken, 0)
    assert np.isnan(metrics["loss"]) and np.isnan(metrics["gradient_norm"])
    # Two epochs of two minibatches, of which one holds the group.
    assert metrics["skipped_updates"] == 0.5
