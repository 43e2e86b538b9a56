"""Settings: what is refused, and how hyperparameters are read."""

import dataclasses
import json
import math
from collections.abc import Sequence

import pytest
import training_runs

from rlvr_jax import methods, tasks
from rlvr_jax.runs import (
    TrainConfig,
    parse_config,
    preset,
)
from rlvr_jax.runs.composition import own_stage
from rlvr_jax.runs.hyperparameters import method_arguments
from rlvr_jax.runs.loading import load_policy
from rlvr_jax.runs.resolved import resolve, settle, with_rules, with_task
from rlvr_jax.runs.run_writer import write_json

BUDGET = 100


def arguments(config):
    """Hyperparameters of a run with a budget of `BUDGET` tokens."""
    return method_arguments(with_rules(config.replace(response_tokens=BUDGET)))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"steps": 0}, "--steps must be at least 1, got 0"),
        ({"samples_per_prompt": -1}, "--samples-per-prompt must be at least 1, got -1"),
        ({"response_tokens": -4}, "--response-tokens must be at least 0, got -4"),
        ({"seed": -1}, "--seed must be at least 0, got -1"),
        ({"learning_rate": -0.1}, "--learning-rate must be at least 0, got -0.1"),
        ({"learning_rate": float("nan")}, "--learning-rate must be at least 0, got nan"),
        ({"adam_b2": 1.0}, r"--adam-b2 must be in \[0, 1\), got 1.0"),
        (
            {"temperature": 0.0},
            "--temperature must be at least 1e-06, got 0.0; --top-k 1 is greedy",
        ),
        ({"top_p": 1.5}, r"--top-p must be in \(0, 1\], got 1.5"),
        ({"minibatches": 3}, "--minibatches must divide --prompts-per-step 16 .*, got 3"),
        ({"micro_batches": 5}, "micro-batches must divide the 128 rollouts of an update, got 5"),
        ({"sampling_batches": -1}, "--sampling-batches must be at least 0, got -1"),
        ({"rows_at_once": -1}, "--rows-at-once must be at least 0, got -1"),
        ({"method": "gropo"}, "closest: grpo.*'gropo'"),
        ({"hyperparameters": ("clip_low",)}, "must be name=value, got 'clip_low'"),
        ({"learning_rate": math.inf}, "--learning-rate must be finite, got inf"),
        ({"temperature": math.inf}, "--temperature must be finite, got inf"),
        ({"seed": 2**32}, "--seed must be below 2\\*\\*32, got 4294967296"),
        (
            {"hyperparameters": ("clip_lo=0.1",)},
            "--hyperparameters of grpo must be among .*'clip_lo'; closest: clip_low",
        ),
        ({"hyperparameters": ("clip_low=wide",)}, "must be float like 0.2, got 'wide'"),
        (
            {"method": "ace", "hyperparameters": ("gate=relu",)},
            "--hyperparameters of ace: gate must be a name of its method's file, .*'relu'",
        ),
        (
            {
                "method": "clip_cov",
                "hyperparameters": ("covariance_low=9", "covariance_high=1"),
            },
            "--hyperparameters of clip_cov: drop_high_covariance: low must be below high 1.0, got",
        ),
        (
            {"bitwise": True, "compute_dtype": "bfloat16"},
            "--bitwise must come with --compute-dtype float32, got bfloat16",
        ),
        ({"bitwise": True, "mesh": "data=8"}, "--bitwise must come with --mesh left out, got data"),
        ({"bitwise": True, "engine": "vllm"}, "must come with --engine left out, got vllm"),
        ({"bitwise": True, "top_p": 0.9}, "--bitwise must come with --top-p left out, got 0.9"),
    ],
)
def test_settings_that_cannot_work_are_refused_in_a_sentence(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        resolve(TrainConfig.of(**changes))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"sampling_batches": 3},
            "sampling-batches must be one of 1, 2, 4, 8, 16, 32, 64, 128 for 16 prompts x 8 samples"
            " on 1 shards of rows, got 3",
        ),
        (
            {"sampling_batches": 32, "mesh": "fsdp=8", "sample_mesh": "data=4,fsdp=2"},
            "one of 1, 2, 4, 8, 16 for .* on 8 shards of rows, got 32",
        ),
        (
            {"rows_at_once": 12, "mesh": "data=8"},
            "rows-at-once must be a multiple of the 8 devices that sample, got 12",
        ),
        (
            {"rows_at_once": 16, "mesh": "data=4,fsdp=2"},
            "rows-at-once must be 0 if --sample-mesh has other axes than data, got 16 on data",
        ),
        ({"lora_rank": 2, "lora_targets": ("keys",)}, "'keys'"),
    ],
)
def test_a_policy_is_not_loaded_with_settings_that_cannot_sample(changes, sentence):
    config = TrainConfig.of(**changes)
    with pytest.raises(ValueError, match=sentence):
        load_policy(config, tasks.load("brackets"), "nowhere")


