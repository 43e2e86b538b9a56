"""Optimisation models: a linear program as a text, solved by HiGHS, its optimum compared.

    correct = |v − v̂| / (|v| + 1) < 1e-6,   or both infeasible, or both unbounded

The answer is the last ```lp fence after the thinking, read by our own parser (`linear_program`). No
code of the model runs; in the paper its Python runs. A text without variables is not a model, even
if it has a number. The answer is ungraded if the solver stops at its limit, or without the package
`highspy`.

Optima have ties, so values of variables do not decide. If the gold lists them, `values_hit` in
`info` is the fraction of them in the solution (sorted, 3 digits): the paper's h. `stage_rewards`
returns the rewards of the paper's two stages of training.

Source: SIRL, https://github.com/Cardinal-Operations/SIRL. There a correct objective of 0 never
counts and 1e-5 is read as 1; not here.
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rlvr_jax.verifiers.fences import behind_thinking, last_fence
from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.programs.expressions import Unreadable
from rlvr_jax.verifiers.programs.linear_program import LinearProgram, read_lp

_TOLERANCE = 1e-6
_SECTIONS = [
    re.compile(rf"^\s*{words}\b", re.IGNORECASE | re.MULTILINE)
    for words in (r"(?:max|min)\w*", r"(?:subject\s+to|such\s+that|s\.?t\.?)", "end")
]
_OPEN = ("infeasible", "unbounded")


def extract(response: str) -> str | None:
    """The model of a response, None without one."""
    answer = behind_thinking(response)
    return None if answer is None else last_fence(answer, "lp")


def check(model: str, gold: Mapping[str, Any], *, seconds: float = 1.0) -> Grade:
    """1 if the model's optimum is the gold's, else 0.

    Args:
      model: a linear program as a text.
      gold: "objective": a number, "infeasible" or "unbounded". Optional "values": those of the
        variables of an optimum, for `values_hit`.
      seconds: limit of the solver.
    Metrics: executes (1 for a model that can be read), values_hit (fraction of the gold's values in
      the solution).
    """
    wanted = gold.get("objective") if isinstance(gold, Mapping) else None
    number = isinstance(wanted, int | float) and not isinstance(wanted, bool)
    if not (number and math.isfinite(wanted)) and wanted not in _OPEN:
        return Grade(None, answer=model, stage="gold")
    try:
        program = read_lp(model)
    except Unreadable:
        return Grade(0.0, answer=model, stage="unreadable", info={"executes": 0.0})
    try:
        found, values = solve(program, seconds)
    except ModuleNotFoundError:
        return Grade(None, answer=model, stage="no solver")
    if found is None:
        return Grade(None, answer=model, stage="limit")
    info = {"executes": 1.0}
    if isinstance(found, str) or not number:
        return Grade(float(found == wanted), answer=model, stage=str(found)[:20], info=info)
    right = abs(wanted - found) / (abs(wanted) + 1) < _TOLERANCE
    if gold.get("values"):
        info["values_hit"] = right * _hit(gold["values"], values)
    return Grade(float(right), answer=f"{found:.9g}", stage="optimum", info=info)


def stage_rewards(response: str, grade: Grade) -> dict[str, float]:
    """The rewards of both stages: answer + ½ format + executes, and answer + executes + answer · h.

    Where the gold lists no values, h is 0.
    """
    answer = grade.outcome or 0.0
    executes, hit = (grade.info.get(name, 0.0) for name in ("executes", "values_hit"))
    first = answer + 0.5 * form(response) + executes
    return {"stage_1": first, "stage_2": answer + executes + answer * hit}


def form(response: str) -> float:
    """The format of a response with a model, in [0, 2]; 0 without one.

    The format is 2 minus penalties: ⅛ for a repeated fence, ¼ for each missing section (objective,
    constraints, end), ⅓ for each two sections in the wrong order. In the paper's code a text
    without any model has ⅔.
    """
    model = extract(response)
    if model is None:
        return 0.0
    places = [found.start() if (found := each.search(model)) else -1 for each in _SECTIONS]
    there = [place for place in places if place >= 0]
    late = sum(one > two for one, two in itertools.pairwise(there))
    repeated = response.count("```lp") > 1
    return 2 - repeated / 8 - (len(places) - len(there)) / 4 - late / 3


def solve(program: LinearProgram, seconds: float) -> tuple[float | str | None, Sequence[float]]:
    """The optimum and the values of its variables; "infeasible", "unbounded", or None at a limit.
    Raises ModuleNotFoundError without `highspy`."""
    import highspy
    import numpy as np

    names = program.variables
    place = {name: number for number, name in enumerate(names)}
    infinite = highspy.kHighsInf
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(names), len(program.rows)
    model.sense_ = highspy.ObjSense.kMaximize if program.maximize else highspy.ObjSense.kMinimize
    model.offset_ = program.offset
    model.col_cost_ = np.array([program.cost.get(name, 0.0) for name in names])
    model.col_lower_ = _clipped([program.low.get(name, 0.0) for name in names], infinite)
    model.col_upper_ = _clipped([program.high.get(name, math.inf) for name in names], infinite)
    model.row_lower_ = _clipped([least for _, least, _ in program.rows], infinite)
    model.row_upper_ = _clipped([most for _, _, most in program.rows], infinite)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.cumsum([0, *(len(row) for row, _, _ in program.rows)])
    model.a_matrix_.index_ = np.array([place[name] for row, _, _ in program.rows for name in row])
    model.a_matrix_.value_ = np.array([v for row, _, _ in program.rows for v in row.values()])
    if program.whole:
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        model.integrality_ = [kinds[name in program.whole] for name in names]
    solver = highspy.Highs()
    for option, value in {
        "output_flag": False,
        "threads": 1,
        "parallel": "off",
        "time_limit": seconds,
        "mip_rel_gap": _TOLERANCE / 10,
        "mip_abs_gap": 0.0,
    }.items():
        solver.setOptionValue(option, value)
    if solver.passModel(model) == highspy.HighsStatus.kError:
        return "infeasible", ()  # bounds that cross
    solver.run()
    status = solver.getModelStatus()
    if status == highspy.HighsModelStatus.kUnboundedOrInfeasible:
        solver.setOptionValue("presolve", "off")
        solver.run()
        status = solver.getModelStatus()
    if status == highspy.HighsModelStatus.kOptimal:
        return solver.getInfo().objective_function_value, list(solver.getSolution().col_value)
    return {
        highspy.HighsModelStatus.kInfeasible: "infeasible",
        highspy.HighsModelStatus.kUnbounded: "unbounded",
    }.get(status), ()


def _clipped(values: Sequence[float], infinite: float) -> Any:
    import numpy as np

    return np.clip(np.array(values, float), -infinite, infinite)


def _hit(wanted: Sequence[float], found: Sequence[float]) -> float:
    """The fraction of the gold's values that are found, each as often as it occurs."""
    have, need = (Counter(round(value, 3) + 0.0 for value in values) for values in (found, wanted))
    return sum((have & need).values()) / max(sum(need.values()), 1)
