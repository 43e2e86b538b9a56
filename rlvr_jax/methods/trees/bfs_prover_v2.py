"""BFS-Prover-V2: searches proofs best first, and imitates the tactics of the shortest ones.

"Scaling up Multi-Turn Off-Policy RL and Multi-Agent Tree Search for LLM Step-Provers",
https://github.com/zeyu-zheng/BFS-Prover-V2

    next state: smallest -S / d^α, S the sum over its path of the tactics' mean log-probs
    a state is proved if one of its tactics proves it, and failed if all of them fail
    a proof counts if its tactics prove the statement in a new episode
    trained: steps of the shortest proofs with Q_0.1 ≤ -mean log π ≤ Q_0.9,  loss = mean of -log π

The search and its constants are those of the release. The training code is not released, so
training is a reconstruction: the quantiles are ours, a round is a step, and a statement has at most
as many rows as a group. The task's environment is the checker, and its replies are the states
(`prove_statements`).

Left out: a planner's subgoals, as it is a second model; retraining of the base model, as a run
continues from its weights.
Reports: miniF2F test: 82.4 % at 7B, 86.1 % at 32B, 95.08 % with a planner. ProofNet test: 41.4 %.
There is no ablation of filter or planner.
Traps: A state counts as failed if its few sampled tactics failed. α ≥ 1 follows probable tactics
that only rearrange a state. A long probable tactic is preferred to two short ones.
"""

import concurrent
import heapq
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from rlvr_jax.arguments import check_each
from rlvr_jax.experience import Batch, Draw, SampleRequest, concatenate, experience
from rlvr_jax.experience.draws.asking import Driver, Episode, environment_of
from rlvr_jax.experience.views import showing
from rlvr_jax.objectives import imitate, objective_of_terms
from rlvr_jax.tools.base import Lost
from rlvr_jax.tools.environment import Environment, Reply
from rlvr_jax.types import Method, Recipe, Shown, arguments_of, is_correct
from rlvr_jax.types.hyperparameters import Count, NonNegative, Temperature, Unit
from rlvr_jax.types.parts import part
from rlvr_jax.verifiers.grade import Grade

PROVED, ERROR = "proved", "error"
OPEN, FAILED = "open", "failed"


Propose = Callable[[Hashable, int], Sequence[tuple[str, float, int]]]
"""(state, n) -> up to n of (tactic, Σ logp of its tokens, their number)."""


Step = Callable[[Hashable, str], Any]
"""(state, tactic) -> another state, `PROVED` or `ERROR`."""


class Found(NamedTuple):
    """The result of a search.

    Fields:
      proof: (state, tactic) from the root to the goal, the shortest one; None without any.
      status: status of the root: "proved", "failed" (all its tactics failed) or "open".
      totals: S of the known states, in order.
      expansions: number of expanded states.
    """

    proof: list[tuple[Hashable, str]] | None
    status: str
    totals: list[float]
    expansions: int


@dataclass
class _Known:
    """A state of a search.

    Fields:
      total, depth: S and d of its first path.
      tactics: with their targets: the place of a state, `PROVED` or `ERROR`.
      parents: places of states.
    """

    state: Hashable
    total: float = 0.0
    depth: int = 0
    tactics: list[tuple[str, Any]] = field(default_factory=list)
    parents: set[int] = field(default_factory=set)
    expanded: bool = False
    status: str = OPEN


