"""The GPU kernel of token_stats: interpreted, lowered and compiled without a GPU, run on one."""

import functools
import subprocess
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from numpy.testing import assert_array_equal
from token_stats_cases import BFLOAT16, assert_bits_stay, assert_close, in_float64

from rlvr_jax.kernels import algebra, pallas_gpu, tpu_blocks
from rlvr_jax.kernels.plan import Plan, Policy, Tokens
from rlvr_jax.kernels.token_stats import token_stats

# JAX 0.11 says so of every kernel that is lowered by it.
pytestmark = pytest.mark.filterwarnings("ignore:The Pallas Triton backend is deprecated")

# Relative to the largest entry of an array (or 1): float32 sums of some hundred terms, and
# differences of logits of up to 10.
FLOAT32 = 1e-5
# In tiles of 16: two blocks of tokens and a part of one; shares of 3, 3, 3 and 1 tiles.
TOKENS, WIDTH, VOCABULARY = 40, 32, 150
SECOND_ORDER = ("logp", "logsumexp", "entropy", "p_squared", "p_squared_logp")


@pytest.fixture
def interpreted(monkeypatch):
    """Runs the kernel, in tiles small enough for small arrays, where there is no GPU."""
    monkeypatch.setattr(pl, "pallas_call", functools.partial(pl.pallas_call, interpret=True))
    monkeypatch.setattr(tpu_blocks, "device", lambda: ("gpu", "NVIDIA H100"))
    small = {"TOKENS": 16, "TILES": dict.fromkeys(pallas_gpu.TILES, (16, 16)), "MOST_PARTS": 4}
    for name, value in small.items():
        monkeypatch.setattr(pallas_gpu, name, value)