@pytest.mark.parametrize("stored", ["config.json", "settings.json", "settings.toml"])
def test_a_run_starts_from_the_settings_of_a_file_and_flags_win(stored, tmp_path):
    first = parse_config(["--method", "gspo", "--steps", "7", "--no-preset", "--stop", "."])
    path = tmp_path / stored
    if stored == "config.json":
        write_json(path, {"settings": first.to_json(), "versions": {}})
    elif stored == "settings.json":
        write_json(path, first.to_json())
    else:
        path.write_text('method = "gspo"\nsteps = 7\nstop = ["."]\n')
    other = ["--config", str(path), "--no-preset", "--run-dir", str(tmp_path / "other")]
    assert parse_config(other) == first.replace(run_dir=tmp_path / "other")
    given = parse_config([*other, "--steps=9", "--hyperparameters", "clip_low=0.1"])
    assert (given.steps, given.hyperparameters) == (9, ("clip_low=0.1",))


def test_another_method_does_not_get_the_hyperparameters_of_the_file(tmp_path):
    write_json(tmp_path / "config.json", parse_config(["--method", "gspo"]).to_json())
    config = parse_config(["--config", str(tmp_path / "config.json"), "--method", "clip_cov"])
    assert config == preset("brackets", "clip_cov")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("stepz = 3", "'stepz' is not a setting; closest: steps"),
        ('steps = "three"', "--steps must be a whole number, got 'three'"),
        ("steps = 0", "--steps must be at least 1, got 0"),
        ('stop = "a"', "--stop must be a list or tuple, got 'a'"),
        ("task = 3", "--task must be a text, got 3"),
        ("verbose = 1", "--verbose must be True or False, got 1"),
        ("seed = ", "--config must be JSON or TOML"),
        ('method = "gropo"', "closest: grpo.*'gropo'"),
    ],
)
def test_a_file_with_settings_that_cannot_work_is_refused_in_a_sentence(text, sentence, tmp_path):
    (tmp_path / "settings.toml").write_text(text)
    with pytest.raises(ValueError, match=sentence):
        parse_config(["--config", str(tmp_path / "settings.toml")])


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (["--config"], "--config must be a file of settings, got no name"),
        (["--config", "nowhere.json"], "--config must be a file, got 'nowhere.json'"),
        (["--config", "a.json", "--resume"], "--config must be left out with --resume"),
    ],
)
def test_a_file_of_settings_that_cannot_be_used_is_refused_in_a_sentence(line, sentence):
    with pytest.raises(ValueError, match=sentence):
        parse_config(line)


def test_given_hyperparameters_win_over_the_preset_and_leave_its_others():
    line = ["--method", "dapo", "--hyperparameters", "max_rounds=5", "clip_low=0.1"]
    given = arguments(parse_config(line))
    assert given["max_rounds"] == 5 and given["clip_low"] == 0.1
    assert given["overlong_factor"] == 0