def prove(
    root: Hashable,
    propose: Propose,
    step: Step,
    number: int,
    alpha: float,
    expansions: int,
    *,
    banned: Sequence[str] = (),
) -> Found:
    """Searches for a proof, always from the open state with the smallest -S / d^α.

    S is the sum over the path of the tactics' mean log-probs, d its length. With α = 0 the sum
    ranks states, with 1 the mean. A larger α prefers depth. Tactics are tried in order. Repeated
    ones are tried once, those with a banned word never, and after a proof the rest of the state is
    skipped. A known state is not queued again, and has S and d of its first path. A state fails
    when all its tactics fail, and is proved when one is; both propagate along all edges. The search
    ends when the root is decided, when no state is open, or after `expansions`. Exceptions of
    `propose` and `step` are not caught, because an engine failure is not a failed tactic.

    Args:
      root: state to prove.
      propose: (state, n) -> up to n of (tactic, sum of the log-probs of its tokens in nats, number
        of tokens).
      step: (state, tactic) -> the next state, `PROVED` or `ERROR`.
      number: number of tactics of a state (n).
      alpha: α, at least 0.
      expansions: maximum number of expanded states.
      banned: words that no tactic may contain.
    Raises:
      ValueError: a count below 1, or a negative alpha.
    """
    check_each(Count, "prove", number=number, expansions=expansions)
    check_each(NonNegative, "prove", alpha=alpha)
    known, place = [_Known(root)], {root: 0}
    queue, done = [(0.0, 0)], 0
    while queue and done < expansions and known[0].status == OPEN:
        _, node = heapq.heappop(queue)
        one = known[node]
        if one.status != OPEN:
            continue
        done += 1
        one.expanded = True
        tried: set[str] = set()
        for tactic, logp, tokens in propose(one.state, number):
            if tactic in tried or any(word in tactic for word in banned):
                continue
            tried.add(tactic)
            after = step(one.state, tactic)
            if after not in (PROVED, ERROR):
                if after not in place:
                    place[after] = len(known)
                    new = _Known(after, one.total + logp / max(tokens, 1), one.depth + 1)
                    known.append(new)
                    heapq.heappush(queue, (-new.total / new.depth**alpha, place[after]))
                after = place[after]
                known[after].parents.add(node)
            one.tactics.append((tactic, after))
            if after == PROVED:
                break
        _pass_up(node, known)
    proof = _shortest(known) if known[0].status == PROVED else None
    return Found(proof, known[0].status, [one.total for one in known], done)


def _pass_up(node: int, known: Sequence[_Known]) -> None:
    """Decides a state and its ancestors, as far as they are determined."""
    todo = [node]
    while todo:
        one = known[todo.pop()]
        after = [to if isinstance(to, str) else known[to].status for _, to in one.tactics]
        failed = one.expanded and all(each in (ERROR, FAILED) for each in after)
        status = PROVED if PROVED in after else FAILED if failed else OPEN
        if status != one.status:
            one.status = status
            todo += sorted(one.parents)


def _shortest(known: Sequence[_Known]) -> list[tuple[Hashable, str]]:
    """The shortest proof of the first state, of equal ones that of the first tactics."""
    # Distances from the goal, shorter ones first; a cycle is never part of a shortest path.
    distance: dict[Any, int] = {PROVED: 0}
    while 0 not in distance:
        distance |= {
            node: 1 + min(after)
            for node, one in enumerate(known)
            if node not in distance
            and (after := [distance[to] for _, to in one.tactics if to in distance])
        }
    proof, node = [], 0
    while node != PROVED:
        ways = [(tactic, to) for tactic, to in known[node].tactics if to in distance]
        tactic, after = min(ways, key=lambda way: distance[way[1]])
        proof.append((known[node].state, tactic))
        node = after
    return proof


def tactic_filter(surprise: np.ndarray, low: float = 0.1, high: float = 0.9) -> np.ndarray:
    """The steps between two quantiles of x = -mean logp, which are trained, bool [M].

    Steps of high confidence carry no information, very surprising ones are noise. Quantiles
    interpolate linearly and are ours. Duplicates must be removed first.

    Args:
      surprise: -mean logp of each step, nats, [M] (x).
      low, high: levels of the quantiles, 0 ≤ low ≤ high ≤ 1.
    """
    if low > high:
        raise ValueError(f"tactic_filter: low must be at most high {high}, got {low}")
    surprise = np.asarray(surprise, float)
    if not len(surprise):
        return np.zeros(0, bool)
    below, above = np.quantile(surprise, [low, high])
    return (surprise >= below) & (surprise <= above)


TRIES = 3
"""Attempts for a tactic whose reply is lost."""


