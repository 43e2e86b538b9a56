"""ROSE: rollouts branch where likely tokens have different meanings.

"Reinforced Efficient Reasoning via Semantically Diverse Exploration",
https://github.com/ZiqiZhao1/ROSE-rl

    M    = -F H, H the entropy and F = Σ_{i≠j} p_i p_j cos(e_i, e_j) of the 20 likeliest tokens
    a row begins at the prompt with probability ε, else where M is largest in the rows before it
    A_t  = V(k₁) - V(k₀) between branch points k₀ ≤ t < k₁, R - V(k₀) after the last one
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / (B L) + β k3

ε is `fresh`; the default of the authors' code is 1 (no branches). V(k) is the mean reward of the
prompt's rows with a branch point at k. As in the code, rows are pooled by position, not by node. A
length penalty λ is off in the authors' script. Prefixes are trained in every row that has them.
Their verl divides only by L, so its loss is B times this loss.

Reports: Qwen and Llama on maths: above GRPO and tree methods, with shorter answers (no numbers).
Traps: Values pool branches at one position over all parents. If all cosines are positive, the
largest M is 0, at certain tokens, and a branch repeats its parent; check the metric
`uncertain_branches`. Then use `metric=dissimilarity`, our H (1 - F / Σ_{i≠j} p_i p_j). Rewards of
-1 count as correct in the length term.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.experience import Draw, experience
from rlvr_jax.experience.draws.trees.branching import top_entropy
from rlvr_jax.experience.draws.trees.segments import Segments, first_samples
from rlvr_jax.objectives import Transform, clipped_objective, fixed_length_mean, parent_rows
from rlvr_jax.objectives.statistics.groups import group_count, group_sum
from rlvr_jax.types import Method, Recipe, Rollouts, Shown, arguments_of, part, replace
from rlvr_jax.types.hyperparameters import Count, DualClip, MaxLength, NonNegative, Unit

Metric = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""(entropy, similarity F, its largest value Σ_{i≠j} p_i p_j) of the likeliest tokens, [n, T] ->
[n, T]; rows branch at its maximum."""


