"""Groups whose responses are written in turns over several steps (`queued` with an environment)."""

import concurrent.futures
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from rlvr_jax.experience.batch import Batch, concatenate
from rlvr_jax.experience.draws.asking import SECONDS, THREADS, Driver, Episode, environment_of
from rlvr_jax.experience.draws.conversation import Half, Resumed
from rlvr_jax.experience.draws.queued import RECORDS as SAMPLED, plain_request
from rlvr_jax.experience.draws.turns import turns
from rlvr_jax.experience.parts import Actor, Draw, StepContext
from rlvr_jax.experience.requests import SampleRequest, numbered_answers
from rlvr_jax.tools import Environment
from rlvr_jax.types.hyperparameters import Bound, Count, NonNegative, NonNegativeInt
from rlvr_jax.types.parts import part

RECORDS = SAMPLED | {"origin": np.int32, "turn": np.int32, "process_reward": np.float32}
"""Records of the tokens of a row that continues in a later step."""
_ROWS: dict[str, type] = {
    "length": np.int32,
    "ended": np.bool_,
    "truncated": np.bool_,
    "outcome": np.float32,
    "paid": np.bool_,
    "lost": np.bool_,
}


@dataclass(eq=False)
class _Open:
    """The groups of a step that were requested together, or that continue.

    Fields:
      created: step of each group's request.
      before: tokens of each row that earlier steps sampled.
      version: int [B, T], the weights that sampled these tokens.
    """

    half: Half
    requests: Sequence[SampleRequest]
    created: Sequence[int]
    before: np.ndarray
    version: np.ndarray

    def rows(self, group: int) -> np.ndarray:
        """The rows of a group."""
        start = sum(request.samples for request in self.requests[:group])
        return start + np.arange(self.requests[group].samples)

    def complete(self, group: int) -> bool:
        """Whether no row of a group may have a further reply."""
        return not np.isin(self.rows(group), self.half.open).any()

    def versions(self) -> np.ndarray:
        """The weights that sampled each token, int32 [B, T]."""
        rollouts = self.half.batch.rollouts
        early = np.arange(rollouts.tokens.shape[1])[None] < self.before[:, None]
        now = np.asarray(rollouts.weight_version)[:, None]
        return np.where(early, self.version, now).astype(np.int32)


@part
def queued_turns(
    environment: Environment | None = None,
    staleness: NonNegativeInt = 1,
    limit: Count = 8,
    reply_tokens: Count = 512,
    costs: Mapping[str, NonNegative] | None = None,
    turn_tokens: Count | None = None,
    seconds: Bound = SECONDS,
) -> Draw:
    """Writes responses in turns, and trains groups when they are complete, as `queued` does.

    A step ends when a group is complete and no incomplete group must be trained now. Unfinished
    responses continue in the next step with its weights, after their last turn. Their environment
    then reads their earlier turns again. Every token has the log-prob and the number of the weights
    that sampled it (`behaviour_logp`, `version`). With staleness 0, groups are those of `turns`.
    Only groups of unmodified train prompts can wait. Evaluations sample by `turns`.

    Args:
      environment, limit, reply_tokens, costs, turn_tokens, seconds: as for `turns`; games are
        refused.
      staleness: largest number of steps that a group may wait (η).
    Writes: version, turn, origin, process_reward. Metrics: groups (complete groups), waiting_groups
      (incomplete groups), stale_tokens (trained tokens of earlier weights); those of `turns`.
    """

    def init(setting):
        environment_of("queued_turns", environment, setting.task, alone=True)
        # A checkpoint cannot have empty arrays.
        groups, rows = max(1, setting.prompts * staleness), setting.initial_samples
        shape = groups, rows, setting.response_tokens
        return {
            "number": np.full(groups, -1, np.int32),
            "created": np.zeros(groups, np.int32),
            "tokens": np.zeros(shape, np.int32),
            **{name: np.zeros(shape, dtype) for name, dtype in RECORDS.items()},
            **{name: np.zeros(shape[:2], dtype) for name, dtype in _ROWS.items()},
            "used": np.array(-1, np.int32),
        }

    def apply(requests, actor, state, turn):
        world = environment_of("queued_turns", environment, turn.setting.task, alone=True)
        first = state["used"] != turn.step
        with concurrent.futures.ThreadPoolExecutor(THREADS) as threads:

            def driver(key):
                context = turn._replace(key=key)
                how = (limit, reply_tokens, {}, threads, costs, turn_tokens, seconds)
                return Driver(actor, world, context, *how)

            answers = numbered_answers(requests)
            drivers = [driver(turn.key)]
            half = Half(drivers[0], requests, answers, np.arange(len(answers)))
            nothing = np.zeros(half.batch.rollouts.tokens.shape, np.int32)
            created = [turn.step] * len(requests)
            parts = [_Open(half, requests, created, nothing[:, 0], nothing)]
            if first and (state["number"] >= 0).any():
                # Another key: a prompt may be requested again while its group waits.
                drivers.append(driver(jax.random.fold_in(turn.key, 1)))
                parts.append(_restored(state, actor, drivers[1], turn))

            def may_wait(open_, group):
                waits = first and turn.step - open_.created[group] < staleness
                return waits and plain_request(open_.requests[group], turn.setting)

            groups = [(open_, group) for open_ in parts for group in range(len(open_.requests))]
            while True:
                done = [open_.complete(group) for open_, group in groups]
                late = [each for each, there in zip(groups, done, strict=True) if not there]
                if any(done) and all(may_wait(*each) for each in late):
                    break
                for open_ in parts:
                    if len(open_.half.open):
                        open_.half.go_on()
        batch, stale = _trained(parts)
        counts = drivers[0].counts
        for other in drivers[1:]:
            counts.update(other.counts)
        counts.update(answers=len(batch), groups=sum(done), stale_tokens=stale)
        counts["waiting_groups"] = len(late)
        if first:
            state = _stored(state, late, turn.step)
        return batch, state, {name: float(value) for name, value in counts.items()}

    return Draw(
        apply,
        init,
        of_policy=True,
        evaluation=turns(environment, limit, reply_tokens, costs, turn_tokens, seconds),
        environment=environment or "task",
        most=1.0 + staleness,
        writes=frozenset({"version", "turn", "process_reward"}),
        fewer=True,
    )


