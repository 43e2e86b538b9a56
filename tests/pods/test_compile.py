"""Runs compiled from shapes, and the command, on host devices.

With PyPI's `libtpu` in the version that `jax[tpu]` asks for, the slow ones compile for TPUs.
"""

import dataclasses
import itertools
import json
import math
from pathlib import Path

import jax
import pytest
from everyday import everyday

from rlvr_jax import methods
from rlvr_jax.parallel.report import describe_report
from rlvr_jax.parallel.topologies import TESTED, describe
from rlvr_jax.pods import compile as command, compiled
from rlvr_jax.pods.abstract import abstract_run
from rlvr_jax.pods.compile_table import ROWS
from rlvr_jax.pods.compiled import compile_run
from rlvr_jax.policy import named_config
from rlvr_jax.policy.hugging_face import to_hugging_face
from rlvr_jax.policy.parameters import parameter_shapes
from rlvr_jax.runs.config import TrainConfig

SMALL = ["--prompts", "8", "--samples", "4", "--prompt-len", "6", "--response-len", "20"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Path of a config.json: two layers, 64 words."""
    path = tmp_path_factory.mktemp("model") / "config.json"
    config = named_config("tiny", vocab_size=64, qkv_bias=True)
    path.write_text(json.dumps(to_hugging_face(config)))
    return str(path)


def run(capsys, *arguments):
    """Exit code, what was printed, and what was said on stderr."""
    code = command.main([str(argument) for argument in arguments])
    return code, *capsys.readouterr()


KEYS = {
    "fits",
    "model",
    "topology",
    "prompts",
    "samples",
    "prompt_len",
    "response_len",
    "hbm_bytes",
    "sample_bytes",
    "update_bytes",
    "programs",
}


@pytest.mark.slow
def test_a_run_is_compiled_for_eight_devices(capsys, model):
    code, out, err = run(capsys, "cpu:8", "--model", model, *SMALL, "--json")
    assert (code, err) == (0, "")
    report = json.loads(out)
    assert report.keys() >= KEYS
    assert report["fits"]
    sizes = [report[name] for name in ("prompts", "samples", "prompt_len", "response_len")]
    assert sizes == [8, 4, 6, 20]
    assert report["mesh"] == "fsdp=8"
    programs = report["programs"]
    assert programs.keys() == {"sample", "score", "update"}  # GRPO has a reference
    assert "scoring" in describe_report(report)
    for name, program in programs.items():
        assert report[f"{name}_bytes"] == program["bytes"] == sum(program["parts"].values())
        assert min(program["parts"].values()) >= 0
        assert program["flops"] > 0
        assert program["compile_seconds"] > 0
    parameters = sum(x.size for x in jax.tree.leaves(parameter_shapes(command._shape_of(model))))
    held = programs["update"]["parts"]
    # float32 parameters and two moments, an eighth on each device; the step counts are beside them.
    assert held["parameters"] == pytest.approx(4 * parameters / 8, rel=0.2)
    assert held["optimizer"] == pytest.approx(2 * held["parameters"], rel=0.01)
    assert programs["update"]["collectives"]["all-gather"]["count"] > 0
    sampling_batch = programs["sample"]
    assert (
        sampling_batch["sampling_batches"] * sampling_batch["prompts"] * sampling_batch["samples"]
        == 32
    )
    assert report["sampling_batches"] == sampling_batch["sampling_batches"]


@pytest.mark.slow
def test_the_critic_of_a_run_is_compiled_for_eight_devices(capsys, model):
    code, out, err = run(capsys, "cpu:8", "--model", model, *SMALL, "--method", "ppo", "--json")
    assert (code, err) == (0, "")
    report = json.loads(out)
    assert report["fits"]
    assert report["programs"].keys() == {"sample", "update", "critic"}
    assert "the critic's update" in describe_report(report)
    critic, update = (report["programs"][name] for name in ("critic", "update"))
    assert critic["parts"]["critic"] == update["parts"]["critic (beside the program)"]
    assert 0 < critic["flops"] < update["flops"]


@pytest.mark.slow
def test_the_programs_compute_the_opening_of_an_experiment_s_prompts_once(monkeypatch):
    told = []
    monkeypatch.setattr(command, "shared_opening", lambda tables: 2)
    monkeypatch.setattr(command, "compile_run", lambda *given: told.append(given) or {"fits": 1})
    assert command.main(["cpu:8", "--json", "--experiment", "--task", "brackets"]) == 0
    assert told[0][-1] == 2

    def flops(opening):
        config = TrainConfig.of(
            prompts_per_step=4,
            samples_per_prompt=2,
            prompt_tokens=8,
            response_tokens=2,
            micro_batches=1,
            mesh="data=1",
        )
        shape, recipe = named_config("tiny", vocab_size=64), methods.recipe("grpo")
        made = abstract_run(config, shape, recipe, jax.devices()[:1], opening)
        lowered = made.lower_sample(4, 2), made.lower_score(), made.lower_update()
        return [each.cost_analysis()["flops"] for each in lowered]

    for once, each in zip(flops(6), flops(0), strict=True):
        assert once < 0.8 * each


@pytest.mark.thorough
def test_rows_that_are_drawn_in_turn_are_compiled_so(monkeypatch):
    """A cache is of those that are computed at the same time; how long all take is not known."""
    asked = []

    def told(lowered, target, counted, *others):
        size = lowered.compile().memory_analysis().temp_size_in_bytes if not asked else 0
        asked.append((size, counted.buffers))
        parts = {"temporaries": size, "output": 0}
        seconds = dict(compiler_seconds=1.0, roofline_seconds=1.0)
        return {"fits": True, "bytes": 0, "parts": parts, **seconds}

    monkeypatch.setattr(compiled, "measured", told)

    def sampling(slots):
        asked.clear()
        sizes = dict(
            prompts_per_step=4, samples_per_prompt=8, sampling_batches=1, rows_at_once=slots
        )
        lengths = dict(prompt_tokens=8, response_tokens=256)
        config = TrainConfig.of(method="dr_grpo", mesh="data=1", **sizes, **lengths)
        report = compile_run(config, named_config("tiny", vocab_size=64), describe("cpu:1"))
        return *asked[0], report

    (size, buffers, whole), (less, fewer, turns) = sampling(0), sampling(4)
    assert fewer["cache"] == buffers["cache"] // 8
    of_whole, of_turns = (each["programs"]["sample"] for each in (whole, turns))
    saved = of_whole["parts"]["cache"] - of_turns["parts"]["cache"]
    assert size - less > 0.5 * saved > 0
    assert "compiler_seconds" in of_whole and "compiler_seconds" not in of_turns
    assert "step_compiler_seconds" in whole and "step_compiler_seconds" not in turns
    assert turns["rows_at_once"] == 4


def lowered_with(monkeypatch, **settings):
    """Of each program of a small run the bytes of its arguments, and those that are said to be
    given and to lie beside them. The programs are lowered and not compiled."""
    asked = []

    def told(lowered, target, counted, *others):
        shapes = jax.tree.leaves(lowered.args_info)
        size = sum(math.prod(x.shape) * x.dtype.itemsize for x in shapes)
        asked.append((size, counted.given, counted.rest))
        return {"fits": True, "bytes": 0}

    monkeypatch.setattr(compiled, "measured", told)
    config = TrainConfig.of(
        prompts_per_step=2,
        samples_per_prompt=2,
        prompt_tokens=4,
        response_tokens=2,
        mesh="data=1",
        **settings,
    )
    compile_run(config, named_config("tiny", vocab_size=64), describe("cpu:1"))
    return asked


@pytest.mark.thorough
@pytest.mark.parametrize("adapters", everyday([{}, {"lora_rank": 2}], {}))
def test_a_critic_is_updated_by_a_program_of_its_own_and_lies_beside_the_others(
    adapters, monkeypatch
):
    asked = lowered_with(monkeypatch, method="ppo", **adapters)
    (_, *sample), (_, *update), (size, given, rest) = asked
    critic = given["critic"]
    assert given.keys() == {"critic"} and critic <= size < 1.1 * critic
    # All weights with their two moments, also where the policy has adapters.
    weights = update[0]["parameters"] if not adapters else update[0]["frozen weights"]
    assert critic == pytest.approx(3 * weights, rel=0.01)
    for held in (sample, update):
        assert held[1]["critic"] == critic
        assert sum(map(sum, (each.values() for each in held))) == sum(rest.values()) + critic


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("method", "minibatches", "scored"),
    [("dr_grpo", 2, {"parameters", "frozen weights"}), ("grpo", 1, {"frozen weights"})],
)
def test_what_lies_below_adapters_is_counted_once(method, minibatches, scored, monkeypatch):
    asked = lowered_with(monkeypatch, method=method, minibatches=minibatches, lora_rank=2)
    (_, *sample), (_, given, rest), (_, *update) = asked
    assert given.keys() == scored
    base = given["frozen weights"]
    for held in (sample, (given, rest), update):
        assert sum(map(sum, (each.values() for each in held))) == sum(update[0].values())
    for size, given, _ in asked:
        # Beside what lies there all the time, a program is given some rows.
        assert 0 <= size - sum(given.values()) < base / 2


def test_the_faster_dtype_is_that_of_the_slice_and_not_of_this_machine(monkeypatch):
    monkeypatch.setattr(compiled, "measured", lambda *_, **__: {"fits": True, "bytes": 0})
    sizes = dict(prompts_per_step=2, samples_per_prompt=2, prompt_tokens=4, response_tokens=2)
    config = TrainConfig.of(method="dr_grpo", mesh="data=1", sampling_batches=1, **sizes)
    shape, slice_ = named_config("tiny", vocab_size=64), describe("cpu:1")
    report = compile_run(config.replace(compute_dtype="auto"), shape, slice_)
    assert report["compute_dtype"] == "bfloat16"


def test_sampling_batches_that_are_not_given_are_halved_until_one_fits(monkeypatch):
    fits = itertools.chain([False, False], itertools.repeat(True))

    def measured(*_, **__):
        parts = {"temporaries": 0, "output": 0}
        seconds = dict(compiler_seconds=1.0, roofline_seconds=1.0)
        return {"fits": next(fits), "bytes": 0, "parts": parts, **seconds}

    monkeypatch.setattr(compiled, "measured", measured)
    sizes = dict(prompts_per_step=4, samples_per_prompt=8, prompt_tokens=8, response_tokens=16)
    config = TrainConfig.of(method="dr_grpo", mesh="data=1", **sizes)
    report = compile_run(config, named_config("tiny", vocab_size=64), describe("cpu:1"))
    assert report["sampling_batches"] == 4


@pytest.mark.thorough
def test_an_experiment_that_does_not_fit_ends_in_exit_code_1_and_names_the_largest_buffers(
    capsys, monkeypatch
):
    small = dataclasses.replace(describe("cpu:8"), hbm_bytes=100_000)
    monkeypatch.setattr(command, "describe", lambda name: small)
    line = "--task brackets --method clip_cov --prompts-per-step 8 --minibatches 1"
    line += " --sampling-batches 2 --mesh data=2,fsdp=4"
    code, out, err = run(capsys, "cpu:8", "--experiment", *line.split())
    assert code == 1
    assert "8 prompts x 8 responses, 5 + 24 tokens; the run's options:\n" in out
    assert "  --mesh data=2,fsdp=4 --sample-mesh data=2,fsdp=4 --sampling-batches 2 --micro" in out
    assert "  2 sampling batches of 8 prompts x 4 responses" in out
    for part in ("sampling: ", "update: ", "parameters", "optimizer", "cache"):
        assert part in out
    assert "scoring" not in out  # Clip-Cov has no reference
    assert "DOES NOT FIT" in out
    assert "gradient, and that of a micro-batch: more fsdp" in out
    assert out.endswith("\ndoes not fit\n")
    assert "compiling the update" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["v9-8", "--model", "qwen2.5-7b"], "must be one of v4, v5e, v5p, v6e, tpu7x with a size"),
        (["v5e-9", "--model", "qwen2.5-7b"], "v5e comes with 1, 4, 8, 16, 32, 64, 128, 256 chips"),
        (["v5p-4", "--model", "qwen2.5-7b"], "v5p comes with 8, 16"),
        (["v5e", "--model", "qwen2.5-7b"], "with a size, like v5e-256"),
        (["cpu:8", "--model", "qwen9"], "model must be one of qwen2.5-0.5b"),
        (["v5e-8", "--model", "qwen2.5-7b", "--mesh", "fsdp=16"], "8 devices of v5e-8"),
        (["cpu:8"], "either --model, or --experiment"),
        (["cpu:64", "--model", "qwen2.5-7b"], "at most the 8 devices"),
        (
            ["cpu:8", "--model", "qwen2.5-7b", "--mesh", "fsdp=3"],
            "multiply to the 8 devices of cpu:8",
        ),
        (["cpu:8", "--model", "qwen2.5-7b", "--mesh", "tensor=8", "--method", "grop"], "grpo"),
        (["cpu:8", "--model", "qwen2.5-7b", "--response-len", "999999"], "at most 131072"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence_before_anything_is_compiled(
    capsys, arguments, message
):
    assert jax.device_count() == 8  # once they are counted, there are no others
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err


def test_a_mesh_that_does_not_divide_the_model_is_refused(capsys, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(to_hugging_face(named_config("tiny", vocab_size=13))))
    code, _, err = run(capsys, "cpu:8", "--model", path, *SMALL, "--mesh", "tensor=8")
    assert code == 2
    assert "tensor must divide vocab = 13" in err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "beside"),
    [
        pytest.param("mdpo", "second policy", id="a second policy's distribution"),
        pytest.param("prerl", None, id="a second prompt"),
        pytest.param("hpt", None, id="rows of a teacher"),
        pytest.param("expert_iteration", None, id="supervised rows"),
        pytest.param("small_recipes:distilled", None, id="a teacher"),
    ],
)
@pytest.mark.parametrize("topology", ["cpu:8", "v5e-8"])
def test_updates_that_read_more_than_one_context_are_compiled(
    capsys, model, topology, method, beside
):
    if topology != "cpu:8":
        pytest.importorskip("libtpu")
    shape = model if topology == "cpu:8" else "qwen2.5-0.5b"
    options = ["--model", shape, *SMALL, "--method", method, "--json"]
    with jax.enable_x64(topology == "cpu:8"):
        code, out, err = run(capsys, topology, *options)
    assert (code, err) == (0, "")
    update = json.loads(out)["programs"]["update"]
    assert update["flops"] > 0
    assert beside is None or update["parts"][beside] > 0


def test_without_libtpu_the_way_to_install_it_is_said(capsys, monkeypatch):
    def absent(*arguments, **options):
        raise RuntimeError("JAX TPU support not installed")

    monkeypatch.setattr("jax.experimental.topologies.get_topology_desc", absent)
    code, _, err = run(capsys, "v5e-8", "--model", "qwen2.5-0.5b")
    assert code == 2
    assert "pip install libtpu" in err


def test_versions_that_were_not_tried_are_warned_of():
    report = {"model": "m", "method": "grpo", "topology": "v5e-8", "devices": 8, "hbm_bytes": 1}
    report |= dict.fromkeys(("prompts", "samples", "prompt_len", "response_len"), 1)
    report |= dict.fromkeys(
        ("mesh", "sample_mesh", "sampling_batches", "micro_batches", "remat", "compute_dtype"), "x"
    )
    report |= {"programs": {}, "fits": True}

    def told(**versions):
        return describe_report(report | {"versions": {"jax": "0.10.2"} | versions})

    assert "jax 0.10.2, libtpu 0.0.51\n" in told(libtpu="0.0.51")
    assert "warning" not in told(libtpu="0.0.51")
    assert "warning: tested with libtpu 0.0.42.1 and 0.0.51, not with 9.9" in told(libtpu="9.9")
    assert "warning: tested with jax 0.10.2, not with 9.9" in told(jax="9.9")
    program = dict(fits=True, bytes=1, flops=1, hand_bytes=1, compile_seconds=1)
    program |= dict.fromkeys(("roofline_seconds", "compiler_seconds", "collective_seconds"), 1)
    program |= {"roofline_limit": "flops", "loops_counted_once": ["decode/while", "sort"]}
    program |= {"not_estimated": ["scatter-add f32[8]"], "move_seconds": 0.5}
    report["programs"] = {"update": program}
    assert "loops of unknown length, counted once: decode/while, sort\n" in told()
    assert "operations without an estimate, counted as 0: scatter-add f32[8]\n" in told()
    assert "of the estimate, gathers, scatters, sorts at their roofline: 0.5 s\n" in told()
    assert "jax 0.10.2\n" in told(libtpu=None) and "warning" not in told(libtpu=None)


def test_what_a_tpu_needs_is_installed_in_a_version_that_was_tried():
    installed = (Path(__file__).parents[2] / "setup.py").read_text()
    assert f'"tpu": ["jax[tpu]=={TESTED["jax"][0]}"]' in installed


# Of the rows of the table those whose compiling took least, and one of a size that people train.
SOME_ROWS = [
    ("grpo", "qwen2.5-0.5b", "v5e-1"),
    ("grpo", "qwen2.5-0.5b", "v5e-256"),
    ("grpo", "qwen2.5-0.5b", "v5p-8"),
    ("grpo", "qwen2.5-1.5b", "v5e-4"),
    ("clip_cov", "qwen2.5-7b", "v5e-256"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "model", "topology"), SOME_ROWS)
def test_a_published_model_fits_a_slice(capsys, method, model, topology):
    pytest.importorskip("libtpu")
    assert (method, model, topology) in {row[:3] for row in ROWS}
    with jax.enable_x64(False):  # as users have it: where numbers have 64 bits no flash kernel runs
        code, out, _ = run(capsys, topology, "--model", model, "--method", method, "--json")
    print(out)
    assert code == 0
    for program in json.loads(out)["programs"].values():
        assert program["wide_arrays"] == []
        assert program["compiler_seconds"] > 0
