"""Two Verilog modules compared by proof: Yosys (the package `pyosys`), in the sandbox.

Both are elaborated, flattened, and merged to a circuit that shows whether any output differs. X and
Z count as values. Without registers a SAT solver decides for all inputs. With registers every clock
edge becomes a step (`clk2fflogic`), so asynchronous resets and other edges are seen. The solver
first searches for a difference in `_STEPS` steps from undefined registers. Then temporal induction
tries to prove that there is none. If neither succeeds, the result is undecided.
"""

import secrets

from rlvr_jax.verifiers.programs.tools import package_folder, run_engine
from rlvr_jax.verifiers.programs.verilog_text import Module

_STEPS = 24
_MEMORY_MB = 2048
# A failed proof ends Yosys' process, hence the fork; a file reports a difference. The output of
# Yosys is dropped: it contains names of the answer.
_PROVE = """
import os, sys
secret, gold, answer, steps, seconds = sys.argv[1:]
replies = os.dup(1)
def say(word):
    os.write(replies, f"{secret} {word}\\n".encode())
pid = os.fork()
if not pid:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    from pyosys import libyosys
    design = libyosys.Design()
    def run(*passes):
        for line in passes:
            libyosys.run_pass(line, design)
    for name, top in (("gold", gold), ("answer", answer)):
        say("read_" + name)
        run(f"read_verilog -sv {name}.v", f"hierarchy -check -top {top}", "proc", "flatten")
        run("memory", "opt_clean", f"rename {top} {name}", f"design -stash {name}")
    say("join")
    for name in ("gold", "answer"):
        run(f"design -copy-from {name} -as {name} {name}")
    run("miter -equiv -flatten -make_outputs gold answer miter", "hierarchy -top miter")
    say("search")
    run("clk2fflogic", "tee -q -o registers select -list t:$ff")
    sat = "sat -prove trigger 0 -enable_undef -set-def-inputs -verify -timeout " + seconds
    if os.path.getsize("registers"):
        sat += f" -set-init-undef -maxsteps {steps}"
        run(f"{sat} -dump_json found -tempinduct-baseonly miter")
        say("prove")
        run(f"{sat} -tempinduct miter")
    else:
        run(f"{sat} -dump_json found miter")
    say("equal")
    os._exit(0)
os.waitpid(pid, 0)
if os.path.exists("found"):
    say("differ")
say("end")
"""


def is_installed() -> bool:
    """Whether the package is installed."""
    return package_folder("pyosys") is not None


def compare(gold: str, gold_top: Module, answer: str, answer_top: Module, seconds: float) -> str:
    """As `verilog_simulation.compare`.

    Args:
      gold, answer, gold_top, answer_top, seconds: as for `verilog_simulation.compare`.
    """
    secret = secrets.token_hex(16)
    outcome = run_engine(
        _PROVE,
        seconds,
        argv=[secret, gold_top.name, answer_top.name, str(_STEPS), str(max(int(seconds / 3), 1))],
        files={"gold.v": gold, "answer.v": answer},
        memory_mb=_MEMORY_MB,
        packages=("pyosys",),
    )
    if outcome is None:
        return "undecided"
    reported = [
        line.split(" ")[1] for line in outcome.stdout.splitlines() if line.startswith(secret)
    ]
    if "equal" in reported or "differ" in reported:
        return "differ" if "differ" in reported else "equal"
    last = next((word for word in reversed(reported) if word != "end"), "")
    return {"read_gold": "gold", "read_answer": "malformed", "join": "malformed"}.get(
        last, "undecided"
    )