@part
def prove_statements(
    environment: Environment | None = None,
    tactics: Count = 4,
    alpha: NonNegative = 2.0,
    expansions: Count = 64,
    low: Unit = 0.1,
    high: Unit = 0.9,
    separator: str = ":::",
    banned: Sequence[str] = (),
    temperature: Temperature = 1.3,
) -> Draw:
    """Searches a proof of each prompt (`prove`), and returns its steps as rows to imitate.

    A state is the text of the environment, at first that of the prompt. The policy reads it with
    the separator after it and writes one tactic as a whole response. A reply that ends the episode
    with an outcome above ½ is a proof; any other end, or a reply without text, is an error. A row
    is (state, tactic), supervised and with a cleared mask, graded by whether its statement was
    proved. The tactics of its shortest proof are tried once more in a new episode first. Of its
    steps those are trained that `tactic_filter` selects among all of the batch. Each is trained
    once in a batch, and at most as many as the request has samples: those of lowest probability. A
    statement without a step to train has one row that is not trained.

    Steps are scored and trained at temperature 1.

    Args:
      environment: whose replies are the states. None: that of the task.
      tactics: sampled in a state (n).
      alpha: preference of the search for depth (α).
      expansions: maximum number of expanded states of a statement; the authors have 600 seconds.
      low, high: quantiles between which a step is trained.
      separator: text after a state in the policy's prompt, once.
      banned: words that exclude a tactic.
    Metrics: proved_statements (statements), expansions (expanded states), proof_steps (different
      steps of proofs), trained_steps (steps after the filter), refused_proofs (that fail in a new
      episode), lost_statements (ungraded).
    """

    def init(setting):
        environment_of("prove_statements", environment, setting.task)
        return ()

    def apply(requests, actor, state, turn):
        world, attempts = environment_of("prove_statements", environment, turn.setting.task), []
        with concurrent.futures.ThreadPoolExecutor(1) as threads:
            how = Driver(actor, world, turn, expansions * tactics, 1, {}, threads)
            for place, request in enumerate(requests):
                own = _Attempt(how, request, place, separator, temperature)
                own.search(tactics, alpha, expansions, banned)
                attempts.append(own)
        taken: set[tuple[str, str]] = set()
        for own in attempts:
            own.proof = [step for step in own.proof if step not in taken]
            taken.update(own.proof)
        surprise = [-own.known[step][2] for own in attempts for step in own.proof]
        selected = iter(tactic_filter(np.array(surprise), low, high).tolist())
        parts, trained, steps = [], 0, len(surprise)
        for number, own in enumerate(attempts):
            chosen = [step for step in own.proof if next(selected)]
            chosen = sorted(chosen, key=lambda step: own.known[step][2])[: own.request.samples]
            trained += len(chosen)
            parts.append(own.rows(chosen, number, how.unsaid))
        metrics = {
            "proved_statements": sum(own.proved for own in attempts),
            "expansions": sum(len(own.sampled) for own in attempts),
            "proof_steps": steps,
            "trained_steps": trained,
            "refused_proofs": sum(own.refused for own in attempts),
            "lost_statements": sum(own.lost for own in attempts),
        }
        seconds = sum(batch.sample_seconds for own in attempts for batch in own.sampled)
        whole = replace(concatenate(parts), sample_seconds=seconds)
        return whole, state, {name: float(value) for name, value in metrics.items()}

    # One view for all states: a common prefix of prompts need not be one of states.
    return Draw(apply, init, writes={"supervised"}, fewer=True, views=(showing(separator),))


