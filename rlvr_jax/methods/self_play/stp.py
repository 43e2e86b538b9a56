"""STP: the policy writes conjectures from its proofs, and imitates its proofs by weight.

"STP: Self-play LLM Theorem Provers with Iterative Conjecturing and Proving",
https://github.com/kfdong/STP

    statements  those with success below θ + 0.1, and 1 in 20 of the others
    conjecture  from each proved statement with success above θ + 0.1 and one of its proofs
    proofs      of success ≤ ½:  w = exp(-0.001 characters - 0.01 seconds) / correct proofs
    conjectures of 0 < success < θ: w by matching; each unproved statement adds n / m to the most
                similar example whose weight is below k
    loss        = mean of -w log π over their tokens; no policy gradient

Any task can provide the statements, such as `lean` where it is installed or brackets, whose
verifier checks arithmetic (see `gar`). Here a round is a step, and success is the best pass rate so
far. θ and k are `hard` and `cap`. Similarity is that of mean hidden states. Seconds are those that
the task reports (`Grade.info`). Tasks of this library report none, as they would differ in a
resumed run.

Left out: lemmas; the removal of short proofs; retraining of the first policy on three rounds.
Reports: DeepSeek-Prover-V1.5-SFT: 26.3 % of LeanWorkbook (expert iteration: 13.2 %), miniF2F 65.0
%, ProofNet 23.9 %, PutnamBench 8 of 644.
Traps: Success never falls, so one lucky round makes a statement easy. Weights depend on characters
and seconds and change the effective learning rate. With few unproved statements, n / m exceeds k.
"""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float

from rlvr_jax.experience import Batch, Curriculum, Stage, concatenate, experience
from rlvr_jax.experience.curricula.batches import requests_for
from rlvr_jax.experience.curricula.history import visits_of
from rlvr_jax.experience.curricula.picks import of_round, weighted_order
from rlvr_jax.experience.stages.donors.imitate_correct import to_imitate
from rlvr_jax.experience.stages.problems.written import (
    SOLVE,
    WRITE,
    WRITTEN,
    earned,
    pass_rates,
    read_problems,
    requests_of_problems,
    with_request,
)
from rlvr_jax.objectives import imitate, objective_of_terms
from rlvr_jax.tasks.base import Prompt
from rlvr_jax.types import Method, Recipe, Rollouts, Shown, arguments_of, is_correct, part
from rlvr_jax.types.hyperparameters import NonNegative, Positive, Unit

REQUEST = (
    "This has been proved as shown. State another problem of the same kind that is somewhat harder,"
    " between ```text and ```."
)

SECONDS = "seconds"
"""Key of `Grade.info`: time to check a proof."""

ROUNDING = 1e-9
"""A weight this close to the cap has reached it."""


@part
def prove_hard_ones(hard: Unit, redo: Unit) -> Curriculum:
    """Picks hard statements, and others with a small chance.

    The rate of a statement is its best pass rate so far, so one lucky step counts forever. The
    order of a step is sampled without replacement with the chances of `reprove_chance`.

    Args:
      hard: rate below which a statement is hard.
      redo: chance of the others, relative to 1 for hard ones.
    Metrics: hard_statements (statements), best_rate (mean best pass rate of sampled statements).
    """

    def init(setting):
        return np.full(len(setting.task.train), -1, np.float32)

    def propose(requests, state, turn):
        random, num_prompts = turn.random(), turn.setting.prompts
        order = weighted_order(random, reprove_chance(state, hard, redo))
        if len(order) < num_prompts * (turn.round + 1):
            order = np.resize(order if len(order) else np.arange(len(state)), num_prompts)
            return requests_for(turn, order)
        return requests_for(turn, of_round(order, turn))

    def observe(state, turn, seen, learned):
        state = state.copy()
        for visit in visits_of(seen, len(state)):
            state[visit.number] = max(state[visit.number], visit.rate)
        metrics = {"hard_statements": float(np.sum(state < hard))}
        if (state >= 0).any():
            metrics["best_rate"] = float(state[state >= 0].mean())
        return state, metrics

    return Curriculum(propose, init, observe)


def reprove_chance(rates: np.ndarray, hard: float, redo: float) -> np.ndarray:
    """1 for statements whose best pass rate is below `hard`, else `redo`."""
    return np.where(rates < hard, 1.0, redo)


