"""SCOPE: a wrong answer keeps its right beginning, and a teacher writes the rest.

"Recycling Failures: Salvaging Exploration in RLVR via Fine-Grained Off-Policy Guidance", of which
the abstract was read; the loss is LUFFY's with the origin of each token in the place of the row's.

    e = the first step of a wrong answer whose score is below a bound
    a teacher goes on behind the steps before e; what is right then takes the answer's place, R = 1
    A_i  = (R_i - mean) / (std + 1e-6) over the group, std with n - 1
    kept token:     max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε))
    teacher's:      -A f(π),  f(π) = π / (π + γ)
    loss = Σ over all tokens / Σ n_i

Kept tokens are the policy's own and gain from an answer that had failed; an answer that is wrong
from the start stays as it is. A group keeps one wrong answer, or it would teach nothing. Scores
locate and are no reward. The teacher is the policy that is shown the worked solution; bound, number
of answers, teacher and shaping are ours.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlvr_jax.experience import experience, score_steps
from rlvr_jax.experience.asks import View
from rlvr_jax.experience.batch import Batch, concatenate
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.donors.traces import own_rows
from rlvr_jax.experience.stages.rounds.first_errors import RIGHT, repairable
from rlvr_jax.experience.views import hint
from rlvr_jax.objectives import (
    by_origin,
    group_normalized,
    objective,
    ppo_clip,
    shaped_probability,
    token_mean,
)
from rlvr_jax.objectives.surrogates.by_origin import TEACHER
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon, Finite
from rlvr_jax.types.parts import part


def rectified_tokens(mask: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tokens of the beginning that a row keeps, and those that were written anew; bool [B, T] each.

    Args:
      mask: bool [B, T].
      start: int [B], tokens that are kept.
    """
    kept = np.arange(mask.shape[1])[None] < np.asarray(start)[:, None]
    return mask & kept, mask & ~kept


@part(writes=frozenset({"off_policy", "origin"}), by_row=True)
def salvage(teacher: View, below: Finite) -> Stage:
    """Goes on from the right beginning of wrong answers as a teacher would, and learns from both.

    The teacher is the policy that is shown more, such as the solution. What it writes behind the
    steps before the first wrong one is graded together with these; if it is right, the whole takes
    the place of the wrong answer, with reward 1, its end marked as a teacher's (`origin`) and
    trained under the prompt as it was. Where that would leave a group without a wrong answer, the
    last one stays. `score_steps` stands before it.

    Args:
      teacher: what the one who goes on is shown, such as `hint(1.0)`.
      below: score below which a step is wrong.
    Reads: outcome, step, process_reward. Draws: one row for each that can be repaired. Writes:
      origin, off_policy; reward, of the rows that are put in.
    Metrics: salvageable_rows (share of all), salvaged_rows (share of all).
    Raises:
      ValueError: a bound that is not finite.
    """

    def apply(batch, actor, state, turn):
        if batch.rollouts.step is None or batch.rollouts.process_reward is None:
            raise ValueError("salvage: steps must be scored, put score_steps() before it")
        can, start = repairable(batch, below)
        rows = np.flatnonzero(can & (start > 0))
        batch = own_rows(batch)
        told = {"salvageable_rows": len(rows) / len(batch), "salvaged_rows": 0.0}
        if not len(rows):
            return batch, state, told
        place = np.concatenate([np.arange(len(group)) for group in batch.groups])
        asks = [
            replace(
                batch.asks[row],
                view=teacher,
                samples=1,
                given=batch.rollouts.tokens[row, : start[row]].tolist(),
                first_sample=int(place[row]),
            )
            for row in rows
        ]
        drawn = actor.grade(actor.draw(asks, turn.key))
        right = np.flatnonzero(drawn.rollouts.outcome > RIGHT)
        right = right[_spared(batch, rows[right])]
        if not len(right):
            return batch, state, told
        mended = _mended(batch.take(rows[right]), drawn.take(right), start[rows[right]])
        order = np.arange(len(batch))
        order[rows[right]] = len(batch) + np.arange(len(right))
        group = batch.rollouts.group
        whole = concatenate([batch, mended]).take(order).with_rollouts(group=group).renumbered()
        return whole, state, told | {"salvaged_rows": len(right) / len(batch)}

    return Stage(apply, reads=teacher.reads, views=(teacher,))


def _spared(batch: Batch, rows: np.ndarray) -> np.ndarray:
    """Which of these wrong rows may be replaced so that each group keeps a wrong one, bool [n]."""
    kept = np.ones(len(rows), bool)
    group = batch.rollouts.group
    # One without a verdict is not wrong: it leaves its group.
    failed = batch.decided & (batch.rollouts.outcome <= RIGHT)
    for number in np.unique(group[rows]):
        wrong = np.sum((group == number) & failed)
        own = np.flatnonzero(group[rows] == number)
        kept[own[wrong - 1 :]] = False
    return kept


def _mended(before: Batch, drawn: Batch, start: np.ndarray) -> Batch:
    """The drawn rows as answers to the prompts as they were, begun by the policy."""
    rollouts, own = drawn.rollouts, before.rollouts
    places = np.arange(rollouts.mask.shape[1])[None]
    mask = places < rollouts.length[:, None]
    kept, written = rectified_tokens(mask, start)
    spread = {
        name: np.where(kept, getattr(own, name), 0).astype(getattr(own, name).dtype)
        for name in ("behaviour_logp", "entropy")
    }
    changed = own_rows(drawn).with_rollouts(
        prompt_tokens=own.prompt_tokens,
        prompt_length=own.prompt_length,
        mask=mask,
        origin=np.where(written, TEACHER, 0).astype(np.int32),
        reward=np.ones_like(rollouts.reward),
        **spread,
    )
    return replace(changed, asks=before.asks)


def scope(
    wrong_below: float = 0.0,
    gamma: float = 0.1,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    hint_fraction: float = 1.0,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """PPO on what the policy wrote, shaped probability on what a teacher put behind it.

    Args:
      wrong_below: score below which a step is wrong; 0.5 where scores are 0 and 1.
      gamma: probability at which a teacher's token is learned from most (γ).
      hint_fraction: of the worked solution that the teacher is shown.
    """
    own = ppo_clip(low=clip_low, high=clip_high)
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=by_origin(own=own, foreign=shaped_probability(gamma)),
            aggregation=token_mean(),
        ),
        experience=experience(stages=[score_steps(), salvage(hint(hint_fraction), wrong_below)]),
    )


METHOD = Method(
    scope,
    "Recycling Failures: Salvaging Exploration in RLVR via Fine-Grained Off-Policy Guidance",
    "",
    changes="surrogate, sampling, guidance",
    ratio="other",
    evidence="reconstruction",
    left_out="another model as teacher, which rectifies step by step",
    reports="46.6 % on average on maths and 53.4 % out of distribution; diversity 13.5 % higher",
    traps=(
        "an answer wrong from its first step, or in none, is not salvaged; one wrong answer of a "
        "group always stays, else it had no signal; with step scores of 0 and 1 give "
        "`wrong_below=0.5`"
    ),
)
