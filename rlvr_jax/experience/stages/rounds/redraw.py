"""Groups that are drawn again: under another view of their prompts, or for other prompts."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from rlvr_jax.experience.asks import View, shows_nothing
from rlvr_jax.experience.batch import Batch, GroupTest, concatenate
from rlvr_jax.experience.parts import Actor, Stage, Turn, no_state
from rlvr_jax.experience.stages.donors.traces import own_rows
from rlvr_jax.experience.stages.rounds.another_view import under_another_view
from rlvr_jax.types.hyperparameters import Count
from rlvr_jax.types.parts import part


@part
def redraw(
    when: GroupTest,
    view: View,
    place: str = "replace",
    samples: int = 0,
    trained: View | None = None,
    plain: int = 0,
    after: int = 0,
) -> Stage:
    """Draws groups again under another view of their prompts.

    The new rows are trained in the context that they were drawn in, so their ratio is 1; or under
    another view, and then they are marked `off_policy` and their old log-probs are of the context
    that they were drawn in.

    Args:
      when: which groups, such as `all_wrong`.
      view: what is shown this time, such as `hint(0.25)`.
      place: "replace" the rows, or "append" to them.
      samples: responses to each; 0: as many as the group has answers.
      trained: the view under which the new rows are learned from; None: that which was shown.
      plain: of the new rows the last so many, which are drawn from the prompt as it is, and stand
        in the same group.
      after: steps before which nothing is drawn again.
    Reads: outcome. Draws: `samples` for each group that is drawn again. Writes: with `trained`
      off_policy, shown_tokens, shown_length. Metrics: redrawn_share (of the groups);
      redrawn_as_it_was (of those that are drawn again, the share of whose prompts the view shows
      nothing, such as a hint that gives the answer away).
    """

    def apply(batch, actor, state, turn):
        again = np.asarray(when(batch.outcomes())) & (turn.step >= after)
        told = {"redrawn_share": float(again.mean())}
        if trained is not None:
            batch = own_rows(batch)
        if not again.any():
            return batch, state, told
        first = [batch.asks[rows[0]] for rows in batch.groups]
        sizes = np.array([samples or len(answers) for answers in batch.answers.groups])
        shown = redrawn_rows(again, sizes, plain)
        asks = []
        chosen = [ask for ask, out in zip(first, again, strict=True) if out]
        for ask, table, size in zip(chosen, shown[again], sizes[again], strict=True):
            hinted = int(table.sum())
            asks.append(replace(ask, view=view, samples=hinted))
            if hinted < size:
                asks.append(replace(ask, samples=int(size) - hinted, first_sample=hinted))
        told["redrawn_as_it_was"] = float(
            np.mean([shows_nothing(replace(ask, view=view), turn.setting.task) for ask in chosen])
        )
        drawn = actor.grade(actor.draw(asks, turn.key))
        if plain:
            group = np.repeat(np.arange(len(sizes[again]), dtype=np.int32), sizes[again])
            drawn = drawn.with_rollouts(group=group).renumbered()
        if trained is not None:
            drawn = under_another_view(drawn, actor, trained)
        return batch.with_groups(again, drawn, place), state, told

    more = "" if trained is None else f", trained={trained.label}"
    more += "".join(
        f", {name}={value}" for name, value in (("plain", plain), ("after", after)) if value
    )
    return Stage(
        apply,
        reads=view.reads,
        views=(view,) if trained is None else (view, trained),
        writes=frozenset() if trained is None else frozenset({"off_policy"}),
        counts=plain > 0,
        most=2.0 if place == "append" else 1.0,
    )


def redrawn_rows(again: np.ndarray, samples: np.ndarray, plain: int) -> np.ndarray:
    """Which of the new rows of groups are drawn under the other view, bool [G, N].

    Args:
      again: bool [G], groups that are drawn again.
      samples: int [G], new rows of each.
      plain: of these the last so many are not.
    """
    places = np.arange(max(samples.max(initial=0), 0))
    return again[:, None] & (places[None] < (samples - plain)[:, None])


@part
def refill(when: GroupTest, rounds: Count, stages: Sequence[Stage] = ()) -> Stage:
    """Draws further prompts until the batch is full of groups that are not dropped.

    Each round asks as many prompts as a step has; of what is kept the first ones are taken, in the
    order of arrival. When the rounds are used up, dropped groups fill the batch; their mask is
    cleared, so that they count nowhere.

    Args:
      when: which groups are dropped, such as `uniform`. Groups without a verdict always are.
      rounds: batches that are drawn at most, the first one included.
      stages: what becomes of the batch of each round before groups are dropped, such as
        `redraw(…)`; without state, and of as many rows as before.
    Reads: outcome. Writes: mask, of groups that fill the batch.
    Metrics: refill/rounds (batches drawn), refill/kept_share (of the groups drawn),
      refill/filled_with_dropped (groups); those of the stages, a mean over the rounds.
    Raises:
      ValueError: fewer than one round; a stage with state, or one that changes the number of rows.
    Source: Yu et al. 2025, https://arxiv.org/abs/2503.14476 (dynamic sampling).
    """
    for stage in stages:
        if stage.init is not no_state or stage.most != 1 or stage.rounds or stage.updates:
            raise ValueError(
                f"refill: stages must have no state and leave the number of rows, got {stage.label}"
            )

    def apply(batch, actor, state, turn):
        told: dict[str, list[float]] = {}

        def changed(batch):
            for stage in stages:
                batch, _, found = stage.apply(batch, actor, (), turn)
                for name, value in found.items():
                    told.setdefault(name, []).append(value)
            return batch

        def pool(*_):
            return turn.setting.prompts

        full, counts = refilled(batch, actor, turn, when, rounds, pool, changed)
        return full, state, counts | {name: float(np.mean(values)) for name, values in told.items()}

    return Stage(
        apply,
        reads=frozenset().union(*(stage.reads for stage in stages)),
        views=tuple(view for stage in stages for view in stage.views),
        writes=frozenset().union(*(stage.writes for stage in stages)),
        by_row=any(stage.by_row for stage in stages),
        rounds=rounds - 1,
    )


def refilled(
    batch: Batch,
    actor: Actor,
    turn: Turn,
    when: GroupTest,
    rounds: int,
    pool: Callable[[int, int, int], int],
    changed: Callable[[Batch], Batch] = lambda batch: batch,
) -> tuple[Batch, dict[str, float]]:
    """The batch of `refill`, in which a round may ask another number of prompts, and metrics.

    Of groups that are kept the first ones drawn are taken, as many as a step has prompts.

    Args:
      pool: (groups missing, groups kept, groups drawn so far) -> prompts of the next round.
      changed: what becomes of the batch of a round first.
    """
    wanted = turn.setting.prompts
    batch = changed(batch)
    drawn = [batch]
    kept, spare = _sorted(batch, 0, when)
    while len(kept) < wanted and len(drawn) < rounds:
        asks = turn.more(pool(wanted - len(kept), len(kept), len(kept) + len(spare)))
        if not asks:
            break
        drawn.append(changed(actor.grade(actor.draw(asks))))
        more = _sorted(drawn[-1], len(drawn) - 1, when)
        kept, spare = kept + more[0], spare + more[1]
    told = {
        "refill/rounds": len(drawn),
        "refill/kept_share": len(kept) / (len(kept) + len(spare)),
        "refill/filled_with_dropped": max(0, wanted - len(kept)),
    }
    if len(drawn) == 1 and len(batch.groups) <= wanted:
        dropped = [row for _, rows in spare for row in rows]
        return batch.without(np.isin(np.arange(len(batch)), dropped)), told
    parts = [drawn[number].take(rows) for number, rows in kept[:wanted]]
    for number, rows in spare[: wanted - len(parts)]:
        part = drawn[number].take(rows)
        parts.append(part.without(np.ones(len(part), bool)))
    return concatenate(parts).renumbered(), told


def _sorted(batch: Batch, number: int, when: GroupTest):
    """The groups that are kept and the others, each as (number of the batch, rows)."""
    outcomes = batch.outcomes()
    dropped = np.asarray(when(outcomes)) | np.isnan(outcomes).all(axis=1)
    places = [(number, rows) for rows in batch.groups]
    kept = [place for place, out in zip(places, dropped, strict=True) if not out]
    return kept, [place for place, out in zip(places, dropped, strict=True) if out]
