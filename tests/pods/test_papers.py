"""Published settings: each can be read, says where its numbers stand, and runs on a laptop."""

import importlib
import json
import pkgutil

import pytest

from experiments import papers
from rlvr_jax import methods
from rlvr_jax.methods.arguments import AGGREGATIONS
from rlvr_jax.parallel.topologies import Topology
from rlvr_jax.pods import compiled, papers as runs
from rlvr_jax.policy.published import PUBLISHED
from rlvr_jax.runs.hyperparameters import method_arguments

NAMES = sorted(module.name for module in pkgutil.iter_modules(papers.__path__))
# One of each kind: plain, and with what comes before the loss.
QUICK = ("dr_grpo_1p5b",)


def paper_of(name):
    return importlib.import_module(f"experiments.papers.{name}").PAPER


def test_there_are_the_settings_that_people_ask_for():
    assert len(NAMES) >= 9
    assert {paper_of(name).method for name in NAMES} >= {
        *("clip_cov", "kl_cov", "dapo", "gspo", "forking_tokens", "dr_grpo", "grpo"),
        *("entropy_bonus", "luffy_mixed", "delethink"),
    }


@pytest.mark.parametrize("name", NAMES)
def test_every_number_has_a_source_and_can_be_a_setting(name):
    paper = paper_of(name)
    assert paper.name == name
    assert paper.model in PUBLISHED
    assert all(each.source for each in {**paper.settings, **paper.hyperparameters}.values())
    needed = {"prompts_per_step", "samples_per_prompt", "minibatches", "prompt_tokens"}
    needed |= {"response_tokens", "learning_rate", "steps"}
    assert needed <= paper.settings.keys()
    config = runs.settings(paper)
    for setting, each in paper.settings.items():
        assert config.flat[setting] == each.value
    arguments = method_arguments(config)
    for hyperparameter, each in paper.hyperparameters.items():
        wanted = AGGREGATIONS[each.value]() if hyperparameter == "aggregation" else each.value
        assert arguments[hyperparameter] == wanted
    methods.recipe(config.method, **arguments)
    assert f"{paper.settings['learning_rate'].value!s}" in str(paper)


def assert_it_runs(name, tmp_path):
    runs.run_paper(paper_of(name), ["--laptop", "--run-dir", str(tmp_path / name)])
    card = json.loads((tmp_path / name / "config.json").read_text())
    assert card["method"] == paper_of(name).method
    assert json.loads((tmp_path / name / "summary.json").read_text())["steps"] == 2


@pytest.mark.thorough
@pytest.mark.parametrize("name", QUICK)
def test_it_runs_on_a_laptop(name, tmp_path):
    assert_it_runs(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name not in QUICK])
def test_all_run_on_a_laptop(name, tmp_path):
    assert_it_runs(name, tmp_path)


def test_what_is_given_wins_over_the_paper(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(runs, "train", asked.append)
    monkeypatch.setattr(runs, "describe_end", lambda *_: "")
    place = ["--run-dir", str(tmp_path / "run"), "--model", "folder"]
    runs.run_paper(
        paper_of("dapo_32b"),
        ["--data", "jsonl:mine.jsonl", *place, "--steps", "9", "--hyperparameters", "max_rounds=2"],
    )
    (config,) = asked
    assert (config.data.task, config.policy.model, config.steps) == (
        "jsonl:mine.jsonl",
        "folder",
        9,
    )
    assert config.sampling.prompts_per_step == 512 and config.method == "dapo"
    assert "max_rounds=2" in config.hyperparameters and "clip_high=0.28" in config.hyperparameters


def test_a_slice_is_asked_with_the_settings_of_the_paper(monkeypatch, capsys):
    asked = []

    def compile_run(config, shape, topology):
        asked.append((config, shape, topology.name))
        return {"fits": len(asked) > 1}

    monkeypatch.setattr(runs, "compile_run", compile_run)
    monkeypatch.setattr(runs, "describe_report", str)
    paper = paper_of("dr_grpo_1p5b")
    assert runs.run_paper(paper, ["--compile", "v5e-256"]) == 1
    assert runs.run_paper(paper, ["--compile", "v5e-256"]) == 0
    config, shape, name = asked[0]
    assert (config.sampling.response_tokens, config.policy.compute_dtype) == (3000, "bfloat16")
    assert shape == PUBLISHED["qwen2.5-1.5b"] and name == "v5e-256"
    with pytest.raises(ValueError, match="v5e-7"):
        runs.run_paper(paper, ["--compile", "v5e-7"])


class _ReadyToCompile(Exception):
    pass


@pytest.mark.thorough
@pytest.mark.parametrize("topology", ["v5e-256", "v5p-64"])
@pytest.mark.parametrize("name", NAMES)
def test_a_slice_of_the_table_has_a_mesh_for_every_paper(name, topology, monkeypatch):
    def ready(config, *_):
        raise _ReadyToCompile(config.devices.mesh)

    monkeypatch.setattr(compiled, "abstract_run", ready)
    monkeypatch.setattr(Topology, "devices", lambda self: [])
    with pytest.raises(_ReadyToCompile, match="="):
        runs.compiled(paper_of(name), topology)


def test_options_win_over_the_paper_where_it_is_compiled(monkeypatch):
    asked = []
    monkeypatch.setattr(runs, "compile_run", lambda config, *_: asked.append(config) or {"fits": 1})
    options = ["--mesh", "fsdp=128,data=2", "--response-tokens", "4096"]
    assert runs.run_paper(paper_of("dapo_32b"), ["--compile", "v5e-256", "--json", *options]) == 0
    (config,) = asked
    assert (config.devices.mesh, config.sampling.response_tokens) == ("fsdp=128,data=2", 4096)
    assert config.sampling.prompts_per_step == 512


@pytest.mark.parametrize("name", NAMES)
def test_what_its_source_does_not_name_is_shown_as_unknown(name):
    paper = paper_of(name)
    lines = {line.split()[0]: line for line in str(paper).splitlines() if line[:2] == "  "}
    config = runs.settings(paper)
    for setting in ("adam_b2", "weight_decay", "mask_truncated", "max_gradient_norm"):
        assert str(config.flat[setting]) in lines[setting]
        assert ("unknown" in lines[setting]) or setting in paper.settings
    assert method_arguments(config).keys() <= lines.keys()


@pytest.mark.parametrize("name", NAMES)
def test_help_tells_what_the_data_is_and_where_the_numbers_stand(name, capsys):
    with pytest.raises(SystemExit):
        runs.run_paper(paper_of(name), ["--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "jsonl:FILE, json:FILE, csv:FILE or parquet:FILE" in told
    assert all(
        name in told and each.source in told for name, each in paper_of(name).settings.items()
    )


def test_nothing_to_do_is_said():
    with pytest.raises(ValueError, match="one of --data, --compile and --laptop must be given"):
        runs.run_paper(paper_of("gspo_8b"), [])
