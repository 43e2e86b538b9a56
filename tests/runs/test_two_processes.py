"""A run on two processes: killed, told to stop, resumed, and equal to that of one process."""

import signal
import socket
import subprocess
import sys
import time

import pytest
import training_runs

from rlvr_jax.runs import TrainConfig

pytestmark = pytest.mark.slow

MESHES = ["data=2", "tensor=2"]


class Job:
    """A run on some processes, all with the same command, and two devices together."""

    def __init__(self, config, processes, folder):
        self.run_dir = config.run_dir
        command = [sys.executable, training_runs.__file__, *training_runs.arguments(config)]
        common = training_runs.environment() | {
            "JAX_COMPILATION_CACHE_DIR": str(folder / f"compiled{processes}"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.2",
        }
        common["XLA_FLAGS"] += f" --xla_force_host_platform_device_count={2 // processes}"
        if processes > 1:
            with socket.socket() as free:
                free.bind(("localhost", 0))
                common["JAX_COORDINATOR_ADDRESS"] = f"localhost:{free.getsockname()[1]}"
        self.said = [folder / f"said{number}.txt" for number in range(processes)]
        self.handles = []
        for number, path in enumerate(self.said):
            own = {"JAX_NUM_PROCESSES": str(processes), "JAX_PROCESS_ID": str(number)}
            environment = common | (own if processes > 1 else {})
            with path.open("w") as file:
                self.handles.append(
                    subprocess.Popen(command, env=environment, stdout=file, stderr=file)
                )

    def wait(self):
        """Exit codes of all processes."""
        return [handle.wait(timeout=900) for handle in self.handles]

    def wait_for_lines(self, count):
        """Until the curves have that many lines; the run must not end before."""
        path = self.run_dir / "metrics.jsonl"
        while not path.exists() or path.read_bytes().count(b"\n") < count:
            assert all(handle.poll() is None for handle in self.handles)
            time.sleep(0.01)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A policy whose vocabulary two devices can share."""
    return training_runs.write_policy(tmp_path_factory.mktemp("policy"))


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return tmp_path_factory.mktemp("processes")


def settings_of(model, run_dir, mesh, **changes):
    return training_runs.settings(
        model,
        run_dir,
        **dict(method="grpo", minibatches=2, steps=8, checkpoint_every=2) | changes,
        mesh=mesh,
        evaluate_every=4,
    )


def uninterrupted(model, shared, mesh):
    """The directory of a run of two processes that nobody stopped."""
    run_dir = shared / mesh
    if not run_dir.exists():
        job = Job(settings_of(model, run_dir, mesh), 2, shared)
        assert job.wait() == [0, 0], [path.read_text() for path in job.said]
        assert "held_out_pass_at_1_end" in job.said[0].read_text()
        assert "held_out_pass_at_1_end" not in job.said[1].read_text()
    return run_dir


@pytest.mark.parametrize("mesh", MESHES)
def test_two_processes_give_the_run_of_one(model, shared, tmp_path, mesh):
    run_dir = uninterrupted(model, shared, mesh)
    assert Job(settings_of(model, tmp_path / "run", mesh), 1, shared).wait() == [0]
    # A sum of two numbers is the same in either order.
    assert training_runs.contents(tmp_path / "run") == training_runs.contents(run_dir)


def test_two_processes_that_sample_in_batches_give_the_same_bytes(model, shared, tmp_path):
    wanted = training_runs.contents(uninterrupted(model, shared, "data=2"))
    job = Job(settings_of(model, tmp_path / "run", "data=2", sampling_batches=4), 2, shared)
    assert job.wait() == [0, 0], [path.read_text() for path in job.said]
    assert training_runs.contents(tmp_path / "run") == wanted


def test_two_processes_that_are_killed_go_on_to_the_same_bytes(model, shared, tmp_path):
    wanted = training_runs.contents(uninterrupted(model, shared, "data=2"))
    job = Job(settings_of(model, tmp_path / "run", "data=2"), 2, shared)
    job.wait_for_lines(5)
    for handle in job.handles:
        handle.send_signal(signal.SIGKILL)
    assert job.wait() == [-signal.SIGKILL] * 2
    job = Job(settings_of(model, tmp_path / "run", "data=2", resume=True), 2, shared)
    assert job.wait() == [0, 0], [path.read_text() for path in job.said]
    assert training_runs.contents(tmp_path / "run") == wanted


@pytest.mark.parametrize(("told", "number"), [(1, signal.SIGTERM), (0, signal.SIGINT)])
def test_one_that_is_told_to_stop_stops_all_with_their_state_saved(
    model, shared, tmp_path, told, number
):
    job = Job(settings_of(model, tmp_path / "run", "data=2", steps=200), 2, shared)
    job.wait_for_lines(2)
    job.handles[told].send_signal(number)
    assert job.wait() == [130, 130], [path.read_text() for path in job.said]
    assert all("; continue with --resume" in path.read_text() for path in job.said)
    steps = [row["step"] for row in training_runs.metrics(tmp_path / "run")]
    assert steps == list(range(len(steps))) and len(steps) < 200
    last = max(int(path.name) for path in (tmp_path / "run/checkpoints").iterdir())
    assert last == steps[-1]
    job = Job(
        settings_of(model, tmp_path / "run", "data=2", steps=last + 1, resume=True), 2, shared
    )
    assert job.wait() == [0, 0], [path.read_text() for path in job.said]
    assert len(training_runs.metrics(tmp_path / "run")) == len(steps) + 1


@pytest.mark.parametrize("method", ["delethink", "ghpo", "mmr1_vas", "rorecomp", "spec_rl"])
def test_two_processes_have_the_experience_of_one(shared, tmp_path, method):
    """Every kind of part: chunks, redraws, ratings, further updates, drafts."""

    def config(name):
        return TrainConfig.of(
            task="hinted_brackets:train=24",
            method=method,
            run_dir=tmp_path / name,
            mesh="data=2",
            steps=4,
            prompts_per_step=8,
            samples_per_prompt=4,
            evaluation_prompts=4,
            evaluation_samples=4,
            evaluate_every=4,
            mask_truncated=False,
            learning_rate=1e-3,
            warmup_updates=0,
        )

    for processes in (1, 2):
        job = Job(config(str(processes)), processes, shared)
        assert job.wait() == [0] * processes, [path.read_text() for path in job.said]
    one, two = (tmp_path / name for name in "12")
    assert training_runs.contents(one) == training_runs.contents(two)
    assert (one / "outcomes.jsonl").read_bytes() == (two / "outcomes.jsonl").read_bytes()


def test_two_processes_share_the_questions_and_hear_all_replies(model, tmp_path):
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("{response} =")
    told = []
    for processes in (1, 2):
        folder = tmp_path / str(processes)
        folder.mkdir()
        config = training_runs.settings(
            model,
            folder / "run",
            method="rlbff",
            judge="own_judges:longer",
            judge_prompt=str(prompt),
            mesh="data=2",
            steps=2,
        )
        assert Job(config, processes, folder).wait() == [0] * processes
        lines = training_runs.metrics(config.run_dir)
        judged = [{n: x for n, x in line.items() if "judge" in n} for line in lines]
        replies = (config.run_dir / "judge.jsonl").read_text().splitlines()
        told.append((judged, sorted(replies)))
    assert told[0] == told[1] and told[0][0][-1]["experience/judge_calls"] > 0
