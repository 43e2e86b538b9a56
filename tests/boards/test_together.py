"""Runs side by side: what they show, how they stop, what is run at all."""

import errno
import io
import json
import os
import signal
import threading
import time

import pytest
import training_runs
from rich.console import Console

from experiments import compare
from experiments.compare import main
from rlvr_jax.boards import check_together, default_jobs, train_together
from rlvr_jax.runs import RunsFailed, TrainConfig, preset
from rlvr_jax.runs.loop import Stopped
from rlvr_jax.runs.resolved import resolve
from rlvr_jax.runs.run_writer import write_json


def config(folder, name, steps=2):
    return TrainConfig.of(run_dir=folder / name, steps=steps)


def console():
    return Console(file=io.StringIO(), width=100)


def counts(config, console, watch):
    """Stands for `train`: shows a line and its steps, and tells how it was started."""
    console.print(f"settings of {config.run_dir.name}")
    on_step = watch(config.run_dir.name, config.steps, 0, "")
    for step in range(config.steps + 1):
        metrics = {"held_out/pass@1": 0.25, "held_out/n": 4, "reward": 0.5, "entropy": 0.1}
        metrics["truncated_fraction"] = 0.1
        on_step(step, metrics, {"tokens_per_s": 1000.0})
    return {"name": config.run_dir.name, "resume": config.resume, "threads": os.environ["NPROC"]}


def fails(config, console, watch):
    """The second run fails while the first one goes on."""
    if config.run_dir.name == "second":
        raise ValueError("task must be something else")
    return waits(config, console, watch)


def waits(config, console, watch):
    """Goes on until it is asked to stop, and writes down that it was."""
    asked = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: asked.set())
    console.print("waiting")
    if not asked.wait(60):
        raise FloatingPointError("nobody asked")
    config.run_dir.mkdir()
    (config.run_dir / "saved").touch()
    raise Stopped("stopped after step 1")


@pytest.mark.slow
def test_summaries_come_in_order_and_steps_are_shown(tmp_path):
    shown = console()
    names = ["a", "b", "c"]
    found = train_together([config(tmp_path, n) for n in names], shown, jobs=2, work=counts)
    assert [summary["name"] for summary in found] == names
    assert {summary["threads"] for summary in found} == {"1"}
    text = shown.file.getvalue()
    for name in names:
        assert f"settings of {name}\n" in text
        assert f"{name}  step 0/2  held-out pass@1 0.250 (n=4)" in text
        assert f"{name}  step 2/2  reward 0.500  entropy 0.100" in text


@pytest.mark.thorough
def test_a_finished_run_is_kept_and_one_that_has_begun_goes_on(tmp_path):
    done, begun, more = (config(tmp_path, name) for name in ("done", "begun", "more"))
    for run in (done, begun, more):
        run.run_dir.mkdir()
        write_json(run.run_dir / "config.json", resolve(run).card())
    (done.run_dir / "summary.json").write_text(json.dumps({"name": "old", "steps": 2}))
    (more.run_dir / "summary.json").write_text(json.dumps({"name": "short", "steps": 1}))
    found = train_together([done, begun, more], console(), jobs=1, work=counts)
    assert [summary["name"] for summary in found] == ["old", "begun", "more"]
    assert found[1]["resume"] and found[2]["resume"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (dict(seed=1), "--resume: --seed must be 0 as in the run, got 1"),
        (dict(task="operators"), "--resume: --task must be 'brackets' as in the run, got 'oper"),
        (dict(steps=1), "--resume: --steps must be at least the 2 that the run in .*done.*, got 1"),
    ],
)
def test_a_finished_run_does_not_stand_for_another(changes, sentence, tmp_path):
    done = config(tmp_path, "done")
    done.run_dir.mkdir()
    write_json(done.run_dir / "config.json", resolve(done).card())
    write_json(done.run_dir / "summary.json", {"steps": 2})
    assert train_together([done], console(), work=fails) == [{"steps": 2}]
    with pytest.raises(ValueError, match=sentence):
        train_together([done.replace(**changes)], console(), work=fails)


