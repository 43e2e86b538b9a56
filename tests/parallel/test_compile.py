"""Runs compiled from shapes: what is read from programs, and the command, on host devices.

With PyPI's `libtpu` in the version that `jax[tpu]` asks for, the slow ones compile for TPUs.
"""

import dataclasses
import json
import math
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from rlvr_jax import methods
from rlvr_jax.kernels.token_stats import token_stats
from rlvr_jax.parallel import hlo
from rlvr_jax.parallel.kernel_calls import kernel_work
from rlvr_jax.parallel.memory import sample_buffers, update_buffers
from rlvr_jax.parallel.plan import sample_mesh, train_mesh
from rlvr_jax.parallel.report import describe_report
from rlvr_jax.parallel.roofline import Work, num_parameters, sample_work, score_work, update_work
from rlvr_jax.parallel.topologies import CHIPS, TESTED, describe
from rlvr_jax.policy import LoraConfig, Model, cached, lora, named_config
from rlvr_jax.policy.hugging_face import to_hugging_face
from rlvr_jax.policy.parameters import parameter_shapes
from rlvr_jax.policy.published import PUBLISHED
from rlvr_jax.runs import compile as command
from rlvr_jax.runs import compiled
from rlvr_jax.runs.abstract import abstract_run
from rlvr_jax.runs.compile_table import ROWS
from rlvr_jax.runs.compiled import compile_run
from rlvr_jax.runs.config import TrainConfig
from rlvr_jax.types import replace

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


@pytest.mark.parametrize(
    ("name", "layout", "devices"),
    [
        ("v5e-8", "v5e:2x4", 8),
        ("v5litepod-256", "v5e:16x16", 256),
        ("v6e-32", "v6e:4x8", 32),
        ("v5p-8", "v5p:2x2x1", 4),
        ("v4-128", "v4:4x4x4", 64),
        ("tpu7x-8", "tpu7x:2x2x1", 8),
        ("cpu:8", "cpu:8", 8),
    ],
)
def test_topologies_have_the_names_that_users_know(name, layout, devices):
    topology = describe(name)
    assert (topology.layout, topology.num_devices) == (layout, devices)
    assert topology.hbm_bytes > 0


@pytest.mark.parametrize("chip", CHIPS)
def test_layouts_have_as_many_chips_as_they_say(chip):
    assert all(math.prod(layout) == chips for chips, layout in CHIPS[chip].layouts.items())


@pytest.mark.parametrize("name", PUBLISHED)
def test_matrices_are_counted_by_hand(name):
    shapes = dict(parameter_shapes(PUBLISHED[name]))
    matrices = [x for x in shapes.pop("layers").values() if x.ndim >= 3]
    matrices += [x for x in shapes.values() if x.ndim == 2]
    assert sum(x.size for x in matrices) == num_parameters(PUBLISHED[name])


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("qwen2.5-0.5b", 0.49),
        ("qwen2.5-7b", 7.62),
        ("qwen2.5-32b", 32.8),
        ("qwen3-8b", 8.19),
        ("qwen3-30b-a3b", 30.53),
    ],
)
def test_models_have_the_sizes_of_their_cards(name, billions):
    assert num_parameters(PUBLISHED[name]) / 1e9 == pytest.approx(billions, rel=0.01)


PROGRAM = """
HloModule jit_f

%inner (p: f32[]) -> f32[] {
  %p.1 = f32[] parameter(0)
  ROOT %all-reduce.3 = f32[4,8]{1,0} all-reduce(%p.1), channel_id=3, to_apply=%add
}

%cond (p: (s32[], f32[4])) -> pred[] {
  %n = s32[]{:T(128)} constant(5), metadata={op_name="f"}
  ROOT %lt = pred[] compare(%i, %n), direction=LT
}

%body (p: (s32[], f32[4])) -> (s32[], f32[4]) {
  %x = bf16[16,8]{1,0} parameter(0)
  %gather = bf16[64,8]{1,0:T(8,128)} all-gather(%x), channel_id=1, dimensions={0}
  %f = f32[4]{0} fusion(%x), kind=kLoop, calls=%fused, backend_config={"estimated_cycles":"10"}
  %again = bf16[64,8]{1,0} all-gather(%x), channel_id=1, dimensions={0}
  ROOT %t = (s32[], f32[4]) tuple(%i, %f)
}

%fused (p: f32[4]) -> f32[4] {
  %y = f32[64,8]{1,0} parameter(0)
  ROOT %rs = f32[4,8]{1,0} reduce-scatter(%y), channel_id=2, dimensions={0}
}

ENTRY %main (a: f32[4]) -> f32[4] {
  %a = f32[4]{0} parameter(0)
  %w = (s32[], f32[4]{0}) while(%a), condition=%cond, body=%body
  %v = (s32[]) while(%a), condition=%cond, body=%inner, config={"known_trip_count":{"n":"3"}}
  %start = (f32[4]{0}, f32[8]{0}) collective-permute-start(%a), channel_id=9
  %n = f32[4]{0} copy(%a), backend_config={"estimated_cycles":"7"}
  ROOT %c = f32[4]{0} conditional(%p, %a, %a), branch_computations={%inner, %other}
}

%other (p: f32[]) -> f32[] {
  ROOT %p.2 = f32[] parameter(0)
}
"""


