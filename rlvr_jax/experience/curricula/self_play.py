"""Questions that the policy makes up for itself, kind by kind, from those it has made up before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rlvr_jax.experience.asks import Ask
from rlvr_jax.experience.parts import Curriculum, Setting
from rlvr_jax.experience.store import (
    Store,
    empty_store,
    newest,
    oldest,
    push,
    taken,
    uniform_places,
)
from rlvr_jax.tasks.worlds.triplets import (
    KINDS,
    Triplet,
    World,
    graded_proposal,
    propose_prompt,
    solve_prompt,
)
from rlvr_jax.types.hyperparameters import Count
from rlvr_jax.types.parts import part

__all__ = ["PROPOSE", "as_bytes", "cell_of", "propose_and_solve", "to_solve", "world_of"]

BYTES = 2048
"""Of a stored triplet; longer ones are not stored."""
SOLVE, PROPOSE = 0, 1


def cell_of(kind: int, role: int) -> int:
    """The label of rows of a kind and a role (0 solves, 1 proposes)."""
    return kind + len(KINDS) * role


def as_bytes(triplets: Sequence[Triplet]) -> np.ndarray:
    """Triplets as rows of bytes, uint8 [n, BYTES]; those that are too long are left out."""
    lines = [line for t in triplets if len(line := t.text().encode()) <= BYTES]
    rows = np.zeros((len(lines), BYTES), np.uint8)
    for row, line in zip(rows, lines, strict=True):
        row[: len(line)] = np.frombuffer(line, np.uint8)
    return rows


def _triplets(store: Store, places: np.ndarray) -> list[Triplet]:
    rows = taken(store, np.asarray(places, int))["triplet"]
    return [Triplet.of(bytes(row).rstrip(b"\0").decode()) for row in rows]


def to_solve(store: Store, number: int, step: int, random: np.random.Generator) -> np.ndarray:
    """Places of questions to be solved: those of the step before first, then others at random."""
    fresh = [place for place in newest(store, number).tolist() if store.step[place] == step - 1]
    rest = random.choice(oldest(store), number - len(fresh))
    return np.array([*fresh, *rest], int)


def world_of(name: str, setting: Setting) -> World:
    """The world of a run's task.

    Raises:
      ValueError: it has none; names the part.
    """
    if setting.task.world is None:
        raise ValueError(
            f"{name}: task must have a world (Task.world), such as expressions, got"
            f" {setting.task.name!r}"
        )
    return setting.task.world


@part
def propose_and_solve(references: Count, capacity: Count) -> Curriculum:
    """Asks the policy for questions of every kind, and to answer those it has made up before.

    The asks are dealt out to six cells in turn (`Rollouts.cell`), from step to step: 0 to 2 solve
    deductions, abductions, inductions, 3 to 5 propose them. Who proposes sees some triplets of the
    kind's buffer; who solves gets those that came in the step before, then others of the buffer.
    Valid proposals enter the buffer of their kind, which begins with the world's first triplet. No
    prompt of the task is asked.

    Args:
      references: triplets that a proposer sees at most (K).
      capacity: triplets of each buffer, the newest ones.
    Reads: Task.world, Grade.answer (of a proposal: its triplet). Metrics: known/<kind> (triplets in
      the buffer), new/<kind> (of the step).
    Raises:
      ValueError: a number below 1; when a run begins, a task without a world.
    Source: Absolute Zero, https://github.com/LeapLabTHU/Absolute-Zero-Reasoner.
    """

    def init(setting):
        first = as_bytes([world_of("propose_and_solve", setting).first])
        empty = empty_store(capacity, triplet=((BYTES,), np.uint8))
        return tuple(push(empty, {"triplet": first}, -1) for _ in KINDS)

    def propose(asks, state, turn):
        del asks
        setting, random = turn.setting, turn.random().spawn(turn.round + 1)[-1]
        world = world_of("propose_and_solve", setting)
        # Of a step that is no multiple of the cells, the next one goes on where it ended.
        first = turn.step * setting.prompts
        cells = [(first + place) % (2 * len(KINDS)) for place in range(setting.prompts)]
        prompts = []
        for number, kind in enumerate(KINDS):
            wanted = cells.count(cell_of(number, SOLVE))
            store = state[number]
            known = _triplets(store, to_solve(store, wanted, turn.step, random))
            prompts.append([solve_prompt(world, kind, triplet) for triplet in known])
        found = []
        start = len(setting.task.train) + turn.round * setting.prompts
        for place, cell in enumerate(cells):
            role, number = divmod(cell, len(KINDS))
            if role == PROPOSE:
                shown = uniform_places(state[number], references, random)
                prompt = propose_prompt(world, KINDS[number], _triplets(state[number], shown))
            else:
                prompt = prompts[number].pop(0)
            found.append(
                Ask(prompt, start + place, setting.drawn_samples, round=turn.round, cell=cell)
            )
        return found

    def observe(state, turn, seen, learned):
        del learned
        state, told = list(state), {}
        for number, kind in enumerate(KINDS):
            known = {triplet.text() for triplet in _triplets(state[number], oldest(state[number]))}
            new: dict[str, Triplet] = {}
            for batch in seen:
                for ask, grade in zip(batch.asks, batch.grades, strict=True):
                    triplet = graded_proposal(ask.prompt, grade)
                    if triplet is None or ask.prompt.answer["kind"] != kind:
                        continue
                    if triplet.text() not in known:
                        new[triplet.text()] = triplet
            rows = as_bytes(list(new.values()))
            if len(rows):
                state[number] = push(state[number], {"triplet": rows}, turn.step)
            told[f"known/{kind}"] = float(state[number].held)
            told[f"new/{kind}"] = float(len(rows))
        return tuple(state), told

    return Curriculum(propose, init, observe, writes=frozenset({"cell"}))
