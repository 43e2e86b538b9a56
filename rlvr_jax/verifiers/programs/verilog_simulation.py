"""Two Verilog modules compared by simulation: Icarus Verilog (`iverilog` on PATH), in the sandbox.

Both modules get the same inputs. These are all inputs if they have few bits and the gold has no
clock, otherwise random ones with a seed that is sampled for each run. Outputs are compared after
the inputs change, before the edge, and after each edge; X and Z count as values. Resets are rare in
three sequences of four. The result is printed after a secret, and modules and instances have secret
names. So an answer can neither print the result nor read the gold's outputs.
"""

import re
import secrets
import shutil
from pathlib import Path

from rlvr_jax.verifiers.programs.tools import run_engine
from rlvr_jax.verifiers.programs.verilog_text import Module, renamed

_ALL_INPUTS = 12  # largest number of bits for which all inputs are tested
_SEQUENCES, _LENGTH = 40, 200
_RARELY = 16  # one step in so many has a reset
_MEMORY_MB = 1024
_CLOCK = re.compile(r"(?:clk|clock)", re.IGNORECASE)
_RESET = re.compile(r"(?:a?rst|a?reset|clr|clear)(_?n|_?b)?(?:_i)?", re.IGNORECASE)
_LOW = re.compile(r"n_?(?:rst|reset)|resetn|rstn|.*_(?:n|b)", re.IGNORECASE)
_EDGE = re.compile(r"\b(?:posedge|negedge)\s+([A-Za-z_][\w$]*)")
_EVENTS = re.compile(r"@\s*\([^)]*\)")
_SHELL = "/bin/sh"  # iverilog starts its parts by it
_RUN = """
import subprocess, sys
made = subprocess.run(["iverilog", "-g2012", "-o", "design", "-s", sys.argv[1], "bench.v", "gold.v",
                       "answer.v"], stdout=2)
print(sys.argv[2], "made" if made.returncode == 0 else "malformed", flush=True)
if made.returncode == 0:
    subprocess.run(["vvp", "-n", "design"])
"""


def is_installed() -> bool:
    """Whether both programs are installed."""
    return all(map(shutil.which, ("iverilog", "vvp")))


def compare(gold: str, gold_top: Module, answer: str, answer_top: Module, seconds: float) -> str:
    """ "equal", "differ", "malformed" (of the answer), "gold" (it cannot be read), or "undecided".

    Args:
      gold, answer: plain sources.
      gold_top, answer_top: their top modules, with equal ports.
      seconds: CPU time of the whole run.
    """
    verdict = _simulated(gold, gold_top, answer, answer_top, seconds)
    if verdict == "malformed" and _simulated(gold, gold_top, gold, gold_top, seconds) != "equal":
        return "gold"
    return verdict


def _simulated(gold: str, gold_top: Module, answer: str, answer_top: Module, seconds: float) -> str:
    secret = "s" + secrets.token_hex(16)
    files = {
        "gold.v": renamed(gold, f"_{secret}_g"),
        "answer.v": renamed(answer, f"_{secret}_a"),
        "bench.v": _bench(secret, gold_top, answer_top),
    }
    read = [shutil.which("iverilog"), shutil.which("vvp"), _SHELL, *_libraries()]
    bounds = {"memory_mb": _MEMORY_MB, "processes": 32, "read": tuple(map(str, read))}
    outcome = run_engine(_RUN, seconds, argv=[f"{secret}_b", secret], files=files, **bounds)
    if outcome is None:
        return "undecided"
    reported = [line for line in outcome.stdout.splitlines() if line.startswith(secret)]
    if reported[1:] == [f"{secret} 0"]:
        return "equal"
    return "malformed" if reported[:1] == [f"{secret} malformed"] else "differ"


def _libraries() -> list[Path]:
    """The folders that hold the compiler's parts."""
    home = Path(shutil.which("iverilog") or "/usr/bin/iverilog").resolve().parents[1]
    return sorted({*home.glob("lib/ivl"), *home.glob("lib/*/ivl"), *home.glob("lib64/ivl")})