def test_collectives_are_counted_as_often_as_they_run():
    facts = hlo.read(PROGRAM)
    # Five rounds of a loop by its condition; one channel is one collective wherever it is written.
    assert facts.collectives["all-gather"] == hlo.Collective(5, 5 * 64 * 8 * 2)
    assert facts.collectives["reduce-scatter"] == hlo.Collective(5, 5 * 64 * 8 * 4)
    # Three rounds as it is said beside the loop, and one more in the branch.
    assert facts.collectives["all-reduce"] == hlo.Collective(4, 4 * 4 * 8 * 4)
    assert facts.collectives["collective-permute"] == hlo.Collective(1, 32)
    assert facts.cycles == 5 * 10 + 7
    assert list(facts.operations.items()) == [("f f32[4]", 50), ("n f32[4]", 7)]


def test_operations_are_named_by_their_place_in_the_model():
    named = '{op_name="jit(score)/while/body/layer/dot_general"}, backend_config={'
    program = PROGRAM.replace("calls=%fused, backend_config={", f"calls=%fused, metadata={named}")
    place = "while/body/layer/dot_general f32[4]"
    assert hlo.read(program).operations == {place: 50, "n f32[4]": 7}


def test_loops_that_end_early_count_by_their_mean():
    named = ', metadata={op_name="jit(f)/Block/own_slots/while"}'
    early = PROGRAM.replace("body=%body", f"body=%body{named}")
    whole, mean = hlo.read(early), hlo.read(early, {"own_slots": 0.6})
    assert whole.cycles == 5 * 10 + 7
    assert mean.cycles == 3 * 10 + 7
    assert mean.collectives["all-gather"] == hlo.Collective(3, 3 * 64 * 8 * 2)
    # Loops of another name, and those whose number of rounds is known, run as often as before.
    assert hlo.read(early, {"slots": 0.6}) == whole
    assert mean.collectives["all-reduce"] == whole.collectives["all-reduce"]


def test_kernels_are_counted_by_their_operands():
    query, key = "bf16[2,3,4096,64]", "bf16[2,4096,64]"
    line = (
        f"%splash_mqa_fwd_x.7 = ({query}{{3,2,1,0}}, f32[4]{{0}}) custom-call(%a, %b),"
        ' custom_call_target="tpu_custom_call",'
        f" operand_layout_constraints={{s8[1,4]{{1,0}}, {query}{{3,2,1,0}}, {key}{{2,1,0}}}},"
        ' metadata={op_name="y"}'
    )
    assert hlo.read(PROGRAM).kernels == {}
    program = PROGRAM.replace("  ROOT %t = ", f"  {line}\n  ROOT %t = ")
    ((call, runs),) = hlo.read(program).kernels.items()
    assert (call.name, runs) == ("splash_mqa_fwd_x", 5)
    assert call.bytes == 4 + 16 + 2 * (2 * 2 * 3 * 4096 * 64) + 2 * 2 * 4096 * 64
    work = kernel_work(*call)
    assert work.bytes == call.bytes
    # Ten of the sixteen pairs of blocks, two products of 64 terms for each pair of six heads.
    assert work.flops == 2 * 2 * 64 * 6 * 10 * 1024**2
    assert kernel_work("splash_mqa_dkv", call.operands, 0).flops == 2 * work.flops
    matrices = (("s32", ()), ("bf16", (512, 8)), ("bf16", (100, 8)), ("f32", (1, 512)))
    assert kernel_work("token_stats", matrices, 7) == Work(2.0 * 512 * 100 * 8, 7)
    assert kernel_work("selection", matrices, 7) == Work(0.0, 7)
    visits, experts = ("bf16", (512, 8)), ("bf16", (3, 8, 20))
    for call in (visits, experts), (("bf16", (512, 20)), experts):
        assert kernel_work("ragged-dot-none", call, 7) == Work(2.0 * 512 * 8 * 20, 7)
    assert kernel_work("ragged-dot-metadata", (("s32", (3,)),), 7) == Work(0.0, 7)
    assert kernel_work("tgmm", (visits, ("bf16", (512, 20))), 7) == Work(2.0 * 512 * 8 * 20, 7)


