"""Groups that are written over several steps, and trained when they are complete."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.draws.trees.segments import Segments, first_samples
from rlvr_jax.experience.parts import Draw, RunInfo, StepContext
from rlvr_jax.experience.requests import PLAIN, SampleRequest
from rlvr_jax.types.hyperparameters import NonNegativeInt, Share
from rlvr_jax.types.parts import part

RECORDS: dict[str, type] = {
    "behaviour_logp": np.float32,
    "entropy": np.float32,
    "version": np.int32,
}
"""Records of the tokens of a row that continues in a later step."""


@dataclass(eq=False)
class _Row:
    """An unfinished response.

    Fields:
      before: tokens of earlier steps, with their records by name.
      tip: its last segment in this step; -1: none.
    """

    sample: int
    before: list[int] = field(default_factory=list)
    records: dict[str, np.ndarray] = field(default_factory=dict)
    tip: int = -1
    length: int = 0
    finished: bool = False


@dataclass(eq=False)
class _Group:
    request: SampleRequest
    created: int
    rows: list[_Row]
    done: list[_Row] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        return len(self.done) == self.request.samples


@part
def queued(
    staleness: NonNegativeInt = 1, redundancy: NonNegativeInt = 0, window: Share = 0.25
) -> Draw:
    """Trains groups when they are complete, at most `staleness` steps after their request.

    The rows of all open groups are written together, a window of tokens at a time. A step ends when
    a group is complete and no incomplete group must be trained now. Unfinished rows continue in the
    next step with its weights. With `redundancy`, a group starts with additional rows, and the rows
    that end first form the group. This favours short responses. If both arguments are 0, groups are
    those of plain sampling.

    Every token has the log-prob and the number of the weights that sampled it (`behaviour_logp`,
    `version`). Old log-probs are the scorer's before the update, so an importance weight corrects
    for the mixture of weights. Only groups of unmodified train prompts can wait. Evaluations sample
    by `plain`. The state has 16 bytes for each token of (prompts · staleness) groups.

    Args:
      staleness: largest number of steps that a group may wait (a).
      redundancy: additional rows of a group.
      window: fraction of the token budget after which the ends of rows are checked.
    Writes: version. Metrics: groups (complete groups), waiting_groups (incomplete groups),
      dropped_rows (rows of complete groups that are not trained), dropped_tokens (their tokens),
      stale_tokens (trained tokens of earlier weights).
    Source: ROLL's queue (the link is in `rollart`'s card), for one process.
    """

    def init(setting):
        # A checkpoint cannot have empty arrays.
        groups = max(1, setting.prompts * staleness)
        rows = setting.initial_samples + redundancy
        shape = groups, rows, setting.response_tokens
        return {
            "number": np.full(groups, -1, np.int32),
            "created": np.zeros(groups, np.int32),
            "tokens": np.zeros(shape, np.int32),
            **{name: np.zeros(shape, dtype) for name, dtype in RECORDS.items()},
            "length": np.zeros(shape[:2], np.int32),
            "sample": np.full(shape[:2], -1, np.int32),
            # Rank in the order in which rows have ended; 0: they continue.
            "ended": np.zeros(shape[:2], np.int32),
            "used": np.array(-1, np.int32),
        }

    def apply(requests, actor, state, turn):
        first = state["used"] != turn.step
        carried = _restored(state, turn) if first else []
        groups = list(carried)
        for request, start in zip(requests, first_samples(requests), strict=True):
            rows = [_Row(start + n) for n in range(request.samples + redundancy)]
            groups.append(_Group(request, turn.step, rows))
        tokens = max(1, round(window * turn.setting.response_tokens))
        segments = Segments(actor, turn.key)

        def may_wait(group):
            waits = first and turn.step - group.created < staleness
            return waits and plain_request(group.request, turn.setting)

        while True:
            late = [g for g in groups if not g.complete and not may_wait(g)]
            if not late and any(group.complete for group in groups):
                break
            _advance(segments, groups, tokens)
        ready = [group for group in groups if group.complete]
        waiting = [group for group in groups if not group.complete]
        batch, stale = _trained(segments, ready)
        lost = [row for g in ready for row in g.rows if row not in g.done]
        metrics = {
            "groups": len(ready),
            "waiting_groups": len(waiting),
            "dropped_rows": len(lost),
            "dropped_tokens": sum(row.length for row in lost),
            "stale_tokens": stale,
        }
        if first:
            state = _stored(state, segments, waiting, turn.step)
        return batch, state, {name: float(value) for name, value in metrics.items()}

    most, gives = 1.0 + staleness, frozenset({"version"})
    return Draw(apply, init, most=most, writes=gives, fewer=True)


def plain_request(request: SampleRequest, setting: RunInfo) -> bool:
    """Whether a request can be rebuilt from its prompt number: a train prompt without changes."""
    train = setting.task.train
    own = request.number < len(train) and train[request.number] is request.prompt
    own = own and request.view.label == PLAIN.label and request.samples == setting.initial_samples
    return own and request.temperature is None and not len(request.given)


def _advance(segments: Segments, groups: Sequence[_Group], tokens: int) -> None:
    """Writes the next window of all unfinished rows."""
    running = [(g, row) for g in groups if not g.complete for row in g.rows if not row.finished]
    requests = []
    for group, row in running:
        behind = row.before if row.tip < 0 else []
        requests.append(replace(group.request, given=[*group.request.given, *behind]))
    sampled = segments.draw(
        requests,
        [row.sample for _, row in running],
        [row.tip for _, row in running],
        [row.length for _, row in running],
        tokens,
    )
    goes_on = segments.goes_on(sampled)
    length = segments.batch.rollouts.length
    for (group, row), tip, on in zip(running, sampled, goes_on, strict=True):
        row.tip, row.length, row.finished = int(tip), int(length[tip]), not on
        # If several rows end in one round, the first ones belong to the group.
        if row.finished and not group.complete:
            group.done.append(row)


def _records(segments: Segments, row: _Row) -> dict[str, np.ndarray]:
    """The records of a row's tokens, those of earlier steps first, [T] each."""
    rollouts, before = segments.batch.rollouts, len(row.before)
    if row.tip < 0:
        return row.records
    source, places = segments.source[row.tip], np.arange(rollouts.tokens.shape[1])
    mask = rollouts.mask[source, places] & (places < row.length)
    found = {
        "behaviour_logp": rollouts.behaviour_logp[source, places],
        "entropy": rollouts.entropy[source, places],
        "version": np.full(len(places), rollouts.weight_version[row.tip]),
    }
    found = {name: np.where(mask, array, 0) for name, array in found.items()}
    for name, array in row.records.items():
        found[name] = np.where(places < before, array, found[name])
    return {name: array.astype(RECORDS[name]) for name, array in found.items()}


