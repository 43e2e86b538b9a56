"""Verilog: is a module the same circuit as the correct one? By proof, or by simulation.

The response is <think>…</think><answer>…</answer>, each tag once; the code is the last ```verilog
fence of the answer. Its top module is the one that no other module instantiates. It must have the
gold's ports (name, direction, range as written), and equal outputs at all times. X and Z count as
values.

Engines: "pyosys", a proof (`pip install pyosys`), and "iverilog", a one-sided simulation. The first
engine that is installed and decides counts. If none decides, the answer is ungraded. A refused text
(`verilog_text`) has the grade 0 without any engine.

Source: CodeV-R1, https://github.com/IPRC-DIP/CodeV-R1; its pass line can be printed by the answer.
"""

import re
from collections.abc import Sequence

from rlvr_jax.verifiers.fences import behind_thinking, last_fence
from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.programs import verilog_simulation, verilog_yosys
from rlvr_jax.verifiers.programs.verilog_text import modules, plain, refused, top_module

_ENGINES = {"pyosys": verilog_yosys, "iverilog": verilog_simulation}
ENGINES = tuple(_ENGINES)
_TAGS = re.compile(r"</?(?:think|answer)>")
_WANTED = ["<think>", "</think>", "<answer>", "</answer>"]


def extract(response: str, *, tags: bool = True) -> str | None:
    """The code of a response, "" for an empty fence; None without code.

    Args:
      tags: the four tags are required; False: the fence may be anywhere after the thinking.
    """
    answer = behind_thinking(response)
    if tags:
        if _TAGS.findall(response) != _WANTED:
            return None
        answer = response.partition("<answer>")[2].partition("</answer>")[0]
    return None if answer is None else last_fence(answer, "verilog", "systemverilog")


def installed() -> tuple[str, ...]:
    """The installed engines."""
    return tuple(name for name, engine in _ENGINES.items() if engine.is_installed())


def check(
    code: str,
    gold: str | Sequence[str],
    *,
    engines: Sequence[str] = ENGINES,
    seconds: float = 10.0,
) -> Grade:
    """1 if the code is the same circuit as a gold, else 0; ungraded if no engine decides.

    Args:
      code: Verilog of the answer.
      gold: Verilog, or several correct sources: one equal circuit is enough.
      engines: the engines that may be used, among `ENGINES`, in this order.
      seconds: CPU time of one comparison.
    Raises:
      ValueError: an unknown engine.
    """
    if not set(engines) <= set(ENGINES):
        raise ValueError(f"verilog_verifier: engines must be of {ENGINES}, got {tuple(engines)}")
    golds = [gold] if isinstance(gold, str) else gold
    if not isinstance(golds, Sequence) or not golds or not all(isinstance(g, str) for g in golds):
        return Grade(None, stage="gold")
    code = plain(code)
    if refused(code):
        return Grade(0.0, answer=code, stage="refused")
    here = [name for name in engines if name in installed()]
    if not here:
        return Grade(None, answer=code, stage="no engine")
    found = [_compared(code, plain(one), here, seconds) for one in golds]
    best = max(found, key=lambda one: -1 if one[0] is None else one[0])
    if best[0] == 0 and any(value is None for value, _ in found):
        best = next(one for one in found if one[0] is None)
    return Grade(best[0], answer=code, stage=best[1])


def _compared(
    code: str, gold: str, engines: Sequence[str], seconds: float
) -> tuple[float | None, str]:
    """(value, where that was decided) of the code against one gold."""
    wanted, top = top_module(modules(gold)), top_module(modules(code))
    if wanted is None:
        return None, "gold"
    if top is None:
        return 0.0, "top module"
    if top.ports != wanted.ports:
        return 0.0, "ports"
    stage = "no engine"
    for engine in engines:
        verdict = _ENGINES[engine].compare(gold, wanted, code, top, seconds)
        stage = f"{engine}: {verdict}"
        if verdict in ("equal", "differ", "malformed"):
            return float(verdict == "equal"), stage
    return None, stage
