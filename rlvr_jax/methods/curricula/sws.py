"""SwS: kinds of prompts that the first epochs do not learn get problems that the policy writes.

"SwS: Self-aware Weakness-driven Problem Synthesis in Reinforcement Learning for LLM Reasoning",
https://github.com/MasterVito/SwS

    F(x)    = 1 if the accuracy of x was below ½ in each of T1 epochs, and its slope below 0
    budget  of a kind ∝ the fraction of its prompts with F = 1
    p(c_1)  ∝ frequency in failed prompts;  p(c_k) ∝ exp(score(c_k | c_1 … c_{k-1}) / τ)
    write   a problem of these concepts;  label = majority of m answers, if it has half of them
    pool    problems that the policy solves in ¼ to ¾ of its m answers
    phase 2 starts from the initial weights, on the prompts and on the pool
    loss    = PPO's clip-higher on the token mean, of groups with accuracy in [1/8, 7/8], no KL

A prompt that is never solved has slope 0, and the paper's rule ignores it. With `included` it
counts as failed, as in the released list. The policy writes `written` problems in each step of
phase 2 and answers them `votes` times in the next step. Accepted ones join the pool, from which a
`fraction` of the later prompts comes. The paper writes all problems between the phases. Its
labels come from another model. Here they come from the policy, so the majority is also the
accuracy. A task that reads written problems
(`Task.read_problem`) labels them itself. Concepts are `Prompt.meta["concepts"]`, else the words of
a prompt. Prompts with `Prompt.meta["synthetic"]`, which other models may have written before the
run, also count as new. The `fraction` of weak prompts and T1 (`epochs`) are ours.

Left out: other models that name concepts, write, judge and answer new problems.
Reports: mean of eight benchmarks over the same RL without new problems: 7B 10.0 %, 32B 7.7 %.
Traps: With an empty pool, a kind repeats its failed prompts. One epoch has no slope. The released
sampler confuses neighbours.
"""

import functools
from typing import Any, NamedTuple

import numpy as np

from rlvr_jax.experience import Curriculum, SampleRequest, experience, outside, refill
from rlvr_jax.experience.batch import ROUNDING, Batch
from rlvr_jax.experience.curricula.batches import order_of, requests_for
from rlvr_jax.experience.curricula.history import visits_of
from rlvr_jax.experience.curricula.picks import mixed
from rlvr_jax.experience.prompts import encode_text
from rlvr_jax.experience.stages.problems.written import (
    BYTES,
    WRITTEN,
    read_problems,
    read_stored,
    requests_of_problems,
    stored,
    with_request,
)
from rlvr_jax.experience.store import Store, empty_store, oldest, push, taken
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.tasks import Prompt
from rlvr_jax.tasks.synthesis.concepts import budgets, combination, failed
from rlvr_jax.tasks.synthesis.majority import labelled
from rlvr_jax.types import Method, Recipe, Shown, part, replace
from rlvr_jax.types.hyperparameters import (
    ClipHigh,
    ClipLow,
    Count,
    Epsilon,
    NonNegativeInt,
    Positive,
    Unit,
)
from rlvr_jax.types.passing import arguments_of

REQUEST = "Write a new problem about the subjects in the last line, between ```text and ```."

_SUBJECTS = 256
"""Largest number of failed prompts of a kind whose concepts are combined."""


class _State(NamedTuple):
    """Accuracy of each prompt in each epoch, [P, T], NaN without a visit; the step at which phase 2
    begins; the failed prompts, bool [P], and the weight of each kind, [K], from then on. Problems
    that were written in the last step, as bytes (zeros: none); accepted problems with their kinds.
    """

    accuracy: np.ndarray
    shift: np.ndarray
    fail: np.ndarray
    weight: np.ndarray
    written: np.ndarray
    pool: Store


