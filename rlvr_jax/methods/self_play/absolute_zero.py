"""Absolute Zero: the policy proposes programs with inputs, and solves for the missing part.

"Absolute Zero: Reinforced Self-play Reasoning with Zero Data",
https://github.com/LeapLabTHU/Absolute-Zero-Reasoner

    deduction   program and input, the output is missing;  abduction: the input is missing;
    induction   the program is missing: half of the pairs are shown, the others check it
    propose     sees some of the buffer, must write another valid one;  learnability 1 - s, or 0
    R           solver: 1 correct, -0.5 incorrect, -1 malformed;  proposer: learnability if above 0,
                -0.5 if 0, -1 if not valid
    A           = (R - mean) / √(var + 1e-8) over the tokens of one kind and role, var with n - 1
    loss        = PPO's clip on the token mean, all six cells in one update; no KL

s is the fraction of correct solutions. The method runs on `expressions`, whose base model knows the
form, or on `python_functions`, whose programs run in the sandbox. Use one sample per prompt,
because groups are not compared, and a multiple of six prompts. Buffers begin with one program and
without seed batches. An induction of `python_functions` is requested with ten inputs, five of them
hidden. The proposals of the base model of `expressions` have two or four, as its inputs are the
numbers 1 to 12.

Left out: seed batches; messages next to inductions.
Reports: Qwen2.5-7B-Coder without outside data: 10.2 points on the mean of code and maths, 15.2 in
maths and 5.0 in code.
Traps: Means are over tokens, so long responses have more weight. The released check evaluates the
model's text, and `1) or (True` passes it; here values are compared as values.
"""

from collections.abc import Iterable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from rlvr_jax.experience import Curriculum, RunInfo, SampleRequest, Stage, experience
from rlvr_jax.experience.rewards.outcomes import Rate
from rlvr_jax.experience.stages.problems.written import pass_rates
from rlvr_jax.experience.store import (
    Store,
    as_bytes,
    as_texts,
    empty_store,
    oldest,
    push,
    taken,
    uniform_places,
)
from rlvr_jax.objectives import (
    Transform,
    advantage_by_cell,
    clipped_objective,
    plain_reward,
    whitened,
)
from rlvr_jax.tasks.worlds.triplets import (
    KINDS,
    Triplet,
    World,
    graded_proposal,
    is_proposal,
    propose_prompt,
    solve_prompt,
)
from rlvr_jax.types import Method, Recipe, Shown, arguments_of, is_correct, part
from rlvr_jax.types.hyperparameters import (
    ClipHigh,
    ClipLow,
    Count,
    Finite,
    NonNegative,
    NonNegativeInt,
)

BYTES = 2048
"""Size of a stored triplet; longer ones are not stored."""

SOLVE, PROPOSE = 0, 1
"""Roles."""

READABLE = "readable"
"""Key of `Grade.info`: whether the response has an answer, or a proposal; default 1."""


@part(writes=frozenset({"cell"}))
def propose_and_solve(references: Count, capacity: Count) -> Curriculum:
    """Requests proposals of every kind, and solutions of earlier proposals.

    The requests of successive steps are assigned to six cells in turn (record `cell`). Cells 0 to 2
    solve deductions, abductions and inductions; cells 3 to 5 propose them. A proposer sees some
    triplets of the kind's buffer. A solver gets those that were added in the previous step, then
    others of the buffer. Valid proposals enter the buffer of their kind, which begins with the
    world's first triplet. No prompt of the task is used.

    Args:
      references: maximum number of triplets that a proposer sees (K).
      capacity: maximum number of triplets of each buffer, the newest ones.
    Reads: Task.world, Grade.answer (of a proposal: its triplet). Metrics: known/<kind> (triplets in
      the buffer), new/<kind> (triplets of the step).
    """

    def init(setting):
        first = _stored([_world(setting).first])
        empty = empty_store(capacity, triplet=((BYTES,), np.uint8))
        return tuple(push(empty, {"triplet": first}, -1) for _ in KINDS)

    def propose(requests, state, turn):
        setting, random = turn.setting, turn.random().spawn(turn.round + 1)[-1]
        world = _world(setting)
        # Steps of a size that is not a multiple of six continue the cycle of the step before.
        first = turn.step * setting.prompts
        cells = [(first + place) % (2 * len(KINDS)) for place in range(setting.prompts)]
        prompts = []
        for number, kind in enumerate(KINDS):
            num_to_solve = cells.count(cell_of(number, SOLVE))
            store = state[number]
            known = _triplets(store, to_solve(store, num_to_solve, turn.step, random))
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
                SampleRequest(
                    prompt, start + place, setting.initial_samples, round=turn.round, cell=cell
                )
            )
        return found

    def observe(state, turn, seen, learned):
        state, metrics = list(state), {}
        for number, kind in enumerate(KINDS):
            known = {triplet.text() for triplet in _triplets(state[number], oldest(state[number]))}
            new: dict[str, Triplet] = {}
            for batch in seen:
                for request, grade in zip(batch.requests, batch.grades, strict=True):
                    triplet = graded_proposal(request.prompt, grade)
                    if triplet is None or request.prompt.answer["kind"] != kind:
                        continue
                    if triplet.text() not in known:
                        new[triplet.text()] = triplet
            rows = _stored(new.values())
            if len(rows):
                state[number] = push(state[number], {"triplet": rows}, turn.step)
            metrics[f"known/{kind}"] = float(state[number].held)
            metrics[f"new/{kind}"] = float(len(rows))
        return tuple(state), metrics

    return Curriculum(propose, init, observe)