@part
def imitate_proofs(
    hard: Unit = 0.25,
    margin: Unit = 0.1,
    most: Unit = 0.5,
    length_cost: NonNegative = 0.001,
    time_cost: NonNegative = 0.01,
    cap: Positive = 4.0,
) -> Stage:
    """Imitates correct proofs by weight, and conjectures that are hard to prove.

    From every statement of the step with a high rate the policy makes a conjecture, given one of
    its proofs. Copies are dropped. Each conjecture is tried as often as a statement of the task. No
    row has a policy loss. Correct proofs of statements with a rate of at most `most` are imitated
    (`proof_weights`). So are conjectures with a rate in (0, hard) (`matching_weights` by mean
    hidden states). Targets are the statements of the step that were never proved. The reward of a
    row is its weight, scaled to mean 1 over the rows of its kind.

    Args:
      hard: success below which a conjecture is imitated (θ).
      margin: statements with success above θ + margin are easy, and conjectures are made from them.
      most: rate up to which the proofs of a statement are imitated.
      length_cost, time_cost: cost per character, and per second of checking.
      cap: upper bound of the weight of a conjecture (k).
    Reads: outcome, Grade.info["seconds"], texts. Writes: mask (cleared), supervised, reward.
    Metrics: conjectures (conjectures read), conjecture_rate (their pass rate),
      imitated_conjectures, imitated_proofs (rows).
    """

    def init(setting):
        return np.zeros(len(setting.task.train))

    def weighed(batch: Batch, rates: np.ndarray) -> np.ndarray:
        group = batch.renumbered().rollouts.group
        characters = np.array([len(response.text) for response in batch.responses])
        seconds = np.nan_to_num([grade.info.get(SECONDS, 0.0) for grade in batch.grades])
        correct = batch.decided & is_correct(batch.rollouts.outcome)
        costs = {"length_cost": length_cost, "time_cost": time_cost, "most": most}
        return proof_weights(correct, group, rates[group], characters, seconds, **costs)

    def apply(batch, actor, state, turn):
        task, samples = turn.setting.task, turn.setting.samples
        best = state.copy()
        rates = pass_rates(batch.outcomes())
        for place, rows in enumerate(batch.groups):
            number = batch.requests[rows[0]].number
            if number < len(best):
                best[number] = rates[place] = max(best[number], rates[place])
        metrics = {"conjectures": 0.0, "imitated_conjectures": 0.0}
        parts = [(batch, weighed(batch, rates))]
        written = _conjectures(batch, is_seed(rates, hard, margin), actor, turn)
        if written is not None:
            conjectures, problems = written
            asked = requests_of_problems(problems, [SOLVE] * len(problems), samples, task)
            proofs = actor.grade(actor.draw(asked, jax.random.fold_in(turn.key, 1)))
            own = pass_rates(proofs.outcomes())
            parts.append((proofs, weighed(proofs, own)))
            metrics |= {"conjectures": float(len(problems)), "conjecture_rate": float(own.mean())}
            chosen, unproved = is_example(own, hard), rates == 0
            if chosen.any() and unproved.any():
                examples = conjectures.take(np.flatnonzero(chosen))
                firsts = np.array([rows[0] for rows in batch.groups])
                both = examples.renumbered(), batch.take(firsts[unproved]).renumbered()
                hidden = [actor.score(one, ["mean_hidden"])["mean_hidden"] for one in both]
                weights = matching_weights(*map(np.asarray, hidden), cap)
                parts.append((earned(examples, np.ones(len(examples)), WRITE), weights))
                metrics["imitated_conjectures"] = float(np.sum(weights > 0))
        rows = [_supervised(part, weights) for part, weights in parts if (weights > 0).any()]
        metrics["imitated_proofs"] = float(sum(np.sum(weights > 0) for _, weights in parts[:2]))
        if not rows:
            return to_imitate(batch, False), best, metrics
        return concatenate(rows).renumbered(), best, metrics

    views = replace(with_request(REQUEST, ""), responses=1), WRITTEN
    writes = frozenset({"supervised", "cell"})
    return Stage(apply, init, views=views, writes=writes, most=3.0, by_row=True)