def test_the_bound_of_a_loop_is_found_where_its_condition_is_fused():
    line = '%n = s32[]{:T(128)} constant(5), metadata={op_name="f"}'
    assert line in PROGRAM
    fused = PROGRAM.replace(line, "%lt = pred[] fusion(%i), kind=kLoop, calls=%bound")
    bound = "%bound (i: s32[]) -> pred[] {\n  " + line + "\n}\n\n"
    fused = fused.replace("%cond (p", bound + "%cond (p")
    assert hlo.read(fused) == hlo.read(PROGRAM)


def test_loops_whose_rounds_are_not_known_are_named():
    named = PROGRAM.replace("body=%body", 'body=%body, metadata={op_name="jit(f)/decode/while"}')
    assert hlo.read(named).counted_once == ()
    facts = hlo.read(named.replace("constant(5)", "parameter(0)"))
    assert facts.counted_once == ("decode/while",)
    assert facts.cycles == 10 + 7


def test_operations_without_an_estimate_are_named_and_count_as_none():
    told, none = '"estimated_cycles":"7"', f'"estimated_cycles":"{2**63 - 1}"'
    assert PROGRAM.count(told) == 1
    whole, facts = hlo.read(PROGRAM), hlo.read(PROGRAM.replace(told, none))
    assert facts.cycles == whole.cycles - 7
    (missing,) = facts.not_estimated
    assert whole.operations[missing] == 7 and whole.not_estimated == ()
    assert missing not in facts.operations


def test_temporaries_are_those_of_the_devices_own_memory():
    text = (
        "BufferAssignment:\nallocation 7: size 12, parameter 3, shape |f32[3]|:\n"
        " value: <1 x @0>\nallocation 8: size 140, color 2, preallocated-temp:\n"
    )
    assert hlo.temporaries(text) is None
    for place in ("", "page 0, "):
        assert hlo.temporaries(f"{text}allocation 9: size 99, {place}preallocated-temp:\n") == 99


@pytest.mark.parametrize("needs", [{"logp"}, {"logp", "topk_logp"}])
def test_loops_over_tokens_that_count_have_a_bound(needs):
    """They end after the last token that counts; without a bound they were counted once."""

    def total(hidden, unembedding, targets, mask):
        options = dict(needs=needs, mask=mask, top_k=2 * (len(needs) > 1))
        return jnp.sum(token_stats(hidden, unembedding, targets, **options).logp)

    tokens, entries = 4096, 16384  # several tiles of both
    shapes = [((tokens, 8), "float32"), ((entries, 8), "float32")]
    shapes += [((tokens,), "int32"), ((tokens,), "bool")]
    given = [jax.ShapeDtypeStruct(*shape) for shape in shapes]
    text = jax.jit(jax.grad(total, (0, 1))).lower(*given).compile().as_text()
    assert text.count(" while(") >= 3
    assert hlo.read(text).counted_once == ()


def test_bytes_of_a_shape():
    shape = "(f32[2,3]{1,0:T(8,128)}, bf16[4], pred[3], s32[], f8e4m3fn[2])"
    assert hlo.bytes_of(shape) == 24 + 8 + 3 + 4 + 2


MEMORY = """
Memory Space: default (color=0)
Total bytes: 31467578880 (29.31GiB)
  cumulative_size;       size;       offset; used_by_n_values; shapes_list
  ------------------------------------------------------------
    8.00GiB( 31%);    8.00GiB;   8614625280;               55; 27×bf16[256,16], bf16[64,4]
   16.00GiB( 62%);    8.00GiB;     24690688;               59; bf16[256,16], 3×bf16[1025,4736]
   16.03GiB( 93%);   32.00MiB;  17271668736;               18; bf16[16,1,128], 5×s32[]
  The rest 3128 values are less than 5% of the total size and not shown.

Memory Space: vmem (color=1)
  cumulative_size;       size;       offset; used_by_n_values; shapes_list
    1.00GiB(100%);    1.00GiB;            0;                1; bf16[38016,3584]
"""


