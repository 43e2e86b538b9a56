"""What is read from a compiled program: collectives, loops, kernels, memory, large arrays."""

import jax
import jax.numpy as jnp
import pytest

from rlvr_jax.kernels.token_stats import token_stats
from rlvr_jax.parallel import hlo
from rlvr_jax.parallel.hlo import Typed
from rlvr_jax.parallel.kernel_calls import kernel_work
from rlvr_jax.parallel.roofline import Work
from rlvr_jax.policy import named_config

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
    config = named_config("tiny", vocab_size=100)
    work = kernel_work(call, config)
    assert work.bytes == 4 + 16 + 2 * (2 * 2 * 3 * 4096 * 64) + 2 * 2 * 4096 * 64
    # Ten of the sixteen pairs of blocks, two products of 64 terms for each pair of six heads.
    assert work.flops == 2 * 2 * 64 * 6 * 10 * 1024**2
    backward = call._replace(name="splash_mqa_dkv")
    assert kernel_work(backward, config).flops == 2 * work.flops
    count, hidden, matrix = Typed("s32", ()), Typed("bf16", (512, 8)), Typed("bf16", (100, 8))
    call = hlo.KernelCall("token_stats", (count, hidden, matrix), (Typed("f32", (1, 512)),))
    moved = 4 + 2 * (512 + 100) * 8 + 4 * 512
    assert kernel_work(call, config) == Work(2.0 * 512 * 100 * 8, moved)
    assert kernel_work(call._replace(name="selection"), config) == Work(0.0, moved)


@pytest.mark.parametrize(("own", "rows"), [(16, 64), (4, 64), (4, 2)])
def test_kernels_of_experts_are_counted_for_the_visits_to_ones_own(own, rows):
    config = named_config("tiny", vocab_size=100, num_experts=16, experts_per_token=2)
    visits, given = Typed("bf16", (rows, 8)), Typed("bf16", (rows, 20))
    matrices, sizes = Typed("bf16", (own, 8, 20)), Typed("s32", (16,))
    here = rows * own / 16
    visited = own * (1 - (1 - 2 / 16) ** (rows / 2))  # of the tokens' choices of 2 of 16
    expected = Work(2.0 * here * 8 * 20, 2 * here * (8 + 20) + 2 * visited * 8 * 20)
    for name, operands, results in (
        ("ragged-dot-none", (visits, matrices), (given,)),
        ("gmm", (given, matrices), (visits,)),
        ("tgmm", (visits, given), (matrices,)),
    ):
        found = kernel_work(hlo.KernelCall(name, (sizes, *operands), results), config)
        assert found == pytest.approx(expected)
    metadata = hlo.KernelCall("ragged-dot-metadata", (sizes,), (sizes,))
    assert kernel_work(metadata, config) == Work(0.0, 128)


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


MOVES = """
%fused_gather (rows: bf16[64,8], order: s32[16]) -> bf16[16,8] {
  %order = s32[16]{0} parameter(1)
  ROOT %gather.1 = bf16[16,8]{1,0:T(8,128)} gather(%rows, %order), slice_sizes={1,8}
}

%fused_scatter (into: f32[64,8], order: s32[16], rows: f32[16,8]) -> f32[64,8] {
  %into = f32[64,8]{1,0} parameter(0)
  %rows.2 = f32[16,8]{1,0} parameter(2)
  ROOT %scatter.1 = f32[64,8]{1,0} scatter(%into, %order, %rows.2), metadata={op_name="jit(f)/put"}
}

%offloaded (rows: bf16[64,8], order: s32[16]) -> bf16[16,8] {
  ROOT %custom-call.1 = bf16[16,8]{1,0} custom-call(%rows, %order), custom_call_target="x"
}, execution_thread="sparsecore"

%cond (p"""


def test_gathers_scatters_and_sorts_without_cycles_are_counted_by_their_bytes():
    calls = """  %g = bf16[16,8]{1,0} fusion(%x), kind=kCustom, calls=%fused_gather
  %s = f32[64,8]{1,0} fusion(%x), kind=kCustom, calls=%fused_scatter
  %o = bf16[16,8]{1,0} async-start(%x), async_execution_thread="sparsecore", calls=%offloaded
  %sort.1 = (s32[16]{0}, s32[16]{0}) sort(%x, %x), dimensions={0}
  ROOT %t = (s32[], f32[4])"""
    program = PROGRAM.replace("%cond (p", MOVES[1:]).replace("  ROOT %t = (s32[], f32[4])", calls)
    facts, rows = hlo.read(program), 16 * 8
    assert facts.moves == {
        "gather bf16[16,8]": 5 * 2 * 2 * rows,
        "put f32[64,8]": 5 * 2 * 4 * rows,
        "SparseCore custom-call bf16[16,8]": 5 * 2 * 2 * rows,
        "sort (s32[16], s32[16])": 5 * 2 * 2 * 4 * 16,
    }
    assert facts.cycles == hlo.read(PROGRAM).cycles and hlo.read(PROGRAM).moves == {}
    # What is part of a fusion with cycles is counted there, however deep it stands.
    inside = "%fused (p: f32[4]) -> f32[4] {\n  %g.9 = f32[4] fusion(%y), calls=%fused_gather"
    within = PROGRAM.replace("%cond (p", MOVES[1:]).replace(inside[:31], inside)
    assert "%g.9" in within and hlo.read(within).moves == {}


def test_temporaries_are_those_of_the_devices_own_memory():
    text = (
        "BufferAssignment:\nallocation 7: size 12, parameter 3, shape |f32[3]|:\n"
        " value: <1 x @0>\nallocation 8: size 140, color 2, preallocated-temp:\n"
    )
    assert hlo.temporaries(text) is None
    for place in ("", "page 0, "):
        assert hlo.temporaries(f"{text}allocation 9: size 99, {place}preallocated-temp:\n") == 99


@pytest.mark.thorough
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
