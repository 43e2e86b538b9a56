"""Proofs that a best-first search finds, whose steps are rows to imitate."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rlvr_jax.experience.asks import Ask
from rlvr_jax.experience.batch import Batch, concatenate
from rlvr_jax.experience.draws.asking import Driver, Episode, environment_of
from rlvr_jax.experience.draws.trees.best_first import (
    ERROR,
    PROVED,
    prove,
    tactic_filter,
)
from rlvr_jax.experience.parts import Draw
from rlvr_jax.experience.views import showing
from rlvr_jax.tasks import Grade
from rlvr_jax.tools import Environment, Lost, Reply
from rlvr_jax.types.hyperparameters import Count, NonNegative, Positive, Unit
from rlvr_jax.types.parts import part

__all__ = ["prove_statements"]

RIGHT = 0.5
"""An outcome above this is a proof."""
TRIES = 3
"""Of a tactic whose reply is lost."""


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
    temperature: Positive = 1.3,
) -> Draw:
    """Searches a proof of each prompt (`prove`), and gives the steps of proofs as rows to imitate.

    A state is the text that the environment says, at first that of the prompt; the policy reads it
    with the separator behind it and writes one tactic as a whole response. A reply that is done
    with an outcome above ½ is a proof, any other that is done, or says nothing, an error. A row is
    (state, tactic), supervised and with nothing on the mask, and graded by whether its statement
    was proved. Of the steps of a statement's shortest proof those are trained that `tactic_filter`
    keeps among all of the batch, each once, at most as many as the ask has samples: the least sure
    ones. A statement without a step to train has one row that teaches nothing.

    Args:
      environment: whose replies are the states; None: that of the task.
      tactics: that are drawn in a state (n).
      alpha: of the order of the search (α).
      expansions: of a statement at most.
      low, high: quantiles of -mean logp between which steps are trained.
      separator: what a state ends with where the policy reads it.
      banned: words that no tactic may have.
      temperature: of the sampler; steps are scored, and trained, at 1.
    Metrics: proved_statements, expansions, proof_steps (before the filter), trained_steps,
      lost_statements.
    Raises:
      ValueError: a number that is no count or negative, quantiles outside [0, 1]; when a run
        begins, a task without an environment where none is given.
    Source: BFS-Prover-V2 trains so (the link stands in the method's card); the quantiles and the
      cap are ours.
    """

    def init(setting):
        environment_of("prove_statements", environment, setting.task)
        return ()

    def apply(asks, actor, state, turn):
        world, attempts = environment_of("prove_statements", environment, turn.setting.task), []
        with concurrent.futures.ThreadPoolExecutor(1) as threads:
            how = Driver(actor, world, turn, expansions * tactics, 1, {}, threads)
            for place, ask in enumerate(asks):
                own = _Attempt(how, ask, place, separator, temperature)
                own.search(tactics, alpha, expansions, banned)
                attempts.append(own)
        surprise = [-own.known[step][2] for own in attempts for step in own.proof]
        kept = iter(tactic_filter(np.array(surprise), low, high).tolist())
        parts, trained, steps = [], 0, len(surprise)
        for number, own in enumerate(attempts):
            chosen = [step for step in own.proof if next(kept)]
            chosen = sorted(chosen, key=lambda step: own.known[step][2])[: own.ask.samples]
            trained += len(chosen)
            parts.append(own.rows(chosen, number, how.unsaid))
        told = {
            "proved_statements": sum(own.proved for own in attempts),
            "expansions": sum(own.expansions for own in attempts),
            "proof_steps": steps,
            "trained_steps": trained,
            "lost_statements": sum(own.lost for own in attempts),
        }
        seconds = sum(batch.sample_seconds for own in attempts for batch in own.drawn)
        whole = replace(concatenate(parts), sample_seconds=seconds)
        return whole, state, {name: float(value) for name, value in told.items()}

    # The view that stands for all of them: what prompts have in common, states need not have.
    return Draw(apply, init, writes={"supervised"}, fewer=True, views=(showing(separator),))


@dataclass
class _Attempt:
    """The search for one proof.

    Fields:
      how: asks the environment, and keeps what it said for a resumed run.
      place: of the ask; says which process asks the environment.
      drawn: what the policy has written, a batch for each expansion.
      known: by (state, tactic) the batch, the row and the mean logp.
      lost: nobody can say what the environment would have said, so that there is no verdict.
      asked: replies that were waited for.
    """

    how: Driver
    ask: Ask
    place: int
    separator: str
    temperature: float
    proof: list[tuple[str, str]] = field(default_factory=list)
    proved: bool = False
    expansions: int = 0
    drawn: list[Batch] = field(default_factory=list)
    known: dict[tuple[str, str], tuple[int, int, float]] = field(default_factory=dict)
    lost: bool = False
    asked: int = 0

    def __post_init__(self) -> None:
        # By the text that shows the environment's state.
        self.episodes = {self.ask.prompt.text: Episode(self.ask.prompt)}

    def search(self, tactics: int, alpha: float, expansions: int, banned: Sequence[str]) -> None:
        """As `prove`; one whose environment is lost ends without a verdict."""
        root = self.ask.prompt.text
        try:
            found = prove(root, self.propose, self.step, tactics, alpha, expansions, banned)
        except Lost:
            self.lost, self.expansions = True, len(self.drawn)
            return
        self.proof, self.expansions = list(dict.fromkeys(found.proof or ())), found.expansions
        self.proved = found.proof is not None

    def propose(self, state: str, number: int) -> list[tuple[str, float, int]]:
        shown = f"{state}{self.separator}"
        first = self.ask.first_sample + len(self.drawn) * number
        ask = replace(self.ask, view=showing(shown), samples=number, first_sample=first)
        batch = self.how.actor.draw([ask], self.how.key, {"temperature": self.temperature})
        batch = batch.with_rollouts(temperature=np.ones_like(batch.rollouts.temperature))
        logp = np.asarray(self.how.actor.score(batch, ["logp"])["logp"])
        mask = batch.rollouts.mask
        total, count = np.where(mask, logp, 0).sum(axis=1), mask.sum(axis=1)
        told = []
        for row, response in enumerate(batch.responses):
            mean = float(total[row]) / max(int(count[row]), 1)
            self.known.setdefault((state, response.text), (len(self.drawn), row, mean))
            told.append((response.text, float(total[row]), int(count[row])))
        self.drawn.append(batch)
        return told

    def step(self, state: str, tactic: str) -> str:
        for _ in range(TRIES):
            episode = self.episodes[state].forked()
            reply = self._reply(episode, tactic)
            if not reply.lost:
                break
        else:
            raise Lost(self.how.world.label)
        if reply.done and (reply.outcome or 0.0) > RIGHT:
            return PROVED
        if reply.done or reply.text is None:
            return ERROR
        self.episodes.setdefault(reply.text, episode)
        return reply.text

    def _reply(self, episode: Episode, tactic: str) -> Reply:
        """What the environment says, or said before a run was killed."""
        key = f"{self.ask.round}/{self.ask.number}/{self.ask.first_sample}/{self.asked}"
        self.asked += 1
        waiting = self.how.ask(key, episode, tactic, self.how.owns(self.place))
        return self.how.replies({0: key}, {} if waiting is None else {0: waiting})[0]

    def rows(self, steps: Sequence[tuple[str, str]], group: int, info: dict[str, float]) -> Batch:
        """The steps as rows to imitate; without any the first tactic, which nobody learns.

        Args:
          info: of their grades.
        """
        places = [self.known[step][:2] for step in steps] or [(0, 0)]
        batch = concatenate([self.drawn[number].take([row]) for number, row in places])
        size = len(places)
        grade = Grade(None) if self.lost else Grade(float(self.proved), info=info)
        return replace(
            batch.with_rollouts(
                mask=np.zeros_like(batch.rollouts.mask),
                supervised=np.full(size, bool(steps)),
                group=np.full(size, group, np.int32),
            ).renumbered(),
            asks=[replace(ask, samples=size) for ask in batch.asks],
            brought=[grade] * size,
        )