@part
def shift_to_weaknesses(
    epochs: Count,
    threshold: Unit,
    fraction: Unit,
    included: bool = False,
    written: NonNegativeInt = 32,
    concepts: Count = 5,
    temperature: Positive = 0.2,
    votes: Count = 8,
    agreement: Unit = 0.5,
    easiest: Unit = 0.75,
    hardest: Unit = 0.25,
    capacity: Count = 1024,
) -> Curriculum:
    """Trains some epochs on all prompts, and then more on the kinds with many failed prompts.

    A prompt has failed if its accuracy was below the threshold in every epoch and fell (`failed`).
    After the epochs, the weights are reset to the initial ones. From then on, `fraction` of a
    step's prompts come from kinds in proportion to their fraction of failed prompts. They are new
    problems of the kind, or failed prompts for a kind without any. If none has failed, all kinds
    with new problems count equally. Other prompts come in shuffled epochs.

    Each step of the second phase also rates: the policy writes problems, and answers those of the
    step before. Ratings are not trained on.

    Args:
      epochs: epochs of the first phase (T1).
      threshold: accuracy that a failed prompt never reaches.
      fraction: fraction of a step's prompts in the second phase that come from weak kinds.
      included: whether a slope of exactly 0 counts as falling, as for prompts never solved.
      written: problems that are written in a step; 0: none.
      concepts: concepts of a new problem (k).
      temperature: of the choice of concepts (τ).
      votes: answers to a new problem (m).
      agreement: fraction of the answers that the majority must have.
      easiest, hardest: bounds of the accuracy of an accepted problem.
      capacity: maximum number of accepted problems, the newest ones.
    Metrics: failed_prompts (prompts), weak_asks (fraction of the prompts), written_problems,
      accepted_problems, pool_problems (problems), synthetic_prompts (prompts from the pool).
    Raises:
      ValueError: bounds that do not ascend; when a run begins, a task that cannot label problems.
    """
    if hardest > easiest:
        raise ValueError(
            f"shift_to_weaknesses: hardest must be at most easiest, got {hardest:g} and {easiest:g}"
        )

    def of_task(setting):
        prompts = setting.task.train
        kinds = sorted({prompt.kind for prompt in prompts})
        kind = np.array([kinds.index(prompt.kind) for prompt in prompts])
        made = np.array([bool(prompt.meta.get("synthetic")) for prompt in prompts])
        return kinds, kind, made

    def init(setting):
        task = setting.task
        if written and task.read_problem is None and not task.answers:
            raise ValueError(
                "shift_to_weaknesses: task must read problems (Task.read_problem) or have answers"
                f" (Task.answers) to label written problems, got {task.name!r}; written=0 writes"
                " none"
            )
        kinds, _, made = of_task(setting)
        prompts = len(made)
        steps = -(-(prompts - int(made.sum())) // setting.prompts)
        return _State(
            np.full((prompts, epochs), np.nan, np.float32),
            np.int32(epochs * steps),
            np.zeros(prompts, bool),
            np.zeros(len(kinds), np.float32),
            np.zeros((max(written, 1), BYTES), np.uint8),
            empty_store(capacity, problem=((BYTES,), np.uint8), kind=((), np.int32)),
        )

    def propose(requests, state, turn):
        setting, wanted = turn.setting, turn.setting.prompts
        _, kind, made = of_task(setting)
        originals = np.flatnonzero(~made)
        if turn.step < state.shift:
            # Every original prompt once per epoch, in a new order.
            each = int(state.shift) // epochs
            epoch, place = divmod(turn.step, each)
            random = np.random.default_rng([setting.seed, epoch, len(originals)])
            first = (place + turn.round * each) * wanted
            order = random.permutation(originals)
            return requests_for(turn, order[(first + np.arange(wanted)) % len(order)])
        random = turn.random().spawn(turn.round + 1)[-1]
        weak = int(fraction * wanted) if state.weight.any() else 0
        chosen: list[int] = []
        places: list[int] = []
        for of_kind in random.choice(len(state.weight), weak, p=_chances(state)):
            new = oldest(state.pool)
            new = new[state.pool.rows["kind"][new] == of_kind]
            given = np.flatnonzero((kind == of_kind) & made)
            number = random.integers(len(new) + len(given)) if len(new) + len(given) else -1
            if 0 <= number < len(new):
                places.append(int(new[number]))
            elif number >= 0:
                chosen.append(int(given[number - len(new)]))
            else:
                chosen.append(int(random.choice(np.flatnonzero((kind == of_kind) & state.fail))))
        plain = order_of(setting).indices(turn.step, turn.round, setting.rounds)
        plain = [number for number in plain if not made[number]] or originals.tolist()
        chosen += np.resize(plain, wanted - weak).tolist()
        pool = [
            SampleRequest(
                *read_stored(taken(state.pool, np.array([place]))["problem"]),
                len(kind) + written + place,
                setting.initial_samples,
                WRITTEN,
                round=turn.round,
            )
            for place in places
        ]
        return [*ratings(state, turn, kind), *pool, *requests_for(turn, chosen)]

    def ratings(state, turn, kind):
        """Requests for new problems, and for answers to those of the last step."""
        if turn.round or not written:
            return []
        task, random = turn.setting.task, turn.random()
        last = read_stored(state.written[state.written.any(axis=1)])
        asked = requests_of_problems(last, [-1] * len(last), votes, task)
        fails = [np.flatnonzero((kind == k) & state.fail) for k in range(len(state.weight))]
        for place, of_kind in enumerate(random.choice(len(fails), written, p=_chances(state))):
            if not len(fails[of_kind]):
                continue
            members = random.permutation(fails[of_kind])[:_SUBJECTS]
            subjects = [_concepts(task.train[number]) for number in members]
            material = " ".join(combination(random, subjects, concepts, temperature))
            (request,) = requests_for(turn, members[:1])
            view = with_request(REQUEST, material)
            asked.append(replace(request, view=view, samples=1, first_sample=place))
        return [replace(request, rating=True) for request in asked]

    def observe(state, turn, seen, learned):
        kinds, kind, made = of_task(turn.setting)
        metrics = {"failed_prompts": float(state.fail.sum()), "weak_asks": 0.0}
        if turn.step >= state.shift:
            weak = int(fraction * turn.setting.prompts) if state.weight.any() else 0
            state, counts = rated(state, turn, seen, kinds)
            return state, metrics | counts | {"weak_asks": weak / turn.setting.prompts}
        names = ("written_problems", "accepted_problems", "pool_problems", "synthetic_prompts")
        metrics |= dict.fromkeys(names, 0.0)
        accuracy = state.accuracy.copy()
        epoch = turn.step // (int(state.shift) // epochs)
        for visit in visits_of(seen, len(accuracy)):
            accuracy[visit.number, epoch] = visit.rate
        state = state._replace(accuracy=accuracy)
        if turn.step + 1 < state.shift:
            return state, metrics
        # Prompts that were not visited or not graded have not failed.
        known = ~np.isnan(accuracy).any(axis=1) & ~made
        fail = known & failed(np.nan_to_num(accuracy, nan=1.0), threshold, included=included)
        rate = budgets(fail[~made], kind[~made], len(kinds), 1.0)
        # If none has failed, all kinds with prompts to request count equally.
        there = np.bincount(kind, weights=made | fail, minlength=len(kinds)) > 0
        weight = np.where(there, rate, 0)
        metrics["failed_prompts"] = float(fail.sum())
        return state._replace(fail=fail, weight=weight.astype(np.float32)), metrics

    def rated(state, turn, seen, kinds):
        """The state with the problems written in this step and the accepted ones of the last."""
        task, prompts = turn.setting.task, len(state.fail)
        new: list[Prompt] = []
        accepted: list[Prompt] = []
        synthetic = 0
        for batch in seen:
            requests = [batch.requests[rows[0]] for rows in batch.groups]
            for request, rows in zip(requests, batch.groups, strict=True):
                if not request.rating:
                    synthetic += request.number >= prompts
                elif request.number < prompts:
                    new += _read(batch.take(rows), turn)
                else:
                    grades = [batch.grades[row] for row in rows]
                    own = labelled(request.prompt, grades, task, agreement, hardest, easiest)
                    accepted += [] if own is None else [own]
        rows = stored(accepted)
        fits = rows.any(axis=1)
        pool = state.pool
        if fits.any():
            kind = np.array([kinds.index(problem.kind) for problem in accepted], np.int32)
            pool = push(pool, {"problem": rows[fits], "kind": kind[fits]}, turn.step)
        known = {prompt.text for prompt in task.train}
        known |= {prompt.text for prompt in read_stored(taken(pool, oldest(pool))["problem"])}
        # Each text once, in the order of writing.
        fresh = {p.text: p for p in new if p.text not in known and p.kind in kinds}
        last = np.zeros_like(state.written)
        rows = stored(list(fresh.values()))
        last[: len(rows)] = rows
        return state._replace(written=last, pool=pool), {
            "written_problems": float(len(new)),
            "accepted_problems": float(fits.sum()),
            "pool_problems": float(pool.held),
            "synthetic_prompts": float(synthetic),
        }

    def events(state, step):
        return frozenset({"restart", "reset"} if step == int(state.shift) else ())

    writers = replace(with_request(REQUEST, ""), responses=1)
    views = (writers, WRITTEN) if written else ()
    return Curriculum(propose, init, observe, events=events, views=views)


def _chances(state: _State) -> np.ndarray:
    """Probability of each kind, in proportion to its weight."""
    return mixed(state.weight.astype(float), 0.0)


def _concepts(prompt: Prompt) -> list[str]:
    return list(dict.fromkeys(prompt.meta.get("concepts") or prompt.text.split()))


def _read(batch: Batch, turn: Any) -> list[Prompt]:
    found = read_problems(batch, functools.partial(encode_text, batch.tokenizer), turn)
    return [problem for problem in found if problem is not None]


@arguments_of(shift_to_weaknesses, epochs=2, threshold=0.5, fraction=0.5)
def sws(
    low: float = 0.125,
    high: float = 0.875,
    max_rounds: Count = 1,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
    epsilon: Epsilon = 1e-6,
    **phases: Any,
) -> Recipe:
    """Applies clip-higher GRPO without KL, later on kinds that the first phase did not learn.

    Args:
      low, high: accuracies of groups that are trained on, both included.
      max_rounds: maximum number of batches to fill one update; 1: no further ones.
    """
    dropped = outside(low - ROUNDING, high + ROUNDING)
    return Recipe(
        objective=clipped_objective(clip_low, clip_high, epsilon=epsilon),
        experience=experience(shift_to_weaknesses(**phases), stages=[refill(dropped, max_rounds)]),
    )


METHOD = Method(
    sws,
    changes="curriculum, selection",
    shown=Shown(
        "hinted_brackets:train=64",
        "experience/synthetic_prompts",
        without={"written": 0},
        hyperparameters={"included": True},
        within=6,
    ),
)
