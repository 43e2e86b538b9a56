r"""Optimisation: small word problems; the grade compares the optimum of the policy's model.

    kinds: production, diet, transport, knapsack, assignment

The policy writes a linear program in the LP format (`verifiers.programs.linear_program`). HiGHS
(the package `highspy`) solves it, and its optimum must be that of our model. The model itself is
not compared: a response that knows the optimum can write it down. `meta["level"]` is 1 for
continuous variables, 2 for whole ones, 3 for the kinds in which each choice is a variable. The
rewards `stage_1` and `stage_2` are those of the method `sirl_solver`.

    python -m rlvr_jax train --task optimisation --method sirl_solver --model FOLDER \
        --samples-per-prompt 16 --epochs 2 --run-dir runs/solver
"""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from rlvr_jax.tasks.base import Prompt, Response
from rlvr_jax.tasks.checked import verifier_of
from rlvr_jax.tasks.generated import Generated, generated
from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.programs.linear_program import read_lp
from rlvr_jax.verifiers.programs.sirl_solver import solve, stage_rewards

__all__ = ["optimisation"]

INSTRUCTION = (
    "Write this as a linear program in the LP format (Maximize or Minimize, Subject To, and where"
    " they are needed Bounds, General, Binary; then End), in a ```lp block."
)
_SECONDS = 1.0
_GOODS = ("chairs", "tables", "shelves", "lamps", "benches", "stools")
_RESOURCES = ("wood", "steel", "labour", "paint")
_FOODS = ("oats", "beans", "rice", "nuts", "milk", "eggs")
_NUTRIENTS = ("protein", "iron", "fibre")
_ITEMS = ("tent", "stove", "rope", "radio", "boots", "map", "torch", "saw")
_TOWNS = ("Bern", "Lyon", "Turin", "Ghent", "Cork", "Split")
_PEOPLE, _JOBS = ("Ada", "Ben", "Cleo", "Dan"), ("cooking", "driving", "painting", "repairs")


@generated(response_tokens=320)
def optimisation() -> Generated:
    """Problems of five kinds, the same number of each.

    Metrics: stage_1, stage_2 (the rewards of `sirl_solver`).
    Raises:
      ModuleNotFoundError: HiGHS is not installed.
    """
    import highspy  # noqa: F401 - required before the first problem

    def draw(random: Random, kind: str) -> Prompt:
        while True:
            text, model, level = _PROBLEMS[kind](random)
            optimum, values = solve(read_lp(model), _SECONDS)
            if isinstance(optimum, float) and optimum != 0:
                break
        return Prompt(
            text=f"{text}\n{INSTRUCTION}",
            answer={"objective": optimum, "values": list(values)},
            kind=kind,
            gold=f"```lp\n{model}\n```",
            meta={"level": level},
        )

    solved = verifier_of(
        "rlvr_jax.verifiers.programs.sirl_solver",
        {"seconds": _SECONDS},
        wall_seconds=4.0,
        processes=8,  # HiGHS counts the cores and starts threads that it does not use
    )

    def verify(prompts: Sequence[Prompt], responses: Sequence[Response]) -> list[Grade]:
        return [
            replace(grade, info={**grade.info, **stage_rewards(response.text, grade)})
            for response, grade in zip(responses, solved(prompts, responses), strict=True)
        ]

    verify.verifier = solved.verifier
    return Generated(
        draw,
        list(_PROBLEMS),
        verify=verify,
        rewards=("outcome", "stage_1", "stage_2"),
        answers=True,
        derived=("meta",),
    )


def _sum(numbers: Sequence[int], names: Sequence[str]) -> str:
    return " + ".join(f"{n} {name}" for n, name in zip(numbers, names, strict=True))


def _amounts(numbers: Sequence[int], unit: str, names: Sequence[str]) -> str:
    return _listed([f"{n} {unit} of {name}" for n, name in zip(numbers, names, strict=True)])


def _listed(parts: Sequence[str]) -> str:
    return ", ".join(parts[:-1]) + f" and {parts[-1]}"


def _model(sense: str, goal: str, rows: Sequence[str], *sections: str) -> str:
    lines = [sense, f"  {goal}", "Subject To", *(f"  {row}" for row in rows), *sections, "End"]
    return "\n".join(lines)


def _production(random: Random) -> tuple[str, str, int]:
    goods = random.sample(_GOODS, random.randint(2, 3))
    resources = random.sample(_RESOURCES, random.randint(2, 3))
    whole = random.random() < 0.5
    profits = [random.randint(10, 60) for _ in goods]
    needs = [[random.randint(1, 9) for _ in goods] for _ in resources]
    stocks = [random.randint(40, 150) for _ in resources]
    made = [
        f"One of the {good} earns {profit} and takes {_amounts(taken, 'units', resources)}."
        for good, profit, *taken in zip(goods, profits, *needs, strict=True)
    ]
    there = _amounts(stocks, "units", resources)
    parts = "Only whole pieces can be made." if whole else "Parts of pieces count in proportion."
    text = f"A workshop makes {_listed(goods)}. {' '.join(made)} There are {there}. {parts}"
    rows = [f"{_sum(row, goods)} <= {stock}" for row, stock in zip(needs, stocks, strict=True)]
    goal = _sum(profits, goods)
    sections = ("General", f"  {' '.join(goods)}") if whole else ()
    text = f"{text} How much can be earned at most?"
    return text, _model("Maximize", goal, rows, *sections), 2 if whole else 1