def my_loss(
    strength: float,
    low: float | None = None,
    high: "float | None" = 2,
    yes=True,
    weights: Sequence[float] | None = None,
    **more,
):
    """A method of one's own: only the command line is looked at."""


OWN = TrainConfig.of(method="training_runs:my_loss")


@pytest.fixture
def own(monkeypatch):
    """Makes it known by its name."""
    monkeypatch.setattr(training_runs, "my_loss", my_loss, raising=False)


def test_hyperparameters_are_read_by_their_annotations(own):
    given = ("strength=1", "low=.5", "high=None", "yes=false", "weights=1,.5")
    config = OWN.replace(hyperparameters=given)
    values = arguments(config)
    wanted = {"strength": 1.0, "low": 0.5, "high": None, "yes": False, "weights": (1.0, 0.5)}
    assert values == wanted


@pytest.mark.parametrize(
    ("pairs", "sentence"),
    [
        ((), "must set strength of training_runs:my_loss, which has no default, got none"),
        (("strength=much",), "--hyperparameters of .*: strength must be float, got 'much'"),
        (("high=much",), "high must be float or None like 2, got 'much'"),
        (("weights=1,,2",), "weights must be numbers with commas between them, got '1,,2'"),
    ],
)
def test_hyperparameters_that_are_missing_or_cannot_be_read_are_named(own, pairs, sentence):
    with pytest.raises(ValueError, match=sentence):
        arguments(OWN.replace(hyperparameters=pairs))


@pytest.mark.parametrize(
    ("method", "pair", "label"),
    [
        ("intrinsic_rewards", "signal=majority_vote", "agreement"),
        ("intrinsic_rewards", "signal=certainty_of_entropy", "certainty_of_entropy"),
        ("spurious_rewards", "control=column(1)", "column(number=1)"),
        ("spurious_rewards", "control=random_reward(chance=0.1)", "random_reward(chance=0.1)"),
        ("spurious_rewards", "control=training_runs:my_loss", "my_loss"),
    ],
)
def test_hyperparameters_that_are_parts_are_found_by_their_names(own, method, pair, label):
    config = TrainConfig.of(method=method, hyperparameters=(pair,))
    assert label in str(arguments(config)[pair.partition("=")[0]])


def test_a_part_that_is_named_decides_what_is_learned():
    config = TrainConfig.of(method="length_rewards", hyperparameters=("form=linear",))
    recipe = methods.recipe("length_rewards", **arguments(config))
    assert any("excess" in label for label in recipe.experience.labels)


@pytest.mark.parametrize(
    ("pair", "sentence"),
    [
        ("control=colum(1)", "control must be a name of its .* closest: column, .*'colum'"),
        ("control=column(1", "must be a name, or a name followed by .* got 'column\\(1'"),
        ("control=column(open)", "followed by numbers or texts in brackets, got 'column\\(open"),
        ("control=column(1)(2)", "followed by numbers or texts in brackets, got 'column\\(1"),
        ("control=column(**{})", "followed by numbers or texts in brackets"),
        ("control=column()", "must have arguments that column takes, got 'column\\(\\)'"),
        ("control=no_module:f", "no module 'no_module' can be imported"),
    ],
)
def test_parts_that_cannot_be_found_are_refused_in_a_sentence(pair, sentence):
    config = TrainConfig.of(method="spurious_rewards", hyperparameters=(pair,))
    with pytest.raises(ValueError, match=sentence):
        arguments(config)


def test_lengths_of_a_method_follow_the_budget_unless_they_are_given():
    config = TrainConfig.of(method="dapo")
    values = arguments(config)
    assert (values["max_length"], values["cache_length"]) == (BUDGET, 20)
    config = TrainConfig.of(method="dapo", hyperparameters=("max_length=50",))
    assert arguments(config)["max_length"] == 50


def test_a_schedule_over_the_run_follows_its_steps_unless_it_is_given():
    config = TrainConfig.of(method="d3s", steps=70)
    assert arguments(config)["total_steps"] == 70
    config = config.replace(hyperparameters=("total_steps=50",))
    assert arguments(config)["total_steps"] == 50