def test_the_largest_arrays_are_named_with_what_makes_them():
    text = """
  %fusion.2 = bf16[16,1,128]{2,1,0} fusion(%p)
  %all-gather.4 = bf16[256,16]{1,0:T(8,128)} all-gather(%p), metadata={op_name="jit(sample)/jit(sample)/while/body/cond/layout_constraint" id=1}
"""  # noqa: E501
    assert hlo.largest(MEMORY, text) == {
        "bf16[256,16] of while/body/cond/layout_constraint": 8 * 2**30,
        "bf16[1025,4736]": 8 * 2**30,
        "bf16[16,1,128]": 32 * 2**20,
    }
    assert hlo.largest("", "") == {}


def test_arrays_over_tokens_and_vocabulary_are_found():
    text = "f32[512,64] bf16[64,32] f32[2,256,32] f32[8,64] f32[64]"
    found = hlo.wide_arrays(text, vocabulary={64, 32}, tokens=32, widths={32, 64})
    assert found == ["f32[2,256,32]", "f32[512,64]"]


def test_a_program_with_logits_is_told_from_one_without():
    def logits(hidden, matrix):
        return jax.nn.logsumexp(hidden @ matrix.T, axis=-1)

    shapes = [jax.ShapeDtypeStruct(shape, "float32") for shape in ((96, 8), (64, 8))]
    text = jax.jit(logits).lower(*shapes).compile().as_text()
    assert hlo.wide_arrays(text, {64}, tokens=20, widths={8}) == ["f32[96,64]"]


def test_chosen_meshes_fill_the_topology_and_divide_the_model():
    for name, config in PUBLISHED.items():
        for slice_name in ("v5e-8", "v5e-256", "v5p-64", "v6e-16"):
            topology = describe(slice_name)
            trained = train_mesh(config, topology, 8192, 9216, 16)
            for spec in (trained, sample_mesh(config, topology)):
                sizes = dict(part.split("=") for part in spec.split(","))
                assert math.prod(map(int, sizes.values())) == topology.num_devices, name
                # Where the weights want it, a sampler has all key/value heads on each device.
                whole = spec != trained and config.num_experts
                heads = config.num_heads if whole else config.num_kv_heads
                assert heads % int(sizes.get("tensor", 1)) == 0
                assert config.width % int(sizes.get("fsdp", 1)) == 0


@pytest.mark.parametrize(
    ("name", "mesh"),
    [
        ("v5e-128", "data=16,tensor=8"),
        ("v6e-32", "data=8,tensor=4"),
        ("v5p-16", "data=2,tensor=4"),
    ],
)
def test_a_sampler_takes_more_of_tensor_before_it_gathers_weights(name, mesh):
    """Four key/value heads, which each device has where the weights need eight of them."""
    shape = dataclasses.replace(PUBLISHED["qwen3-30b-a3b"], compute_dtype="bfloat16")
    assert sample_mesh(shape, describe(name)) == mesh


def test_more_is_split_over_tensor_where_a_reference_is_kept():
    options = dict(remat="layers", compute_dtype="bfloat16")
    shape = dataclasses.replace(PUBLISHED["qwen2.5-7b"], **options)
    chosen = [train_mesh(shape, describe("v5e-16"), 8192, 9216, held) for held in (12, 16)]
    # As compiled beside a reference the update took 16.5 of 15.8 GiB with tensor=2, 15.2 with 4.
    assert chosen == ["fsdp=8,tensor=2", "fsdp=4,tensor=4"]


def test_more_is_split_over_tensor_where_devices_outnumber_rows():
    shape, topology = PUBLISHED["qwen2.5-1.5b"], describe("v5e-256")
    chosen = [train_mesh(shape, topology, rows, 4024, 12) for rows in (256, 128, 100)]
    # The last one fits no mesh, which is said when the settings are checked.
    assert chosen == ["fsdp=256", "fsdp=128,tensor=2", "fsdp=256"]


