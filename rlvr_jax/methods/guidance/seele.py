"""SEELE: every prompt with so much of its solution that half of the answers are right.

"Staying in the Sweet Spot: Responsive Reasoning Evolution via Capability-Adaptive Hint
Scaffolding", https://arxiv.org/abs/2509.06923

    f(p) = b + (1 - b) / (1 + exp(-k (p + μ))), accuracy with the share p of the solution's steps
    m rounds of n answers, the next with p = f⁻¹(a*), fitted to the rounds so far
    A_i  = R_i - mean over all m n rows of the prompt
    loss = [Σ over drawn tokens of PPO clip + β k3(π ‖ π_ref)  +  Σ over hint tokens of -γ logp]
           / number of both

A hint stands in front of the response and is imitated a little. The first visit of a prompt begins
with all steps but the last, later ones with what the last ended with. The paper prints γ π for the
imitation; γ logp is what imitation needs. Clip, aggregation, the bounds of the fit, and k and b of
a curve of fewer than three points are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from scipy.optimize import least_squares

from rlvr_jax.experience import experience, shuffled_epochs
from rlvr_jax.experience.parts import Curriculum, Stage
from rlvr_jax.experience.views import begin_with, begin_with_most
from rlvr_jax.objectives import (
    Context,
    by_origin,
    group_centered,
    kl_penalty,
    objective,
    ppo_clip,
    token_mean,
)
from rlvr_jax.objectives.algebra.parts import Surrogate
from rlvr_jax.objectives.surrogates.by_origin import GIVEN
from rlvr_jax.types import Method, Recipe, Signals
from rlvr_jax.types.hyperparameters import (
    ClipHigh,
    ClipLow,
    Count,
    KLCoefficient,
    NonNegative,
    OpenUnit,
)
from rlvr_jax.types.parts import part
from rlvr_jax.types.rollouts import Rollouts

UNKNOWN = -1.0
"""The share of a prompt that was not asked yet."""


@part
def remember_hints() -> Curriculum:
    """Asks a prompt with the hint that its last visit ended with; at first with all but one step.

    A response begins with that part of the worked solution, its tokens on the mask; stages such as
    `search_hint` find better ones.

    Reads: Prompt.solution. Metrics: remembered_hint (mean of what is remembered after the step,
      over the prompts that it asked).
    """

    def init(setting):
        return np.full(len(setting.task.train), UNKNOWN, np.float32)

    def propose(asks, state, turn):
        del turn
        return [replace(ask, view=_hinted(ask, state)) for ask in asks]

    def observe(state, turn, seen, learned):
        del turn, learned
        state, asked = state.copy(), set()
        for batch in seen:
            for rows in batch.groups:
                ask = batch.asks[rows[0]]
                if not ask.rating and ask.number < len(state):
                    state[ask.number] = ask.view.fraction
                    asked.add(ask.number)
        return state, {"remembered_hint": float(np.mean(state[sorted(asked)]))} if asked else {}

    needs, views = frozenset({"solution"}), (begin_with_most(trained=True),)
    return Curriculum(propose, init, observe, reads=needs, views=views)


def _hinted(ask, state):
    steps = len(ask.prompt.solution)
    known = state[ask.number] if ask.number < len(state) else UNKNOWN
    share = (steps - 1) / steps if known == UNKNOWN else round(float(known) * steps) / steps
    return begin_with(share, trained=True, whole_steps=True)


@part(
    reads=frozenset({"solution"}),
    writes=frozenset({"origin"}),
    by_row=True,
    views=(begin_with(1.0, trained=True, whole_steps=True),),
)
def search_hint(rounds: Count, target: OpenUnit) -> Stage:
    """Draws every group in rounds, each with the hint that should bring its accuracy to a target.

    A response begins with the first steps of the worked solution, whose tokens are on the mask. The
    first round is what was drawn, with the views that curricula gave (`remember_hints`); after
    each, a curve of accuracy over the share that is shown is fitted to the rounds so far. The rows
    of all rounds are one group.

    Args:
      rounds: m; rows of a group must be a multiple.
      target: accuracy a*, in (0, 1).
    Reads: outcome, Prompt.solution. Draws: m - 1 times what was drawn. Writes: mask, origin.
    Metrics: hint_share (mean of the last round), hinted_outcome (mean of the last round).
    Raises:
      ValueError: rounds below 1, a target outside (0, 1); rows per group that are no multiple.
    """

    def size(samples):
        if samples % rounds:
            raise ValueError(
                f"search_hint: rows of a group must be a multiple of the {rounds} rounds, got"
                f" {samples}"
            )
        return samples // rounds

    def apply(batch, actor, state, turn):
        every = np.ones(len(batch.groups), bool)
        asks, last = batch.asks_of(every), batch.outcomes()
        points = [[] for _ in asks]
        for number in range(1, rounds):
            for known, ask, outcomes in zip(points, asks, last, strict=True):
                if not np.isnan(outcomes).all():
                    known.append((ask.view.fraction, float(np.nanmean(outcomes))))
            asks = [
                replace(ask, view=_view(known, ask, target), first_sample=number * ask.samples)
                for known, ask in zip(points, asks, strict=True)
            ]
            drawn = actor.grade(actor.draw(asks, jax.random.fold_in(turn.key, number)))
            batch, last = batch.with_groups(every, drawn, "append"), drawn.outcomes()
        told = {
            "hint_share": float(np.mean([ask.view.fraction for ask in asks])),
            "hinted_outcome": float(np.mean(np.nan_to_num(last))),
        }
        return batch, state, told

    return Stage(apply, size=size)


def _view(points, ask, target):
    """The next hint; that of the last round where no answer had a verdict."""
    steps = len(ask.prompt.solution)
    share = next_hint(points, target, steps) if points else ask.view.fraction
    return begin_with(share, trained=True, whole_steps=True)


STEEP = 8.0
"""k of a curve of fewer than three different points."""


EDGE = 0.02
"""Accuracies are taken to be so far from 0 and 1 at least, of which no curve has any."""


BOUNDS = (0.1, 100.0), (-3.0, 2.0)
"""Of k and of μ."""


class Curve(NamedTuple):
    """The numbers of a curve, floats or arrays."""

    b: np.ndarray
    k: np.ndarray
    mu: np.ndarray

    def __call__(self, ratio: np.ndarray) -> np.ndarray:
        """Accuracy at a hint of this share."""
        return self.b + (1 - self.b) / (1 + np.exp(-self.k * (ratio + self.mu)))

    def ratio(self, accuracy: float) -> np.ndarray:
        """The share at which the accuracy is reached; accuracy in (b, 1)."""
        return -self.mu - np.log((1 - self.b) / (accuracy - self.b) - 1) / self.k


def fitted_curve(points: Sequence[tuple[float, float]], target: float) -> Curve:
    """The curve nearest to measured points in the sense of least squares.

    Points of one share are averaged. With fewer than three shares only μ is fitted, b = 0 and k =
    8 are taken; else b stays below the target, so that this has a share.

    Args:
      points: (share, accuracy).
      target: accuracy that is wanted.
    """
    shares = np.unique([share for share, _ in points])
    rates = np.array([np.mean([a for p, a in points if p == share]) for share in shares])
    rates = np.clip(rates, EDGE, 1 - EDGE)
    middle = float(np.mean(Curve(0.0, STEEP, 0.0).ratio(rates) - shares))
    (k_low, k_high), (mu_low, mu_high) = BOUNDS
    middle = float(np.clip(middle, mu_low, mu_high))
    if len(shares) < 3:
        found = least_squares(
            lambda x: Curve(0.0, STEEP, x[0])(shares) - rates, [middle], bounds=(mu_low, mu_high)
        )
        return Curve(0.0, STEEP, float(found.x[0]))
    found = least_squares(
        lambda x: Curve(*x)(shares) - rates,
        [min(0.05, target / 2), STEEP, middle],
        bounds=([0.0, k_low, mu_low], [target * (1 - EDGE), k_high, mu_high]),
        xtol=1e-12,
        ftol=1e-12,
        gtol=1e-12,
    )
    return Curve(*map(float, found.x))


def next_hint(points: Sequence[tuple[float, float]], target: float, steps: int) -> float:
    """The share of a solution that should bring the accuracy nearest to the target.

    A multiple of 1 / steps. Where all accuracies are 0, or all are 1, one step more than the
    longest hint so far, or one fewer than the shortest.

    Args:
      points: (share, accuracy) so far, at least one.
      target: in (0, 1).
      steps: of the solution.
    """
    shares, rates = zip(*points, strict=True)
    if max(rates) == 0:
        wanted = max(shares) + 1 / steps
    elif min(rates) == 1:
        wanted = min(shares) - 1 / steps
    else:
        wanted = float(fitted_curve(points, target).ratio(target))
    return round(float(np.clip(wanted, 0, 1)) * steps) / steps


def hint_tokens(rollouts: Rollouts) -> Bool[Array, "B T"]:
    """Tokens that responses were made to begin with; none where nobody says so."""
    return rollouts.mask & False if rollouts.origin is None else rollouts.origin == GIVEN


@part
def imitated(weight: NonNegative) -> Surrogate:
    """-w logp, whatever the advantage: for tokens that are to be learned as they stand.

    Args:
      weight: w, at least 0.
    """

    def prepare(signals, context):
        del context
        return signals

    def loss(signals, context):
        del signals
        return -weight * context.stats.logp

    return Surrogate(prepare, loss)


def seele(
    rounds: int = 4,
    target: float = 0.5,
    imitation: float = 0.001,
    kl_coefficient: KLCoefficient = 0.001,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
) -> Recipe:
    """PPO behind hints whose length is searched for, with a little imitation of the hints.

    Args:
      rounds: of drawing, each with a hint of its own (m); rows of a group must be a multiple.
      target: accuracy that the hints are to bring (a*).
      imitation: weight of the log-probs of hint tokens (γ).
    """
    own = ppo_clip(low=clip_low, high=clip_high)
    near = [kl_penalty(kl_coefficient, weight=drawn)] if kl_coefficient else []
    return Recipe(
        objective=objective(
            advantage=group_centered(),
            surrogate=by_origin(own, imitated(imitation), where=hint_tokens, reads=()),
            regularizers=near,
            aggregation=token_mean(),
        ),
        experience=experience(
            [shuffled_epochs(), remember_hints()], stages=[search_hint(rounds, target)]
        ),
    )


def drawn(signals: Signals, context: Context) -> Float[Array, "B T"]:
    """1 on the tokens that were drawn, 0 on hints, [B, T]."""
    return jnp.where(hint_tokens(context.rollouts), 0, jnp.ones_like(signals.weight))


METHOD = Method(
    seele,
    "Staying in the Sweet Spot: Responsive Reasoning Evolution via Capability-Adaptive Hint"
    " Scaffolding",
    "https://arxiv.org/abs/2509.06923",
    changes="advantage, surrogate, regularizer, curriculum, sampling, guidance",
    evidence="reconstruction",
    reports=(
        "six maths sets: 11.8 over GRPO, 10.5 over SFT, 3.6 over the best other hints; Qwen2.5-3B "
        "42.2, GRPO 30.4"
    ),
    traps=(
        "needs whole solutions in steps; a group's rows have different hints and one mean; with "
        "fewer than three hint lengths the curve is a guess; hints are imitated once a row"
    ),
)