def _trained(segments: Segments, groups: Sequence[_Group]) -> tuple[Batch, int]:
    """The rows of complete groups, by sample number, and the number of stale tokens."""
    ended = [sorted(group.done, key=lambda row: row.sample) for group in groups]
    rows = [row for own in ended for row in own]
    requests = [group.request for group in groups]
    missing = [(g, row) for g, own in zip(groups, ended, strict=True) for row in own if row.tip < 0]
    if missing:
        # Rows that ended in an earlier step have no segment in this one.
        tips = segments.write([g.request for g, _ in missing], [row.before for _, row in missing])
        for (_, row), tip in zip(missing, tips, strict=True):
            row.tip = int(tip)
    batch = segments.responses([row.tip for row in rows], requests)
    rollouts = batch.rollouts
    known = [_records(segments, row) for row in rows]
    records = {name: np.stack([one[name] for one in known]) for name in RECORDS}
    before = np.array([len(row.before) for row in rows])[:, None]
    places = np.arange(rollouts.tokens.shape[1])[None]
    stale = places < before
    origin = rollouts.records.get("origin")
    dtype = rollouts.behaviour_logp.dtype
    batch = batch.with_rollouts(
        mask=rollouts.mask | stale,
        origin=None if origin is None else np.where(stale, 0, origin).astype(origin.dtype),
        behaviour_logp=records["behaviour_logp"].astype(dtype),
        entropy=records["entropy"].astype(dtype),
        version=records["version"],
    )
    return batch, int(stale.sum())


def _restored(state, turn: StepContext) -> list[_Group]:
    """The groups that wait, in the order of their opening."""
    groups, train = [], turn.setting.task.train
    for place in np.flatnonzero(state["number"] >= 0):
        rows = []
        for one in np.flatnonzero(state["sample"][place] >= 0):
            length = int(state["length"][place, one])
            rows.append(
                _Row(
                    int(state["sample"][place, one]),
                    state["tokens"][place, one, :length].tolist(),
                    {name: state[name][place, one] for name in RECORDS},
                    length=length,
                    finished=bool(state["ended"][place, one]),
                )
            )
        number = int(state["number"][place])
        request = SampleRequest(train[number], number, turn.setting.initial_samples)
        order = {row.sample: state["ended"][place, n] for n, row in enumerate(rows)}
        done = sorted((r for r in rows if r.finished), key=lambda r, o=order: o[r.sample])
        groups.append(_Group(request, int(state["created"][place]), rows, done))
    return groups


def _stored(state, segments: Segments, groups: Sequence[_Group], step: int):
    """The state with the groups that wait."""
    new = {name: np.zeros_like(array) for name, array in state.items()}
    new["number"][:] = -1
    new["sample"][:] = -1
    new["used"] = np.array(step, np.int32)
    for place, group in enumerate(groups):
        new["number"][place], new["created"][place] = group.request.number, group.created
        for one, row in enumerate(group.rows):
            tokens = row.before
            if row.tip >= 0:
                tokens = segments.batch.rollouts.tokens[row.tip, : row.length].tolist()
            new["tokens"][place, one, : len(tokens)] = tokens
            new["length"][place, one], new["sample"][place, one] = len(tokens), row.sample
            if row in group.done:
                new["ended"][place, one] = 1 + group.done.index(row)
            for name, array in (row.records | _records(segments, row)).items():
                new[name][place, one] = array
    return new