def _bench(secret: str, gold: Module, answer: Module) -> str:
    ports = sorted(gold.ports)
    inputs = [(name, width) for name, direction, width in ports if direction == "input"]
    outputs = [(name, width) for name, direction, width in ports if direction != "input"]
    clocks = _clocks(gold, [name for name, _ in inputs])
    driven = [(name, width) for name, width in inputs if name not in clocks]
    bits = sum(map(_bits, (width for _, width in driven)))
    lines = [f"module {secret}_b;", f"integer i_{secret}, seed_{secret}; reg bad_{secret};"]
    lines += [f"reg {width} {name};" for name, width in inputs]
    for side, module, suffix in (("g", gold, "_g"), ("a", answer, "_a")):
        lines += [f"wire {width} {side}_{secret}_{name};" for name, width in outputs]
        wires = [f".{name}({name})" for name, _ in inputs]
        wires += [f".{name}({side}_{secret}_{name})" for name, _ in outputs]
        lines.append(f"{module.name}_{secret}{suffix} {side}_{secret} ({', '.join(wires)});")
    differ = " || ".join(f"(g_{secret}_{n} !== a_{secret}_{n})" for n, _ in outputs) or "1'b0"
    compare = f"#1 if ({differ}) bad_{secret} = 1;"
    lines += ["initial begin", f"bad_{secret} = 0; seed_{secret} = {secrets.randbelow(2**31)};"]
    lines += [f"{name} = 0;" for name in clocks]
    every = not clocks and bits <= _ALL_INPUTS
    steps = 2**bits if every else _SEQUENCES * _LENGTH
    lines.append(f"for (i_{secret} = 0; i_{secret} < {steps}; i_{secret} = i_{secret} + 1) begin")
    if every and driven:
        lines.append(f"{{{', '.join(name for name, _ in driven)}}} = i_{secret};")
    elif driven:
        lines += [f"{name} = {_random(secret, width)};" for name, width in driven]
        for name, low in _resets(driven):
            late, rare = f"i_{secret} % {_LENGTH} >= 2", f"$random(seed_{secret}) % {_RARELY} != 0"
            lines.append(
                f"if ((i_{secret} / {_LENGTH}) % 4 != 0)"
                f" {name} = ({late} && {rare}) ? 1'b{low:d} : 1'b{not low:d};"
            )
    lines.append(compare)
    for name in clocks:
        lines += [f"{name} = 1;", compare, f"{name} = 0;", compare]
    lines += ["end", f'$display("{secret} %0d", bad_{secret}); $finish; end', "endmodule"]
    return "\n".join(lines) + "\n"


def _clocks(gold: Module, inputs: list[str]) -> list[str]:
    """Inputs whose edges the gold waits for and whose value it does not read; else by name."""
    read = _EVENTS.sub(" ", gold.body.partition(";")[2])
    edges = [name for name in dict.fromkeys(_EDGE.findall(gold.body)) if name in inputs]
    clocks = [
        name for name in edges if not re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", read)
    ]
    return clocks or [name for name in inputs if _CLOCK.fullmatch(name)] or edges[:1]


def _resets(driven: list[tuple[str, str]]) -> list[tuple[str, bool]]:
    """(name, whether it is active at 0) of the inputs that are called like a reset."""
    return [
        (name, _LOW.fullmatch(name) is not None)
        for name, width in driven
        if not width and (_RESET.fullmatch(name) or re.fullmatch(r"n_?(?:rst|reset)", name))
    ]


def _bits(width: str) -> int:
    """The bits of a range as written; 99, beyond `_ALL_INPUTS`, if it is not two numbers."""
    match = re.fullmatch(r"\[(\d+):(\d+)\]", width)
    return abs(int(match[1]) - int(match[2])) + 1 if match else 99 if width else 1


def _random(secret: str, width: str) -> str:
    words = max(1, -(-min(_bits(width), 4096) // 32))
    return "{" + ", ".join([f"$random(seed_{secret})"] * words) + "}"