def _world(setting: RunInfo) -> World:
    """The world of a run's task, if it has one."""
    if setting.task.world is None:
        raise ValueError(
            "propose_and_solve: task must have a world (Task.world), such as expressions, got"
            f" {setting.task.name!r}"
        )
    return setting.task.world


def cell_of(kind: int, role: int) -> int:
    """The label of rows of a kind and a role (0 solves, 1 proposes)."""
    return kind + len(KINDS) * role


def to_solve(store: Store, number: int, step: int, random: np.random.Generator) -> np.ndarray:
    """Positions of triplets to solve: those of the previous step first, then others at random.

    Args:
      store: triplets of one kind.
      number: of positions; a triplet may occur several times.
      step: current step.
      random: source of the random numbers; its state advances.
    """
    newest = oldest(store)[::-1][:number]
    fresh = [place for place in newest.tolist() if store.step[place] == step - 1]
    rest = random.choice(oldest(store), number - len(fresh))
    return np.array([*fresh, *rest], int)


def _stored(triplets: Iterable[Triplet]) -> np.ndarray:
    """Triplets as rows of bytes, uint8 [n, BYTES]; longer ones are left out."""
    rows = as_bytes([triplet.text() for triplet in triplets], BYTES)
    return rows[rows.any(axis=1)]


def _triplets(store: Store, places: np.ndarray) -> list[Triplet]:
    return list(map(Triplet.of, as_texts(taken(store, np.asarray(places, int))["triplet"])))


@part(by_row=True)
def earn_learnability(samples: Count, incorrect: Finite = -0.5, malformed: Finite = -1.0) -> Stage:
    """Rewards proposals by how often the policy solves them, and answers by their outcome.

    It must follow `propose_and_solve`. Each valid proposal is solved a few times; these rows are
    not trained. With s the fraction of correct solutions a valid proposal earns 1 - s if 0 < s < 1,
    else `incorrect`. An invalid proposal earns `malformed`. An answer earns 1, `incorrect` or
    `malformed`.

    Args:
      samples: number of solutions of each proposal.
      incorrect: reward of incorrect answers, and of proposals that are never or always solved.
      malformed: reward of responses without an answer or without a valid proposal.
    Reads: Grade.info["readable"], Grade.answer (of a proposal: its triplet). Writes: reward.
    Metrics: valid_proposals (fraction), proposal_rate (pass rate of valid ones),
      learnable_proposals (fraction of the valid ones), solved (fraction of correct answers).
    """

    def apply(batch, actor, state, turn):
        task = turn.setting.task
        proposed = np.array([is_proposal(request.prompt) for request in batch.requests])
        correct = batch.decided & is_correct(batch.rollouts.outcome)
        readable = np.array([grade.info.get(READABLE, 1.0) > 0 for grade in batch.grades])
        reward = np.asarray(composed_solver_reward(correct, readable, incorrect, malformed)).copy()
        metrics = {}
        if (~proposed).any():
            metrics["solved"] = float(correct[~proposed].mean())
        if proposed.any():
            read = map(graded_proposal, batch.prompts, batch.grades)
            found = {row: triplet for row, triplet in enumerate(read) if triplet is not None}
            valid = np.isin(np.arange(len(batch)), list(found))
            worth = np.zeros(len(batch))
            metrics["valid_proposals"] = float(valid[proposed].mean())
            if found:
                start = len(task.train) + turn.setting.prompts * turn.setting.rounds
                prompts = [
                    solve_prompt(task.world, batch.requests[row].prompt.answer["kind"], triplet)
                    for row, triplet in found.items()
                ]
                requests = [
                    SampleRequest(p, start + place, samples) for place, p in enumerate(prompts)
                ]
                rates = pass_rates(actor.grade(actor.draw(requests, turn.key)).outcomes())
                worth[list(found)] = np.asarray(learnability(rates))
                metrics["proposal_rate"] = float(rates.mean())
                metrics["learnable_proposals"] = float((worth[list(found)] > 0).mean())
            earned = composed_proposer_reward(worth, valid, incorrect, malformed)
            reward[proposed] = np.asarray(earned)[proposed]
        return batch.rewarded(reward), state, metrics

    return apply