def _diet(random: Random) -> tuple[str, str, int]:
    foods = random.sample(_FOODS, random.randint(2, 4))
    nutrients = random.sample(_NUTRIENTS, 2)
    prices = [random.randint(2, 15) for _ in foods]
    holds = [[random.randint(1, 12) for _ in foods] for _ in nutrients]
    wanted = [random.randint(20, 90) for _ in nutrients]
    parts = [
        f"A portion of {food} costs {price} and has {_amounts(held, 'g', nutrients)}."
        for food, price, *held in zip(foods, prices, *holds, strict=True)
    ]
    least = _amounts(wanted, "g", nutrients)
    rows = [f"{_sum(row, foods)} >= {n}" for row, n in zip(holds, wanted, strict=True)]
    text = (
        f"{' '.join(parts)} A meal needs at least {least}; parts of portions are allowed. What does"
        " the cheapest meal cost?"
    )
    return text, _model("Minimize", _sum(prices, foods), rows), 1


def _transport(random: Random) -> tuple[str, str, int]:
    towns = random.sample(_TOWNS, 4 if random.random() < 0.5 else 5)
    sources, targets = towns[:2], towns[2:]
    demands = [random.randint(10, 40) for _ in targets]
    first = random.randint(sum(demands) // 3, 2 * sum(demands) // 3)
    supplies = [first, sum(demands) - first + random.randint(0, 20)]
    costs = {(a, b): random.randint(1, 20) for a in sources for b in targets}
    offered = _listed([f"{n} loads in {a}" for a, n in zip(sources, supplies, strict=True)])
    needed = _listed([f"{b} needs {n}" for b, n in zip(targets, demands, strict=True)])
    prices = _listed([f"{cost} from {a} to {b}" for (a, b), cost in costs.items()])
    rows = [
        " + ".join(f"{a}_{b}" for b in targets) + f" <= {n}"
        for a, n in zip(sources, supplies, strict=True)
    ] + [
        " + ".join(f"{a}_{b}" for a in sources) + f" >= {n}"
        for b, n in zip(targets, demands, strict=True)
    ]
    text = (
        f"There are {offered}. {needed}. To move a load costs {prices}. What do the deliveries cost"
        " at least?"
    )
    goal = _sum([*costs.values()], [f"{a}_{b}" for a, b in costs])
    return text, _model("Minimize", goal, rows), 3


def _knapsack(random: Random) -> tuple[str, str, int]:
    items = random.sample(_ITEMS, random.randint(4, 6))
    values = [random.randint(5, 40) for _ in items]
    weights = [random.randint(2, 15) for _ in items]
    room = random.randint(max(weights), sum(weights) * 2 // 3)
    things = _listed(
        [f"a {name} (worth {v}, {w} kg)" for name, v, w in zip(items, values, weights, strict=True)]
    )
    text = (
        f"You may carry {room} kg and choose among {things}, each at most once. What is the most"
        " that you can carry worth?"
    )
    rows = [f"{_sum(weights, items)} <= {room}"]
    goal = _sum(values, items)
    return text, _model("Maximize", goal, rows, "Binary", f"  {' '.join(items)}"), 3


def _assignment(random: Random) -> tuple[str, str, int]:
    count = random.randint(2, 4)
    people, jobs = random.sample(_PEOPLE, count), random.sample(_JOBS, count)
    hours = {(a, b): random.randint(1, 30) for a in people for b in jobs}
    times = " ".join(
        f"{a} takes {_listed([f'{hours[a, b]} hours for {b}' for b in jobs])}." for a in people
    )
    rows = [" + ".join(f"{a}_{b}" for b in jobs) + " = 1" for a in people]
    rows += [" + ".join(f"{a}_{b}" for a in people) + " = 1" for b in jobs]
    goal = _sum([*hours.values()], [f"{a}_{b}" for a, b in hours])
    names = " ".join(f"{a}_{b}" for a, b in hours)
    text = (
        f"{times} Everybody does one of the jobs and each job is done by one person. How many hours"
        " does it take in total at least?"
    )
    return text, _model("Minimize", goal, rows, "Binary", f"  {names}"), 3


_PROBLEMS = {
    "production": _production,
    "diet": _diet,
    "transport": _transport,
    "knapsack": _knapsack,
    "assignment": _assignment,
}