def similarity(
    topk_logp: np.ndarray, topk_ids: np.ndarray, embeddings: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """F = Σ_{i≠j} p_i p_j cos(e_i, e_j), the similarity of the meanings of the likeliest tokens,
    and its value if all cosines are 1.

    Args:
      topk_logp, topk_ids: log-probs (nats) and ids of the K likeliest tokens, [n, T, K].
      embeddings: [V, D], of any length but 0.
    Returns:
      Two arrays [n, T].
    """
    unit = embeddings / np.linalg.norm(embeddings, axis=-1, keepdims=True)
    p = np.exp(topk_logp)
    # Row by row: K embeddings of every token at once would not fit.
    sums = [np.einsum("tk,tkd->td", own, unit[ids]) for own, ids in zip(p, topk_ids, strict=True)]
    length = np.array([np.sum(one**2, axis=-1) for one in sums]).reshape(p.shape[:2])
    own = np.sum(p**2, axis=-1)
    return length - own, np.sum(p, axis=-1) ** 2 - own


def diversity(entropy: np.ndarray, likeness: np.ndarray, largest: np.ndarray) -> np.ndarray:
    """M = -F H: many likely tokens of different meaning.

    If all embeddings have similar directions F is positive everywhere, and the largest M is 0, at
    certain tokens.
    """
    del largest
    return -likeness * entropy


def dissimilarity(entropy: np.ndarray, likeness: np.ndarray, largest: np.ndarray) -> np.ndarray:
    """H (1 - F / Σ_{i≠j} p_i p_j): not negative, and 0 only at certain tokens or equal meanings."""
    return entropy * (1 - likeness / np.maximum(largest, np.finfo(largest.dtype).tiny))


@part
def branch_at_best(fresh: Unit = 0.5, metric: Metric = diversity, top: Count = 20) -> Draw:
    """Samples the responses to a prompt one after the other, as branches of earlier ones.

    The first begins at the prompt, and so does each later one with probability `fresh`. Otherwise
    the branch position has the largest metric among all tokens sampled for the prompt. The response
    begins with the tokens before it, and the token there is sampled again. A position may be chosen
    repeatedly. Tokens in several rows are trained in each. A step makes as many sampler calls as a
    prompt has samples.

    Args:
      fresh, metric, top: as for `rose`.
    Metrics: branched_rows (rows), uncertain_branches (rows that branch at a token of metric above
      0), branch_position (mean over the branched rows; 0 without any).
    """

    def apply(requests, actor, state, turn):
        segments = Segments(actor, turn.key, {"record_top": top})
        random, numbered, embeddings = turn.random(), first_samples(requests), actor.embeddings()
        rows: list[list[int]] = [[] for _ in requests]
        places = np.zeros((0, 0))
        cuts: list[int] = []
        uncertain = 0
        for sample in range(max(request.samples for request in requests)):
            begins = random.random(len(requests)) < fresh
            groups = [group for group, request in enumerate(requests) if sample < request.samples]
            parent, cut = np.full(len(requests), -1), np.zeros(len(requests), int)
            for group in groups:
                if rows[group] and not begins[group]:
                    own = places[rows[group]]
                    row, place = np.unravel_index(own.argmax(), own.shape)
                    # The first sampled token has no prefix.
                    if np.isfinite(own[row, place]) and place > 0:
                        parent[group], cut[group] = rows[group][row], place
                        uncertain += own[row, place] > 0
            sampled = segments.draw(
                [requests[group] for group in groups],
                numbered[groups] + sample,
                parent[groups],
                cut[groups],
            )
            cuts += cut[groups][parent[groups] >= 0].tolist()
            places = _with_places(segments, places, sampled, metric, embeddings)
            for group, segment in zip(groups, sampled, strict=True):
                rows[group].append(int(segment))
        metrics = {
            "branched_rows": float(len(cuts)),
            "uncertain_branches": float(uncertain),
            "branch_position": float(np.mean(cuts)) if cuts else 0.0,
        }
        return (
            segments.responses([segment for own in rows for segment in own], requests),
            state,
            metrics,
        )

    return Draw(apply)


def _with_places(segments, places, sampled, metric, embeddings) -> np.ndarray:
    """The metric at every token of every chunk's response; -inf where nothing was sampled."""
    rollouts = segments.batch.rollouts
    logp, ids = (
        rollouts.records["sampled_topk_logp"][sampled],
        rollouts.records["sampled_topk_ids"][sampled],
    )
    own = metric(top_entropy(logp), *similarity(logp, ids, embeddings))
    own = np.where(segments.new_tokens(sampled), own, -np.inf)
    whole = np.concatenate([places.reshape(-1, own.shape[1]), own])
    # Tokens of a prefix have the metric of the time when they were sampled.
    source = segments.source[sampled]
    whole[sampled] = whole[source, np.arange(own.shape[1])[None]]
    return whole


@part(writes={"advantage"})
def between_branch_points(length_penalty: NonNegative = 0.0) -> Transform:
    """A_t = V(k₁) - V(k₀) between two branch points of a row, R - V(k₀) after the last one.

    V(k) is the mean reward of the prompt's rows that branch, or from which others branch, at
    position k (`prefix_values`). Each stretch of a row is credited with the rise of the value over
    it.

    A length penalty reduces advantages of rows of nonzero reward (|R| > 1e-6) that are longer than
    the shortest such row. With k the last branch point of both, A_t ← A_t - f |A_t| from k on, f =
    1 - ((L_s - k) / (L - k))^λ where that is positive.

    Args:
      length_penalty: λ; 0: off.
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        parent = parent_rows(rollouts.parent, rollouts.rollout_id)
        tokens = signals.mask.shape[1]
        points = branch_points(parent, rollouts.branch_position, tokens)
        advantage, _ = stretch_credit(rollouts, points)
        if length_penalty:
            advantage = shorten_correct_rows(advantage, rollouts, points, length_penalty)
        return replace(signals, advantage=jnp.where(signals.mask, advantage, 0)), state, {}

    return apply


def branch_points(
    parent: Int[Array, "B"], branch_position: Int[Array, "B"], tokens: int
) -> Bool[Array, "B T"]:
    """The positions of each row at which its tree branches on the row's path.

    They are 0, where the row and its ancestors branched off, and its parent's before its own. Where
    other rows branched off it is one as well. Ancestors get such a position while it is at most the
    one where they branched off.

    Args:
      parent, branch_position: as for `token_owner`.
      tokens: number of token positions (T).
    """
    rows = parent.shape[0]
    every = jnp.arange(rows, dtype=jnp.int32)
    places = jnp.arange(tokens, dtype=jnp.int32)[None]
    position = jnp.where(parent >= 0, branch_position, 0)

    def some_are_left(carry):
        return jnp.any(carry[0] >= 0)

    def above(row):
        return jnp.where(row >= 0, parent[row], -1)

    def of_ancestors(carry):
        current, points = carry
        own = (current >= 0)[:, None] & (places == position[current][:, None])
        return above(current), points | own

    def handed(carry):
        holder, points = carry
        to = jnp.where(holder >= 0, holder, rows)
        points = points.at[to, position].set(True, mode="drop")
        goes_on = (holder >= 0) & (position <= position[holder])
        return jnp.where(goes_on, above(holder), -1), points

    begin = jnp.broadcast_to(places == 0, (rows, tokens))
    _, points = jax.lax.while_loop(some_are_left, of_ancestors, (every, begin))
    _, points = jax.lax.while_loop(some_are_left, handed, (parent, points))

    def inherited(points):
        before = (parent >= 0)[:, None] & (places < position[:, None])
        return points | (points[parent] & before)

    def changes(carry):
        return jnp.any(carry[0] != carry[1])

    start = points, inherited(points)
    return jax.lax.while_loop(changes, lambda carry: (carry[1], inherited(carry[1])), start)[1]


def stretch_credit(rollouts: Rollouts, points: Bool[Array, "B T"]) -> tuple[Array, Array]:
    """The advantage of each token and the value at the beginning of its stretch, [B, T]."""
    width = points.shape[1]
    places = jnp.arange(width, dtype=jnp.int32)[None]
    value = prefix_values(rollouts.reward, rollouts.group, points)
    inside = points & (places < rollouts.length[:, None])
    first = jax.lax.cummax(jnp.where(inside, places, 0), axis=1)
    beyond = jnp.where(inside, places, width)
    # The next branch point after each position.
    following = jax.lax.cummin(beyond, axis=1, reverse=True)
    following = jnp.pad(following[:, 1:], ((0, 0), (0, 1)), constant_values=width)
    begun = jnp.take_along_axis(value, first, axis=1)
    ended = jnp.take_along_axis(value, jnp.minimum(following, width - 1), axis=1)
    ended = jnp.where(following < width, ended, rollouts.reward[:, None])
    return ended - begun, begun


def prefix_values(
    reward: Float[Array, "B"], group: Int[Array, "B"], points: Bool[Array, "B T"]
) -> Float[Array, "B T"]:
    """V(k): mean reward of the prompt's rows with a branch point at position k; 0 without any."""
    columns = jax.vmap(group_sum, in_axes=(1, None, 1), out_axes=1)
    rewards = jnp.broadcast_to(reward[:, None], points.shape)
    number = columns(points.astype(reward.dtype), group, points)
    return columns(rewards, group, points) / jnp.maximum(number, 1)


def shorten_correct_rows(
    advantage: Float[Array, "B T"],
    rollouts: Rollouts,
    points: Bool[Array, "B T"],
    exponent: float,
) -> Float[Array, "B T"]:
    """The length penalty of `between_branch_points`.

    Args:
      advantage: of the tokens, [B, T].
      rollouts: the batch.
      points: branch points, bool [B, T], from `branch_points`.
      exponent: strength of the penalty, above 0 (λ).
    """
    length, width = rollouts.length, points.shape[1]
    rows = jnp.arange(len(length), dtype=jnp.int32)
    places = jnp.arange(width, dtype=jnp.int32)[None]
    counts = jnp.abs(rollouts.reward) > 1e-6
    same = (rollouts.group[:, None] == rollouts.group[None]) & counts[None]
    lengths = jnp.where(same, length[None], jnp.iinfo(length.dtype).max)
    shortest = jnp.argmin(lengths, axis=1).astype(jnp.int32)
    several = group_count(rollouts.group, counts) > 1
    both = points & points[shortest]
    both &= places <= jnp.minimum(length, length[shortest])[:, None]
    common = jnp.max(jnp.where(both, places, 0), axis=1)
    own = (length - common).astype(advantage.dtype)
    other = (length[shortest] - common).astype(advantage.dtype)
    fraction = 1 - (other / jnp.where(own > 0, own, 1)) ** exponent
    pays = counts & several & (shortest != rows) & (own > 0) & (fraction > 0)
    behind = pays[:, None] & (places >= common[:, None]) & (places < length[:, None])
    return jnp.where(behind, advantage - fraction[:, None] * jnp.abs(advantage), advantage)


@arguments_of(clipped_objective, "clip_low", "clip_high", "kl_coefficient", kl_coefficient=0.001)
def rose(
    fresh: Unit = 0.5,
    metric: Metric = diversity,
    top: Count = 20,
    length_penalty: NonNegative = 0.0,
    dual: DualClip = 3.0,
    max_length: MaxLength = 8192,
    **clip: Any,
) -> Recipe:
    """Credits stretches between branch points, on rows that branch at tokens of diverse meaning.

    Args:
      fresh: probability that a row begins at the prompt (ε).
      metric: `diversity` (M), or `dissimilarity` where the embeddings have similar directions.
      top: likeliest tokens in the metric.
      length_penalty: exponent of the length penalty (λ); 0: off.
    """
    return Recipe(
        objective=clipped_objective(
            advantage=between_branch_points(length_penalty),
            dual_clip=dual,
            aggregation=fixed_length_mean(max_length),
            **clip,
        ),
        experience=experience(draw=branch_at_best(fresh, metric, top)),
    )


METHOD = Method(
    rose,
    changes="sampling, advantage, aggregation, regularizer",
    denominator="rows",
    shown=Shown(
        "brackets",
        "experience/uncertain_branches",
        without={"fresh": 1},
        steps=300,
    ),
)