def test_work_by_hand_is_what_the_compiler_counts():
    config = named_config("small", vocab_size=512, qkv_bias=True)
    rows, length = 4, 64
    tokens = jax.ShapeDtypeStruct((rows, length), "int32")

    def logits(params, tokens):
        return Model(config).logits(params, tokens)

    program = jax.jit(logits).lower(parameter_shapes(config), tokens).compile()
    counted = program.cost_analysis()["flops"]
    shape = dict(rows=rows, prompt=0, response=length, parts=1)
    work = update_work(config, micro_batches=1, devices=1, forward_first=False, **shape)
    # Forward once, backward twice; attention and logits are computed once more in the backward
    # pass of the trainer. What the compiler counts beside products is within a tenth of them.
    assert 3 * counted * 0.9 <= work.flops <= 4 * counted
    drawn = sample_work(config, prompts=0, **shape)
    assert drawn.flops == pytest.approx(counted, rel=0.1)


def test_below_adapters_weights_get_no_gradient():
    config = named_config("small", vocab_size=512)
    adapted = dataclasses.replace(config, lora=LoraConfig(rank=2, alpha=4))
    rows, length = 4, 64
    tokens = jax.ShapeDtypeStruct((rows, length), "int32")
    base, model = parameter_shapes(config), Model(adapted)
    adapters = jax.eval_shape(partial(lora.init, model), jax.random.key(0))

    def total(adapters, base, tokens):
        return jnp.sum(jnp.sin(model.logits(lora.attach(base, adapters), tokens)))

    program = jax.jit(jax.grad(total)).lower(adapters, base, tokens).compile()
    counted = program.cost_analysis()["flops"]
    shape = dict(rows=rows, prompt=0, response=length, parts=1)
    shape |= dict(micro_batches=1, devices=1, forward_first=False)
    work, whole = (update_work(each, **shape) for each in (adapted, config))
    # The trainer computes attention and logits once more in the backward pass.
    assert 0.9 * counted <= work.flops <= 1.5 * counted
    assert 2 * work.flops < 1.5 * whole.flops
    sizes = [
        update_buffers(each, rows=rows, tokens=length, parts=1, devices=1)[
            "gradient, and that of a micro-batch"
        ]
        for each in (adapted, config)
    ]
    trained = sum(x.size for x in jax.tree.leaves(adapters))
    assert sizes == [2 * 4 * trained, 2 * 4 * num_parameters(config)]


@pytest.mark.parametrize("flash", [False, True])
def test_numbers_take_the_bytes_of_the_dtype_that_is_computed_with(flash):
    narrow, wide = (
        dataclasses.replace(named_config("small", vocab_size=512), compute_dtype=dtype)
        for dtype in ("bfloat16", "float32")
    )
    shape = dict(rows=4, prompt=2048, response=2048, parts=1)
    for work in (
        partial(score_work, micro_batches=1, flash=flash, **shape),
        partial(sample_work, prompts=2, **shape),
    ):
        assert work(narrow).flops == work(wide).flops
        assert work(narrow).bytes < work(wide).bytes < 2 * work(narrow).bytes
    counted = partial(sample_buffers, rows=4, prompts=2, prompt=64, response=64, parts=1)
    for name, twice in (
        ("cache", True),
        ("cache of the prompts", True),
        ("activations of the prompts", True),
        ("logits", False),
    ):
        assert counted(wide)[name] == (2 if twice else 1) * counted(narrow)[name]