@pytest.mark.parametrize(
    ("entry", "value", "sentence"),
    [
        ("task_fingerprint", "0", "prompts of task 'brackets' must be those of the run"),
        ("model", "elsewhere", "--resume: --model must be 'elsewhere' as in the run"),
        (
            "hyperparameters",
            {"clip_low": 0.9},
            "--hyperparameters clip_low must be 0.9 as in the",
        ),
        ("mixture", {"easy": 1.0}, "mixture of task 'brackets' must be {'easy': 1.0} as in the"),
        ("response_tokens", 3, "the response tokens of task 'brackets' must be 3 as in the run"),
    ],
)
def test_a_finished_run_of_other_data_does_not_stand_for_another(entry, value, sentence, tmp_path):
    done = config(tmp_path, "done")
    done.run_dir.mkdir()
    card = resolve(done).card()
    if isinstance(card[entry], dict) and entry == "hyperparameters":
        value = card[entry] | value
    write_json(done.run_dir / "config.json", card | {entry: value})
    write_json(done.run_dir / "summary.json", {"steps": 2})
    with pytest.raises(ValueError, match=sentence):
        train_together([done], console(), work=fails)


def test_what_an_earlier_version_did_not_write_is_not_compared(tmp_path):
    done = config(tmp_path, "done")
    done.run_dir.mkdir()
    card = resolve(done).card()
    del card["mixture"], card["hyperparameters"]["clip_low"]
    write_json(done.run_dir / "config.json", card)
    write_json(done.run_dir / "summary.json", {"steps": 2})
    assert train_together([done], console(), work=fails) == [{"steps": 2}]


def fails_or_counts(config, console, watch):
    """Four runs fail, each in its way; another one counts."""
    if config.run_dir.name == "first":
        raise FloatingPointError("step 3: loss is nan")
    if config.run_dir.name == "second":
        os._exit(7)
    if config.run_dir.name == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if config.run_dir.name == "full":
        raise OSError(errno.ENOSPC, "No space left on device")
    return counts(config, console, watch)


@pytest.mark.slow  # half a minute: five runs
def test_a_run_that_fails_ends_alone(tmp_path):
    runs = [config(tmp_path, name) for name in ("first", "second", "killed", "full", "third")]
    told = {}
    with pytest.raises(RunsFailed) as failed:
        train_together(
            runs,
            console(),
            jobs=1,
            work=fails_or_counts,
            ended=lambda run, result: told.setdefault(run.run_dir.name, result),
        )
    found = {path.name: str(error) for path, error in failed.value.failures.items()}
    assert found == {
        "first": "step 3: loss is nan",
        "second": "the process ended with exit code 7; continue with --resume",
        "killed": "the process was ended by signal 9 (memory may have run out); continue with"
        " --resume",
        "full": "[Errno 28] No space left on device",
    }
    assert str(failed.value).splitlines()[0] == f"{runs[0].run_dir}: step 3: loss is nan"
    assert told["third"]["name"] == "third"
    # One that was killed, or had no room, may come to its end the next time.
    assert list(told) == ["first", "second", "third"]


@pytest.mark.slow  # ten seconds
def test_runs_that_cannot_begin_are_all_named_before_one_does(tmp_path):
    runs = [
        preset("brackets", method).replace(run_dir=tmp_path / method, **changes)
        for method, changes in {
            "grpo": {},
            "simko": dict(minibatches=4),
            "luffy_mixed": dict(task="dilemma"),
        }.items()
    ]
    check_together(runs[:1])
    with pytest.raises(ValueError) as refused:
        check_together(runs)
    lines = str(refused.value).splitlines()
    assert [line.split(": ")[0] for line in lines] == [str(run.run_dir) for run in runs[1:]]
    assert not any(run.run_dir.exists() for run in runs)


@pytest.mark.slow
def test_a_signal_stops_all_runs_and_they_save(tmp_path):
    runs = [config(tmp_path, name) for name in ("first", "second")]
    shown = console()

    def interrupt():
        while shown.file.getvalue().count("waiting") < 2:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(Stopped):
        train_together(runs, shown, jobs=2, work=waits)
    assert all((run.run_dir / "saved").exists() for run in runs)


def test_jobs_are_at_least_one_and_never_negative():
    assert default_jobs() >= 1
    with pytest.raises(ValueError, match="jobs must be at least 0, got -1"):
        train_together([], console(), jobs=-1)