def _trained(parts: Sequence[_Open]) -> tuple[Batch, int]:
    """The rows of complete groups, and the number of their tokens of earlier weights."""
    found, stale, seconds = [], 0, 0.0
    for open_ in parts:
        whole = open_.half.whole().with_rollouts(version=open_.versions())
        seconds += whole.sample_seconds
        groups = [group for group in range(len(open_.requests)) if open_.complete(group)]
        if groups:
            rows = np.concatenate([open_.rows(group) for group in groups])
            early = np.arange(whole.rollouts.tokens.shape[1])[None] < open_.before[rows][:, None]
            found.append(whole.take(rows))
            stale += int(np.sum(early & whole.rollouts.mask[rows]))
    batch = concatenate([one.renumbered() for one in found])
    return replace(batch, sample_seconds=seconds), stale


def _restored(state: Any, actor: Actor, how: Driver, turn: StepContext) -> _Open:
    """The groups that wait, in the order of their requests."""
    places = np.flatnonzero(state["number"] >= 0)
    samples, train = turn.setting.initial_samples, turn.setting.task.train
    numbers = state["number"][places].tolist()
    requests = [SampleRequest(train[number], number, samples) for number in numbers]
    known = {
        name: state[name][places].reshape(len(places) * samples, *state[name].shape[2:])
        for name in ("tokens", *RECORDS, *_ROWS)
    }
    rows = zip(known["tokens"], known["length"], strict=True)
    batch = actor.written(requests, [tokens[:end].tolist() for tokens, end in rows])
    written = batch.rollouts
    records = {name: known[name] for name in RECORDS if name != "version"}
    for name in ("behaviour_logp", "entropy", "process_reward"):
        records[name] = records[name].astype(written.reward.dtype)
    batch = batch.with_rollouts(
        **records,
        mask=written.mask & (known["origin"] == 0),
        truncated=known["truncated"],
        length=known["length"],
    )
    episodes = [Episode(request.prompt) for request in batch.requests]
    for row, episode in enumerate(episodes):
        episode.outcome = float(known["outcome"][row])
        episode.paid, episode.lost = bool(known["paid"][row]), bool(known["lost"][row])
    resumed = Resumed(batch, episodes, known["ended"])
    answers = numbered_answers(requests)
    half = Half(how, requests, answers, np.arange(len(answers)), resumed)
    created = state["created"][places].tolist()
    return _Open(half, requests, created, known["length"].astype(int), known["version"])


def _stored(state: Any, waiting: Sequence[tuple[_Open, int]], step: int):
    """The state with the groups that wait."""
    new = {name: np.zeros_like(array) for name, array in state.items()}
    new["number"][:] = -1
    new["used"] = np.array(step, np.int32)
    for place, (open_, group) in enumerate(waiting):
        rows, rollouts = open_.rows(group), open_.half.batch.rollouts
        new["number"][place] = open_.requests[group].number
        new["created"][place] = open_.created[group]
        new["tokens"][place] = rollouts.tokens[rows]
        for name in RECORDS:
            array = open_.versions() if name == "version" else rollouts.get(name)
            new[name][place] = array[rows]
        new["length"][place], new["truncated"][place] = (
            rollouts.length[rows],
            rollouts.truncated[rows],
        )
        new["ended"][place] = ~np.isin(rows, open_.half.open)
        for name in ("outcome", "paid", "lost"):
            new[name][place] = [getattr(open_.half.episodes[row], name) for row in rows]
    return new