def learnability(rate: Rate) -> Rate:
    """1 - s where s is above 0, else 0."""
    return jnp.where(rate > 0, 1 - rate, 0)


def composed_solver_reward(
    correct: Bool[Array, "..."], well_formed: Bool[Array, "..."], incorrect: float, malformed: float
) -> Rate:
    """1 for a correct answer, `incorrect` for an incorrect one, `malformed` if not well-formed.

    Args:
      correct: whether the answer is correct.
      well_formed: whether the response has an answer.
      incorrect: reward of an incorrect answer.
      malformed: reward of a response without an answer.
    """
    return jnp.where(well_formed, jnp.where(correct, 1.0, incorrect), malformed)


def composed_proposer_reward(
    learnable: Rate, well_formed: Bool[Array, "..."], worthless: float, malformed: float
) -> Rate:
    """The learnability if above 0, else `worthless`; `malformed` for invalid proposals.

    Args:
      learnable: learnability of the proposal, in [0, 1).
      well_formed: whether the proposal is valid.
      worthless: reward of a proposal that is never or always solved.
      malformed: reward of a response without a valid proposal.
    """
    value = jnp.where(learnable > 0, learnable, worthless)
    return jnp.where(well_formed, value, malformed)


@part
def whitened_by_cell(
    estimator: Transform,
    ddof: NonNegativeInt = 0,
    epsilon: NonNegative = 0.0,
    floor: NonNegative = 1e-8,
) -> Transform:
    """`whitened` with a mean and a variance for each kind and role (record `cell`).

    Args:
      estimator: advantages before whitening.
      ddof: the sum of squares is divided by n - ddof, n the number of tokens.
      epsilon: added to the variance (ε); this or `floor` must be positive.
      floor: smallest square of the divisor.
    """
    own = whitened(estimator, ddof, epsilon, floor)
    return advantage_by_cell(dict.fromkeys(range(2 * len(KINDS)), own), other=own)


@arguments_of(earn_learnability, "incorrect", "malformed")
def absolute_zero(
    references: Count = 6,
    capacity: Count = 16384,
    solver_samples: Count = 8,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    **rewards: Any,
) -> Recipe:
    """Applies REINFORCE++ by kind and role to questions that the policy writes.

    Args:
      references: maximum number of earlier triplets that a proposer sees (K).
      capacity: maximum number of triplets of each buffer.
      solver_samples: solutions of a proposal, from which its learnability is estimated.
    """
    return Recipe(
        objective=clipped_objective(
            clip_low,
            clip_high,
            advantage=whitened_by_cell(plain_reward(), ddof=1, epsilon=1e-8, floor=0.0),
        ),
        experience=experience(
            propose_and_solve(references, capacity),
            stages=[earn_learnability(solver_samples, **rewards)],
        ),
    )


METHOD = Method(
    absolute_zero,
    changes="advantage, curriculum, reward",
    baseline="batch",
    shown=Shown(
        "expressions",
        "experience/learnable_proposals",
        without="reinforce_plus_plus",
        settings={"samples_per_prompt": 1, "prompts_per_step": 48},
    ),
)