def make_case(shape, features=(), dtype=np.float32, seed=0):
    """Arrays (hidden, unembedding, bias), targets and options by name."""
    tokens, width, vocabulary = shape
    random = np.random.default_rng(seed)
    arrays = {
        "hidden": random.normal(size=(tokens, width)),
        "unembedding": random.normal(size=(vocabulary, width)) * 2 / np.sqrt(width),
    }
    options = {"second_temperature": random.uniform(0.5, 2, tokens).astype(np.float32)}
    targets = random.integers(0, vocabulary, tokens)
    if "bias" in features:
        arrays["bias"] = random.normal(size=vocabulary)
        removed = slice(vocabulary // 3, vocabulary // 2)  # whole tiles and parts of others
        arrays["bias"][removed] = -np.inf
        targets %= vocabulary // 3
    if "softcap" in features:
        options["softcap"] = 3.0
    if "temperature" in features:
        options["temperature"] = random.uniform(0.5, 2, tokens).astype(np.float32)
    if "mask" in features:
        options["mask"] = random.uniform(size=tokens) < 0.5
    arrays = {name: value.astype(dtype) for name, value in arrays.items()}
    return arrays, targets, options


def evaluate(implementation, arrays, targets, options):
    """Gradients of the sum of all statistics that have one, and the statistics."""
    softcap = options.get("softcap")
    traced = {name: value for name, value in options.items() if name != "softcap"}

    def loss(arrays, targets, traced):
        stats = token_stats(
            targets=targets,
            needs=algebra.STREAMING,
            implementation=implementation,
            softcap=softcap,
            **arrays,
            **traced,
        )
        stats = {name: stats.get(name) for name in algebra.STREAMING}
        terms = [jnp.nan_to_num(x) for x in stats.values() if x.dtype != jnp.int32]
        return sum(map(jnp.sum, terms)), stats

    function = jax.jit(jax.grad(loss, has_aux=True))
    gradients, stats = function(arrays, targets, traced)
    return stats, gradients


CASES = [
    ((), np.float32, FLOAT32),
    (("bias", "softcap", "temperature", "mask"), np.float32, FLOAT32),
    (("mask",), jnp.bfloat16, BFLOAT16),
]
CASE_NAMES = ["float32", "everything", "bfloat16"]


@pytest.mark.thorough
@pytest.mark.parametrize("features, dtype, tolerance", CASES, ids=CASE_NAMES)
def test_values_and_gradients_agree_with_float64(interpreted, features, dtype, tolerance):
    arrays, targets, options = make_case((TOKENS, WIDTH, VOCABULARY), features, dtype)
    targets[[3, 20]] = [-1, VOCABULARY]
    stats, gradients = evaluate("pallas_gpu", arrays, targets, options)
    expected, expected_gradients = evaluate(
        "reference", in_float64(arrays), targets, in_float64(options)
    )
    assert_close(stats, expected, FLOAT32)
    assert_array_equal(stats["max_id"], expected["max_id"])
    assert_close(gradients, expected_gradients, tolerance)


@pytest.mark.thorough
def test_bits_of_a_token_depend_neither_on_its_place_nor_on_the_others(interpreted):
    arrays, targets, _ = make_case((TOKENS, WIDTH, VOCABULARY))
    assert_bits_stay(pallas_gpu.sums, arrays, targets, few=5)


WRONG = {
    "cpu": (("cpu", "cpu"), (4, 64, 100), "bfloat16", "needs an NVIDIA GPU, the device is 'cpu'"),
    "dtypes": (("gpu", "H100"), (4, 64, 100), "float16", "got float16 and float16"),
    "width": (("gpu", "H100"), (4, 96, 100), "bfloat16", "a multiple of 64, got 96"),
    "offsets": (("gpu", "H100"), (4, 2**13, 2**18), "bfloat16", r"unembedding must .* 2\^31"),
}


@pytest.mark.parametrize("device, shape, dtype, words", WRONG.values(), ids=WRONG)
def test_a_named_kernel_that_cannot_run_says_why(monkeypatch, device, shape, dtype, words):
    monkeypatch.setattr(tpu_blocks, "device", lambda: device)
    tokens, width, vocabulary = shape
    hidden = jax.ShapeDtypeStruct((tokens, width), dtype)
    unembedding = jax.ShapeDtypeStruct((vocabulary, width), dtype)
    measure = functools.partial(
        token_stats, targets=np.zeros(tokens, int), needs={"logp"}, implementation="pallas_gpu"
    )
    message = f"^token_stats: implementation 'pallas_gpu' cannot run: .*{words}"
    with pytest.raises(ValueError, match=message):
        jax.eval_shape(measure, hidden, unembedding)


def lowered(needs, dtype=jnp.bfloat16, features=()):
    """The program for CUDA at the size of Qwen2.5 7B, made without a GPU."""
    tokens, width, vocabulary = 8192, 3584, 152064

    def array(shape, dtype):
        return jax.ShapeDtypeStruct(shape, dtype)

    bias = array((vocabulary,), jnp.float32) if "bias" in features else None
    row = array((tokens,), jnp.float32)
    known = Tokens(
        targets=array((tokens,), jnp.int32),
        active=array((tokens,), bool) if "mask" in features else None,
        inverse_temperature=row if "temperature" in features else None,
        second_ratio=row if "second_logp" in needs else None,
    )
    plan = Plan(needs=needs, dtype=jnp.dtype(jnp.float32))
    policy = Policy(array((tokens, width), dtype), array((vocabulary, width), dtype), bias)
    function = jax.jit(functools.partial(pallas_gpu.sums, plan))
    return function.trace(policy, known).lower(lowering_platforms=("cuda",))


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("needs", [SECOND_ORDER, algebra.STREAMING], ids=["second order", "all"])
def test_it_lowers_for_cuda(needs, dtype):
    features = ("bias", "temperature", "mask") if needs == algebra.STREAMING else ()
    assert "__gpu$xla.gpu.triton" in lowered(needs, dtype, features).as_text()


def triton_kernel(program):
    """The Triton module of a lowered program as text, and its numbers of warps and stages."""
    # JAX has no public way to it: the module is bytecode of its own MLIR, which triton cannot read.
    from jax._src.lib.mlir import ir
    from jax._src.pallas.triton import lowering

    def calls(operation):
        for region in operation.regions:
            for inner in (op for block in region.blocks for op in block.operations):
                yield from calls(inner.operation)
                if "__gpu$xla.gpu.triton" in str(
                    inner.operation.attributes.get("call_target_name")
                ):
                    yield inner.operation

    (call,) = calls(program.compiler_ir().operation)
    config = {entry.name: entry.attr for entry in call.attributes["mhlo.backend_config"]}
    with lowering._new_ir_context():
        text = str(ir.Module.parse(ir.StringAttr(config["ir"]).value_bytes))
    return text, {name: ir.IntegerAttr(config[name]).value for name in ("num_warps", "num_stages")}


@pytest.mark.slow
@pytest.mark.parametrize(
    "architecture, needs, dtype, instruction",
    [
        (90, SECOND_ORDER, "bfloat16", "wgmma.mma_async"),
        (90, algebra.STREAMING, "bfloat16", "wgmma.mma_async"),
        (90, SECOND_ORDER, "float32", "fma.rn.f32"),
        (80, SECOND_ORDER, "bfloat16", "mma.sync"),
    ],
)
def test_its_machine_code_spills_no_register(
    tmp_path, monkeypatch, architecture, needs, dtype, instruction
):
    triton = pytest.importorskip("triton")
    from triton.backends.compiler import GPUTarget

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    text, options = triton_kernel(lowered(needs, dtype))
    source = tmp_path / "token_stats.ttir"
    source.write_text(text)
    target = GPUTarget("cuda", architecture, 32)
    kernel = triton.compile(str(source), target=target, options=options)
    assert instruction in kernel.asm["ptx"]
    code = tmp_path / "token_stats.ptx"
    code.write_text(kernel.asm["ptx"])
    assembler = Path(triton.__path__[0]) / "backends/nvidia/bin/ptxas"
    name = f"sm_{architecture}a" if architecture == 90 else f"sm_{architecture}"
    command = [assembler, "-v", f"--gpu-name={name}", code, "-o", tmp_path / "token_stats.cubin"]
    report = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    print(report)
    assert "0 bytes spill stores, 0 bytes spill loads" in report


@pytest.mark.skipif(jax.default_backend() != "gpu", reason="needs a GPU")
@pytest.mark.parametrize("features, dtype, tolerance", CASES, ids=CASE_NAMES)
@pytest.mark.parametrize("shape", [(300, 128, 5000), (1024, 896, 20011)], ids=str)
def test_on_a_gpu_it_agrees_with_float64(shape, features, dtype, tolerance):
    arrays, targets, options = make_case(shape, features, dtype)
    stats, gradients = evaluate("pallas_gpu", arrays, targets, options)
    expected, expected_gradients = evaluate(
        "reference", in_float64(arrays), targets, in_float64(options)
    )
    assert_close(stats, expected, FLOAT32)
    # XLA multiplies the logits' gradient in the operands' dtype there, not in float32.
    assert_close(gradients, expected_gradients, 1e-2 if dtype == jnp.bfloat16 else tolerance)