@dataclass
class _Attempt:
    """The search for one proof.

    Fields:
      how: calls the environment, and records its replies for a resumed run.
      place: place of the request; selects the process that calls the environment.
      sampled: tactics that the policy wrote, a batch for each expansion.
      known: batch, row and mean logp by (state, tactic).
      refused: the search found a proof that fails in a new episode.
      lost: a reply of the environment was lost, so the statement is ungraded.
      num_replies: number of replies.
    """

    how: Driver
    request: SampleRequest
    place: int
    separator: str
    temperature: float
    proof: list[tuple[str, str]] = field(default_factory=list)
    proved: bool = False
    sampled: list[Batch] = field(default_factory=list)
    known: dict[tuple[str, str], tuple[int, int, float]] = field(default_factory=dict)
    refused: bool = False
    lost: bool = False
    num_replies: int = 0

    def __post_init__(self) -> None:
        # By the text that shows the environment's state.
        self.episodes = {self.request.prompt.text: Episode(self.request.prompt)}

    def search(self, tactics: int, alpha: float, expansions: int, banned: Sequence[str]) -> None:
        """As `prove`; a search whose environment is lost ends ungraded."""
        root = self.request.prompt.text
        try:
            found = prove(root, self.propose, self.step, tactics, alpha, expansions, banned=banned)
            self.proved = found.proof is not None and self.holds([one for _, one in found.proof])
        except Lost:
            self.lost = True
            return
        self.refused = found.proof is not None and not self.proved
        self.proof = list(dict.fromkeys(found.proof)) if self.proved else []

    def holds(self, tactics: Sequence[str]) -> bool:
        """Whether the tactics prove the statement in a new episode."""
        episode = Episode(self.request.prompt)
        for tactic in tactics[:-1]:
            reply, episode = self.tried(episode, tactic)
            if reply.done or reply.text is None:
                return False
        reply, _ = self.tried(episode, tactics[-1])
        return reply.done and is_correct(reply.outcome or 0.0)

    def propose(self, state: str, number: int) -> list[tuple[str, float, int]]:
        shown = state.removesuffix(self.separator) + self.separator
        first = self.request.first_sample + len(self.sampled) * number
        request = replace(self.request, view=showing(shown), samples=number, first_sample=first)
        batch = self.how.actor.draw([request], self.how.turn.key, {"temperature": self.temperature})
        batch = batch.with_rollouts(temperature=np.ones_like(batch.rollouts.temperature))
        logp = np.asarray(self.how.actor.score(batch, ["logp"])["logp"])
        mask = batch.rollouts.mask
        total, count = np.where(mask, logp, 0).sum(axis=1), mask.sum(axis=1)
        found = []
        for row, response in enumerate(batch.responses):
            mean = float(total[row]) / max(int(count[row]), 1)
            self.known.setdefault((state, response.text), (len(self.sampled), row, mean))
            found.append((response.text, float(total[row]), int(count[row])))
        self.sampled.append(batch)
        return found

    def step(self, state: str, tactic: str) -> str:
        reply, episode = self.tried(self.episodes[state], tactic)
        if reply.done and is_correct(reply.outcome or 0.0):
            return PROVED
        if reply.done or reply.text is None:
            return ERROR
        self.episodes.setdefault(reply.text, episode)
        return reply.text

    def tried(self, episode: Episode, tactic: str) -> tuple[Reply, Episode]:
        """The reply to a tactic, and the episode after it."""
        for _ in range(TRIES):
            after = episode.forked()
            reply = self._reply(after, tactic)
            if not reply.lost:
                return reply, after
        raise Lost(self.how.world.label)

    def _reply(self, episode: Episode, tactic: str) -> Reply:
        """The environment's reply, or the recorded one in a resumed run."""
        own = self.request
        key = f"{own.round}/{own.number}/{own.first_sample}/{self.num_replies}"
        self.num_replies += 1
        waiting = self.how.request(key, episode, tactic, self.how.owns(self.place))
        return self.how.replies({0: key}, {} if waiting is None else {0: waiting})[0]

    def rows(self, steps: Sequence[tuple[str, str]], group: int, info: dict[str, float]) -> Batch:
        """The rows of a group: steps to imitate, or else the first tactic, which is not trained.

        Args:
          info: `info` of their grades.
        """
        places = [self.known[step][:2] for step in steps] or [(0, 0)]
        batch = concatenate([self.sampled[number].take([row]) for number, row in places])
        size = len(places)
        grade = Grade(None) if self.lost else Grade(float(self.proved), info=info)
        return replace(
            batch.with_rollouts(
                mask=np.zeros_like(batch.rollouts.mask),
                supervised=np.full(size, bool(steps)),
                group=np.full(size, group, np.int32),
            ).renumbered(),
            requests=[replace(request, samples=size) for request in batch.requests],
            brought=[grade] * size,
        )


@arguments_of(
    prove_statements,
    *("tactics", "alpha", "expansions", "low", "high", "separator", "temperature"),
    banned=("sorry", "admit", "native_decide"),
)
def bfs_prover_v2(weight: NonNegative = 1.0, **search: Any) -> Recipe:
    """Imitates single tactics of proofs that the policy's search has found.

    Args:
      weight: weight of the imitation.
    """
    objective = objective_of_terms([imitate(weight)])
    return Recipe(objective, experience=experience(draw=prove_statements(**search)))


METHOD = Method(
    bfs_prover_v2,
    changes="sampling, selection, surrogate",
    evidence="reconstruction",
    shown=Shown(
        "step_sums",
        "experience/trained_steps",
        hyperparameters={"separator": "?", "expansions": 8},
        settings={"prompts_per_step": 8},
    ),
)