def _conjectures(batch, seeds, actor, turn):
    """The rows of new conjectures, and the problem of each; None if there are none."""
    correct = batch.decided & is_correct(batch.rollouts.outcome)
    # A statement that was proved only in an earlier step has no proof in this batch.
    proved = [
        rows[correct[rows]][0]
        for rows, seed in zip(batch.groups, seeds, strict=True)
        if seed and correct[rows].any()
    ]
    if not proved:
        return None
    texts = batch.take(np.array(proved)).responses
    requests = [
        replace(
            batch.requests[row], view=with_request(REQUEST, text.text), samples=1, first_sample=0
        )
        for row, text in zip(proved, texts, strict=True)
    ]
    written = actor.draw(requests, turn.key)
    known = {_bare(prompt.text) for prompt in batch.prompts}
    new: dict[str, tuple[int, Prompt]] = {}
    for row, problem in enumerate(read_problems(written, actor.encode, turn)):
        if problem is not None and _bare(problem.text) not in known:
            new.setdefault(_bare(problem.text), (row, problem))
    rows, problems = [row for row, _ in new.values()], [problem for _, problem in new.values()]
    return (written.take(np.array(rows)), problems) if new else None


def is_seed(rates: np.ndarray, hard: float, margin: float) -> np.ndarray:
    """Statements from which conjectures are made: rate above `hard` + `margin`."""
    return rates > hard + margin


def _bare(text: str) -> str:
    return "".join(text.split())


def proof_weights(
    correct: np.ndarray,
    group: np.ndarray,
    rates: np.ndarray,
    characters: np.ndarray,
    seconds: np.ndarray,
    *,
    length_cost: float,
    time_cost: float,
    most: float,
) -> np.ndarray:
    """exp(-a · characters - b · seconds) / correct proofs of the statement, [B].

    0 for incorrect proofs and for statements with a rate above `most`; a and b are the costs.

    Args:
      correct: bool [B].
      group: statement of each proof, int [B].
      rates: success rate of the statement of each proof, [B].
      characters: length of each proof, [B].
      seconds: time of the check of each proof, [B].
      length_cost: a, per character.
      time_cost: b, per second.
      most: largest rate of a statement that counts.
    """
    number = np.bincount(group, weights=correct)[group]
    weight = np.exp(-length_cost * characters - time_cost * seconds) / np.maximum(number, 1)
    return np.where(correct & (rates <= most), weight, 0)


def is_example(rates: np.ndarray, hard: float) -> np.ndarray:
    """Conjectures that are proved, but rarely: 0 < rate < `hard`."""
    return (rates > 0) & (rates < hard)


def matching_weights(examples: np.ndarray, targets: np.ndarray, cap: float) -> np.ndarray:
    """The weight of each example by its similarity to unproved statements, [n].

    Every target in turn adds n / m to the most similar example whose weight is below the cap; the
    first of equal ones. As in the authors' code a full example has similarity 0, so it is chosen
    again if all others are dissimilar.

    Args:
      examples, targets: [n, D] and [m, D], scaled to length 1 here.
    """
    weights = np.zeros(len(examples))
    if not len(examples) or not len(targets):
        return weights
    examples, targets = (
        x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-30) for x in (examples, targets)
    )
    for similarity in targets @ examples.T:
        full = weights >= cap - ROUNDING
        best = int(np.argmax(np.where(full, 0.0, similarity)))
        weights[best] += len(examples) / len(targets)
    return weights


def _supervised(batch: Batch, weights: np.ndarray) -> Batch:
    """The rows with a positive weight, to be imitated; their weights are scaled to mean 1."""
    rows = np.flatnonzero(weights > 0)
    batch, weights = batch.take(rows).renumbered(), weights[rows] / weights[rows].mean()
    cells = batch.rollouts.records.get("cell")
    cells = np.full(len(batch), SOLVE, np.int32) if cells is None else cells
    batch = batch.rewarded(weights).with_rollouts(cell=cells)
    return to_imitate(batch, True)


def by_reward(rollouts: Rollouts) -> Float[Array, "B 1"]:
    """The reward of a row as the weight of its imitation."""
    return rollouts.reward[:, None]


@arguments_of(imitate_proofs)
def stp(redo: Unit = 0.05, weight: NonNegative = 1.0, **proofs: Any) -> Recipe:
    """Imitates the policy's own proofs and conjectures that are hard to prove, by weight.

    Args:
      redo: chance that an easy statement is proved again.
      weight: weight of the imitation.
    """
    statements = prove_hard_ones(proofs["hard"] + proofs["margin"], redo)
    return Recipe(
        objective=objective_of_terms([imitate(weight, factor=by_reward)]),
        experience=experience(statements, stages=[imitate_proofs(**proofs)]),
    )


METHOD = Method(
    stp,
    changes="surrogate, curriculum, sampling",
    shown=Shown("hinted_brackets:train=512", "experience/imitated_conjectures"),
)