@pytest.mark.slow
def test_compared_runs_have_the_mesh_that_is_given(tmp_path):
    folder = training_runs.write_policy(tmp_path / "policy")
    place = ["--run-dir", str(tmp_path / "runs"), "--model", str(folder), "--steps", "1"]
    options = ["--methods", "grpo", "rloo", "--seeds", "1", "--jobs", "1", "--mesh", "data=8"]
    main(["--task", "training_runs:sums", *place, *options])
    for method in ("grpo", "rloo"):
        card = json.loads((tmp_path / "runs" / method / "seed_0/config.json").read_text())
        assert card["settings"]["mesh"] == "data=8"
    assert (tmp_path / "runs/comparison/comparison.html").exists()


@pytest.mark.slow
def test_a_method_is_compared_with_itself_under_other_settings(tmp_path, monkeypatch):
    """What is run is looked at; nothing is trained."""
    asked = []
    monkeypatch.setattr(compare, "train_together", lambda configs, *_: asked.extend(configs))
    seen = []
    monkeypatch.setattr(
        compare, "compare_runs", lambda _, runs, baseline: seen.append(runs) or Shown()
    )
    other = "grpo:learning_rate=1e-4,clip_high=0.28"
    main(["--methods", "grpo", other, "--seeds", "2", "--run-dir", str(tmp_path), "--steps", "7"])
    assert [each.run_dir.relative_to(tmp_path).as_posix() for each in asked] == [
        f"{entry}/seed_{seed}" for seed in (0, 1) for entry in ("grpo", other.replace(":", "-"))
    ]
    plain, changed = asked[:2]
    assert changed == plain.replace(
        learning_rate=1e-4,
        hyperparameters=(*plain.hyperparameters, "clip_high=0.28"),
        run_dir=changed.run_dir,
    )
    assert plain == preset("brackets", "grpo").replace(steps=7, run_dir=plain.run_dir)
    assert seen == [
        {"grpo": [asked[0].run_dir, asked[2].run_dir], other: [asked[1].run_dir, asked[3].run_dir]}
    ]


def my_loss(clip: float = 0.2):
    """A method of one's own: only the command line is looked at."""


@pytest.mark.parametrize(
    ("entry", "method", "changes"),
    [
        ("siren:top_p=0.5", "siren", dict(hyperparameters=("top_p=0.5",))),
        ("training_runs:my_loss", "training_runs:my_loss", {}),
        (
            "gdpo:weights=1,0.5,top_p=0.5",
            "gdpo",
            dict(hyperparameters=("weights=1,0.5",), top_p=0.5),
        ),
        (
            "training_runs:my_loss:clip=0.3,top_p=0.5",
            "training_runs:my_loss",
            dict(hyperparameters=("clip=0.3",), top_p=0.5),
        ),
    ],
)
def test_an_entry_is_a_method_and_what_is_its_own(entry, method, changes, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(training_runs, "my_loss", my_loss, raising=False)
    # Which is a process of its own, where nothing is patched.
    monkeypatch.setattr(compare, "check_together", lambda configs: None)
    monkeypatch.setattr(compare, "train_together", lambda configs, *_: asked.extend(configs))
    monkeypatch.setattr(compare, "compare_runs", lambda *_, **__: Shown())
    main(["--methods", entry, "--seeds", "1", "--run-dir", str(tmp_path)])
    run_dir = tmp_path / entry.replace(":", "-") / "seed_0"
    wanted = preset("brackets", method).replace(run_dir=run_dir, **changes)
    assert asked == [wanted]


class Shown:
    sentences = ()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("grpo:", None),
        ("grpoo", "grpo"),
        ("grpo:clip", "no module 'grpo'"),
        ("grpo:clip_high=0.3,clip", "must be float like 0.2, got '0.3,clip'"),
        ("grpo:,clip", "no module .grpo. can be imported"),
        ("grpo:seed=3", "does not set itself"),
        ("grpo:clip_hih=0.3", "clip_high"),
        ("grpo:clip_high=much", "must be float"),
        ("grpo", "once each"),
    ],
)
def test_a_method_that_cannot_be_run_is_refused_before_any_is_begun(
    entry, message, tmp_path, monkeypatch
):
    monkeypatch.setattr(compare, "train_together", lambda *_: None)
    monkeypatch.setattr(compare, "compare_runs", lambda *_, **__: Shown())
    line = ["--methods", "grpo", entry, "--seeds", "1", "--run-dir", str(tmp_path)]
    if message is None:
        main(line)
        return
    with pytest.raises(ValueError, match=message):
        main(line)