@pytest.mark.parametrize(
    ("method", "values"),
    [
        ("mdpo", {"num_steps": 300, "updates_per_step": 4}),
        ("capo_curvature", {"learning_rate": 3e-4, "top_k": 5}),
        ("mmr1_vas", {"refresh": 37}),
    ],
)
def test_numbers_of_the_run_are_taken_from_it_and_not_from_a_preset(method, values):
    config = preset("brackets", method)
    assert values.items() <= arguments(config).items()
    other = config.replace(steps=7, epochs=3, learning_rate=None)
    own = arguments(other)
    known = {"num_steps": 7, "updates_per_step": 12, "learning_rate": 1e-6, "top_k": 5}
    known["refresh"] = 1
    assert {name: own[name] for name in values} == {name: known[name] for name in values}


def test_what_dapo_charges_cut_responses_is_learned_from():
    assert not preset("gsm8k", "dapo").sampling.mask_truncated
    assert preset("gsm8k", "grpo").sampling.mask_truncated


def test_updates_of_a_step_are_counted_from_the_settings():
    assert TrainConfig.of(minibatches=4, epochs=2, steps=300).plan.updates == 8


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ({}, "learning_rate", 1e-6),
        ({"lora_rank": 8}, "learning_rate", 2e-5),
        ({"lora_rank": 8, "learning_rate": 3e-6}, "learning_rate", 3e-6),
        ({"steps": 300}, "evaluate_every", 30),
        ({"steps": 5}, "evaluate_every", 1),
        ({"steps": 300, "evaluate_every": 7}, "evaluate_every", 7),
        ({"method": "ppo", "learning_rate": 1e-3}, "critic_learning_rate", 5e-3),
        ({"critic_learning_rate": 0.0}, "critic_learning_rate", 0.0),
        ({}, "sampling_batches", 1),
    ],
)
def test_a_setting_that_is_a_rule_gets_its_value_once(given, name, value):
    config = TrainConfig.of(**given)
    settled, _ = settle(with_rules(config), methods.recipe(config.method))
    assert settled.flat[name] == value


def test_a_task_gives_what_the_settings_leave_open():
    task = tasks.load("brackets")
    config = with_task(TrainConfig(), task)
    assert (config.policy.model, config.sampling.response_tokens) == (
        task.base_model,
        task.response_tokens,
    )
    given = TrainConfig.of(model="elsewhere", response_tokens=7)
    assert with_task(given, task) == given
    with pytest.raises(ValueError, match="task 'brackets', which has none"):
        with_task(TrainConfig(), dataclasses.replace(task, base_model=""))


@pytest.mark.thorough
def test_a_run_that_may_run_programs_unguarded_says_so(monkeypatch, tmp_path):
    allowed = []
    monkeypatch.setattr("rlvr_jax.sandbox.allow_unsafe_local", lambda: allowed.append(True))
    policy = training_runs.write_policy(tmp_path / "policy")
    for unsafe in (False, True):
        config = training_runs.settings(policy, tmp_path / str(unsafe), unsafe_local=unsafe)
        training_runs.quietly(config.replace(steps=1, evaluation_samples=1))
        stored = json.loads((tmp_path / str(unsafe) / "config.json").read_text())
        assert stored["settings"]["unsafe_local"] is unsafe and bool(allowed) is unsafe


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("stages", "--stage must be module:function, got 'stages'"),
        ("no_module:f", "--stage: no module 'no_module' can be imported, got 'no_module:f'"),
        ("training_runs:sums:offst=1", "--stage training_runs:sums must be among offset, got 'off"),
        (
            "training_runs:at_call",
            "--stage training_runs:at_call must set the arguments number, action",
        ),
        ("training_runs:sums", "--stage training_runs:sums must return a Stage, got Task"),
    ],
)
def test_a_stage_that_cannot_be_made_is_named_with_its_flag(name, sentence):
    with pytest.raises(ValueError, match=sentence):
        own_stage(name)