def test_a_long_cache_is_counted_as_far_as_it_is_written(monkeypatch):
    config = named_config("small", vocab_size=512)

    def flops():
        shape = dict(rows=2, prompts=1, prompt=512, response=7168, parts=1)
        return sample_work(config, **shape).flops

    written = flops()
    monkeypatch.setattr(cached, "SLOTS", 8192)
    unread = sum(7168 - 1024 * (place // 1024 + 1) for place in range(7168))
    pairs = config.num_layers * 2 * config.num_heads * unread
    assert flops() - written == pytest.approx(4 * pairs * config.head_size)


@pytest.mark.parametrize(
    ("rows", "visited"),
    [(1, 8), (2, 8 + 120 * 8 / 128), (4096, 128)],  # the second token's are apart from the first's
)
def test_of_experts_those_that_tokens_visit_are_read(rows, visited):
    config = dataclasses.replace(PUBLISHED["qwen3-30b-a3b"], compute_dtype="bfloat16")
    work = sample_work(config, rows=rows, prompts=0, prompt=0, response=1, parts=1)
    expert, router, attention = 3 * 2048 * 768, 2048 * 128, 2048 * 128 * (2 * 32 + 2 * 4)
    layer = 2 * (attention + router + visited * expert)
    activations = 2 * rows * (8 * 2048 + 4 * 8 * 768)
    scores, cache = rows * 32 * 2 * (4 + 2), 2 * rows * 2 * 4 * 128
    head = 2 * 2048 * 151936 + 4 * 4 * rows * 151936
    assert work.bytes == pytest.approx(48 * (layer + activations + scores + cache) + head)
    products = attention + router + 8 * expert + 2 * 32 * 128  # one slot is seen
    assert work.flops == pytest.approx(2 * rows * (48 * products + 2048 * 151936))


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
    wave = programs["sample"]
    assert wave["waves"] * wave["prompts"] * wave["samples"] == 32
    assert report["sample_waves"] == wave["waves"]


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


def test_the_programs_compute_the_opening_of_an_experiment_s_prompts_once(monkeypatch):
    told = []
    monkeypatch.setattr(command, "shared_opening", lambda tables: 2)
    monkeypatch.setattr(command, "compile_run", lambda *given: told.append(given) or {"fits": 1})
    assert command.main(["cpu:8", "--json", "--experiment", "--task", "brackets"]) == 0
    assert told[0][-1] == 2

    def flops(opening):
        config = TrainConfig(
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


def test_rows_that_are_drawn_in_turn_are_compiled_so(monkeypatch):
    """A cache is of those that are computed at the same time; how long all take is not known."""
    asked = []

    def told(lowered, buffers, **others):
        size = lowered.compile().memory_analysis().temp_size_in_bytes if not asked else 0
        asked.append((size, buffers))
        parts = {"temporaries": size, "output": 0}
        seconds = dict(compiler_seconds=1.0, roofline_seconds=1.0)
        return {"fits": True, "bytes": 0, "parts": parts, **seconds}

    monkeypatch.setattr(compiled, "measured", told)

    def sampling(seats):
        asked.clear()
        sizes = dict(prompts_per_step=4, samples_per_prompt=8, sample_waves=1, rows_at_once=seats)
        lengths = dict(prompt_tokens=8, response_tokens=256)
        config = TrainConfig(method="dr_grpo", mesh="data=1", **sizes, **lengths)
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

    def told(lowered, given, rest, **others):
        shapes = jax.tree.leaves(lowered.args_info)
        asked.append((sum(math.prod(x.shape) * x.dtype.itemsize for x in shapes), given, rest))
        return {"fits": True, "bytes": 0}

    monkeypatch.setattr(compiled, "measured", told)
    config = TrainConfig(
        prompts_per_step=2,
        samples_per_prompt=2,
        prompt_tokens=4,
        response_tokens=2,
        mesh="data=1",
        **settings,
    )
    compile_run(config, named_config("tiny", vocab_size=64), describe("cpu:1"))
    return asked


@pytest.mark.parametrize("adapters", [{}, {"lora_rank": 2}])
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


def test_an_experiment_that_does_not_fit_ends_in_exit_code_1_and_names_the_largest_buffers(
    capsys, monkeypatch
):
    small = dataclasses.replace(describe("cpu:8"), hbm_bytes=100_000)
    monkeypatch.setattr(command, "describe", lambda name: small)
    line = "--task brackets --method clip_cov --prompts-per-step 8 --minibatches 1"
    line += " --sample-waves 2 --mesh data=2,fsdp=4"
    code, out, err = run(capsys, "cpu:8", "--experiment", *line.split())
    assert code == 1
    assert "8 prompts x 8 responses, 5 + 24 tokens; the run's options:\n" in out
    assert "  --mesh data=2,fsdp=4 --sample-mesh data=2,fsdp=4 --sample-waves 2 --micro" in out
    assert "  2 waves of 8 prompts x 4 responses" in out
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
        (["cpu:8"], "give --model, or --experiment"),
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
        ("mesh", "sample_mesh", "sample_waves", "micro_batches", "remat", "compute_dtype"), "x"
    )
    report |= {"programs": {}, "fits": True}

    def told(**versions):
        return describe_report(report | {"versions": {"jax": "0.10.2"} | versions})

    assert "jax 0.10.2, libtpu 0.0.51\n" in told(libtpu="0.0.51")
    assert "warning" not in told(libtpu="0.0.51")
    assert "warning: this was tried with libtpu 0.0.42.1 and 0.0.51; of 9.9" in told(libtpu="9.9")
    assert "warning: this was tried with jax 0.10.2; of 9.9" in told(jax="9.9")
    program = dict(fits=True, bytes=1, flops=1, hand_bytes=1, compile_seconds=1)
    program |= dict.fromkeys(("roofline_seconds", "compiler_seconds", "collective_seconds"), 1)
    program |= {"roofline_limit": "flops", "loops_counted_once": ["decode/while", "sort"]}
    program |= {"not_estimated": ["scatter-add f32[8]"]}
    report["programs"] = {"update": program}
    assert "too small by loops whose rounds are not known: decode/while, sort\n" in told()
    assert "too small by what the compiler gives no time: scatter-add f32[8]\n" in told()
    assert "jax 0.10.2\n" in told(libtpu=None) and "warning" not in told(libtpu=None)


def test_what_a_tpu_needs_is_installed_in_a_version_that_was_tried():
    installed = (Path(__file__).parents[2] / "setup.py").read_text()
    assert f'"tpu": ["jax[tpu]=={TESTED["jax"][0]}"]' in installed


def run_on(topology, shape, prompts, samples, prompt, response, **options):
    """A GRPO run on a slice that is not there."""
    lengths = dict(prompt_tokens=prompt, response_tokens=response)
    config = TrainConfig(prompts_per_step=prompts, samples_per_prompt=samples, **lengths, **options)
    return abstract_run(config, shape, methods.recipe("grpo"), describe(topology).devices(), 0)


@pytest.mark.parametrize(
    ("method", "updates", "wanted"),
    [
        ("grpo", {}, {"score": 1, "update": 1}),  # of the reference
        ("grpo", {"minibatches": 4}, {"score": 4 + 3, "update": 4}),
        ("clip_cov", {"minibatches": 4, "epochs": 2}, {"score": 3, "update": 8}),
        ("ppo", {"minibatches": 2, "critic_epochs": 3}, {"update": 2, "critic": 6}),
        ("reinforce_plus_plus", {"minibatches": 2}, {"score": 2 + 2}),  # decided once, by the KL
    ],
)
def test_how_often_a_step_calls_its_programs(method, updates, wanted):
    config = TrainConfig(
        method=method, prompts_per_step=8, samples_per_prompt=4, response_tokens=8, **updates
    )
    recipe = methods.recipe(method, **config.method_arguments(8))
    shape = named_config("tiny", vocab_size=16)
    run = abstract_run(replace(config, prompt_tokens=4), shape, recipe, jax.devices()[:1], 0)
    found = compiled._calls(run)
    assert {name: found[name] for name in wanted} == wanted


@pytest.mark.slow
def test_no_device_of_a_slice_gathers_the_cache_of_others():
    """Some versions of libtpu did, where the layout of the cache is asked for as a whole."""
    pytest.importorskip("libtpu")
    shape = named_config("tiny", vocab_size=512)
    shape = dataclasses.replace(shape, compute_dtype="bfloat16", max_positions=8192)
    options = dict(micro_batches=1, mesh="data=4,tensor=2")
    with jax.enable_x64(False):
        run = run_on("v5e-8", shape, 8, 4, 128, 4096, **options)
        text = run.lower_sample(8, 4).compile().as_text()
    gathered = [line for line in text.splitlines() if " all-gather" in line and "4096" in line]
    assert gathered == []


@pytest.mark.slow
def test_layers_gather_their_weights_and_send_no_parts_around():
    """Left alone, the partitioner multiplied part by part: by the compiler's estimate six times as
    long on this slice."""
    pytest.importorskip("libtpu")
    options = dict(compute_dtype="bfloat16", remat="layers")
    shape = dataclasses.replace(PUBLISHED["qwen3-8b"], **options)
    options |= dict(micro_batches=256, mesh="fsdp=32")
    with jax.enable_x64(False):
        run = run_on("v5e-32", shape, 512, 16, 1024, 8192, **options)
        facts = hlo.read(run.lower_score().compile().as_text())
    assert list(facts.collectives) == ["all-gather", "all-to-all"]
    # The stream of a micro-batch's row, in bfloat16.
    assert facts.collectives["all-to-all"] == hlo.Collective(256, 256 * 2 * 9216 * 4096)


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
