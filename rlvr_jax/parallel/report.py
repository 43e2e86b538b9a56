"""Memory and cost of a compiled run, as text."""

from collections.abc import Iterator
from typing import Any

from rlvr_jax.parallel.topologies import TESTED

_STAGES = {
    "sample": "sampling",
    "score": "scoring (the old or reference log-probs)",
    "critic": "the critic's update",
}

_OPTIONS = ("mesh", "sample_mesh", "sampling_batches", "micro_batches", "remat", "compute_dtype")

_HELP = {
    "cache": "more --sampling-batches, a larger slice, tensor in the sample mesh",
    "sampler's weights": "tensor or fsdp in the sample mesh",
    "gradient, and that of a micro-batch": "more fsdp, a larger slice, --lora-rank",
    "parameters": "more fsdp, a larger slice",
    "critic": "more fsdp, a larger slice, a method without one",
    "optimizer": "more fsdp, a larger slice, --lora-rank",
    "frozen weights": "more fsdp, a method without reference (kl_coefficient=0)",
    "inputs of layers kept for the backward pass": "--remat layers, tensor, more micro-batches",
    "activations of an MLP": "tensor, more micro-batches",
    "scores of a block of queries": "tensor, more micro-batches",
    "unembedding, gathered, and its gradient": "tensor",
    "experts of two layers, gathered, and their gradient": "tensor",
}
"""What makes a buffer smaller."""


def describe_report(report: dict[str, Any]) -> str:
    """The text of a report of `rlvr_jax.parallel.compile`."""
    return "\n".join(_lines(report))


def _lines(report: dict[str, Any]) -> Iterator[str]:
    hbm = report["hbm_bytes"]
    yield (
        f"{report['model']}, {report['method']}, on {report['topology']}"
        f" ({report['devices']} devices of {_size(hbm)})"
    )
    yield (
        f"{report['prompts']} prompts x {report['samples']} responses, {report['prompt_len']} +"
        f" {report['response_len']} tokens; the run's options:"
    )
    options = [*_OPTIONS, "rows_at_once"] if report.get("rows_at_once") else _OPTIONS
    yield "  " + " ".join(f"--{name.replace('_', '-')} {report[name]}" for name in options)
    versions = report["versions"]
    yield ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    for name, tested in TESTED.items():
        if versions.get(name) and versions[name] not in tested:
            yield (f"warning: tested with {name} {' and '.join(tested)}, not with {versions[name]}")
    for name, program in report["programs"].items():
        yield ""
        yield from _program(name, program, hbm)
    yield ""
    if "step_compiler_seconds" in report:
        calls = ", ".join(
            f"{_STAGES.get(name, name)} {program['calls']} times"
            for name, program in report["programs"].items()
        )
        yield (
            f"a step by the compiler's estimate: {report['step_compiler_seconds']:,.0f} s (roofline"
            f" {report['step_roofline_seconds']:,.0f} s): {calls}"
        )
    yield "fits" if report["fits"] else "does not fit"


def _program(name: str, program: dict[str, Any], hbm: int) -> Iterator[str]:
    fits = "fits" if program["fits"] else "DOES NOT FIT"
    yield f"{_STAGES.get(name, name)}: {_size(program['bytes'])} of {_size(hbm)}, {fits}"
    if "sampling_batches" in program:
        yield (
            f"  {program['sampling_batches']} sampling batches of {program['prompts']} prompts x"
            f" {program['samples']} responses; numbers below are of one batch"
        )
    for part, size in program.get("parts", {}).items():
        yield f"  {_size(size):>12}  {part}"
    if "largest_buffers" in program:
        yield "  the largest buffers, and settings that make them smaller:"
        largest = sorted(program["largest_buffers"].items(), key=lambda item: -item[1])
        for buffer, size in largest[:5]:
            yield f"  {_size(size):>12}  {buffer}: {_HELP.get(buffer, 'made by the program')}"
    if "collectives" in program:
        for kind, found in program["collectives"].items():
            yield f"  {found['count']:>12,} {kind}, {_size(found['bytes'])} on each device"
        wide = ", ".join(program["wide_arrays"]) or "none"
        yield f"  arrays over tokens and vocabulary: {wide}"
    yield (
        f"  {program['flops']:.3g} FLOPs and {_size(program['hand_bytes'])} on each device,"
        " counted by formulas"
    )
    if "roofline_seconds" in program:
        times = [f"roofline {program['roofline_seconds']:.4g} s ({program['roofline_limit']})"]
        if "compiler_seconds" in program:
            times.append(f"the compiler's estimate {program['compiler_seconds']:.4g} s")
            times.append(f"links {program['collective_seconds']:.4g} s")
        yield "  " + ", ".join(times)
        if kernels := program.get("kernel_seconds"):
            named = ", ".join(f"{name} {seconds:.4g} s" for name, seconds in kernels.items())
            yield f"  of the estimate, kernels at their own roofline: {named}"
        if moves := program.get("move_seconds"):
            yield f"  of the estimate, gathers, scatters, sorts at their roofline: {moves:.4g} s"
        if once := program.get("loops_counted_once"):
            yield f"  loops of unknown length, counted once: {', '.join(once)}"
        if missing := program.get("not_estimated"):
            yield f"  operations without an estimate, counted as 0: {', '.join(missing)}"
        if longest := program.get("longest_operations"):
            yield "  the operations with the longest estimates:"
            for name, seconds in longest.items():
                yield f"  {seconds:>11.4g} s  {name}"
    yield f"  compiled in {program['compile_seconds']:.1f} s"


def _size(size: float) -> str:
    """Bytes in the unit that suits them."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} TiB"
