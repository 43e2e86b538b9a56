"""SWEET-RL, the second step: a policy learns which turns the critic prefers.

"SWEET-RL: Training Multi-Turn LLM Agents on Collaborative Reasoning Tasks",
https://github.com/facebookresearch/sweet_rl

    A     = mean over a turn's tokens of critic's logp - reference_logp, both after the answer
    pairs = of 16 candidates of a turn, 4 of the better half with 4 of the worse half
    loss  = mean over pairs of -log σ(β (S_better - S_worse)) - 0.01 · mean logp of the better ones

The critic reads the correct answer, the policy does not. S is the mean log-ratio of policy and
reference over the turn's tokens, without the answer in the prompt. The argument `critic` is the
policy folder of a `sweet_rl` run; `docs/results/methods/turn_critic` is that of its shown setting.
In each step, the current policy samples one turn of each group again. The authors sample all turns
once.

Reports: ColBench: 6 % more successes and wins than other multi-turn RL. Llama-3.1-8B equals GPT-4o.
Traps: With the default critic, the initial policy, all turns have equal scores and pairs carry no
information. Train `sweet_rl` first. Each group samples 16 more rows for one turn. The mean over
tokens keeps the loss almost linear.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Array, Bool

from rlvr_jax.experience import Actor, Batch, Stage, View, experience
from rlvr_jax.experience.views import with_reference
from rlvr_jax.methods._tools import Tools
from rlvr_jax.objectives import best_against_rest, imitate, objective_of_terms
from rlvr_jax.types import Method, Recipe, Rollouts, Shown, arguments_of, part
from rlvr_jax.types.hyperparameters import AtLeastTwo, Count, NonNegative, Positive


@part(by_row=True, counts=True)
def pair_turns(view: View, candidates: AtLeastTwo = 16, pairs: Count = 4) -> Stage:
    """Samples one turn of each group again, many times, and pairs better with worse candidates.

    One of all turns of a group is chosen at random. The text before it is given, and the recipe's
    draw takes the turn `candidates` times. The rest of each episode is played to its end and left
    out (an environment with a state begins anew).

    The critic is the recipe's teacher. The worth of a turn is the mean over its tokens of the
    teacher's log-prob less the initial policy's, both under the view. `pairs` turns are sampled
    from the better half, and `pairs` from the worse half. A pair is a group: its better turn has
    the reward 1 and the other one 0. Only the turn is on the mask.

    Args:
      view: prompt that critic and initial policy read, such as `with_reference()`.
      candidates, pairs: as for `sweet_rl_policy`.
    Draws: `candidates` rows for each group. Writes: mask, turn, reward.
    Metrics: turn_gap (mean worth of the better turns of pairs less that of the others, nats).
    Raises:
      ValueError: more pairs than half the candidates.
    """
    if 2 * pairs > candidates:
        raise ValueError(
            f"pair_turns: pairs must be at most half of {candidates} candidates, got {pairs}"
        )

    def apply(batch, actor, state, turn):
        random, task = turn.random(), turn.setting.task
        requests = []
        for rows in batch.groups:
            row, start = _some_turn(batch, rows, random)
            request = batch.requests[row]
            prefill = len(request.view.show(request.prompt, task).prefill(actor.encode))
            given = (
                batch.rollouts.tokens[row, prefill:start].tolist()
                if start > prefill
                else request.given
            )
            requests.append(replace(request, samples=candidates, given=given))
        sampled = _first_turns(actor.grade(actor.draw(requests, turn.key)))
        worth = _worth(sampled, actor, view)
        chosen, half = [], candidates // 2
        for rows in sampled.groups:
            order = rows[np.argsort(-worth[rows], kind="stable")]
            better = random.permutation(order[:half])[:pairs]
            worse = random.permutation(order[-half:])[:pairs]
            chosen.append(np.stack([better, worse], axis=1))
        places = np.concatenate(chosen)
        gap = worth[places[:, 0]] - worth[places[:, 1]]
        paired = sampled.take(places.reshape(-1)).rewarded(np.tile([1, 0], len(places)))
        group = np.repeat(np.arange(len(places), dtype=np.int32), 2)
        paired = paired.with_rollouts(group=group)
        return paired.renumbered(), state, {"turn_gap": float(gap.mean())}

    return Stage(apply, reads=view.reads, views=(view,), most=2.0 * pairs)


def _some_turn(batch: Batch, rows: np.ndarray, random: np.random.Generator) -> tuple[int, int]:
    """A random turn of the policy among those of some rows: its row, and its first token."""
    own = _turns(batch)[rows]
    found = [
        (row, n) for row, line in zip(rows, own, strict=True) for n in np.unique(line[line >= 0])
    ]
    if not found:
        return int(rows[0]), 0
    row, number = found[random.integers(len(found))]
    return int(row), int(np.argmax(own[rows == row][0] == number))


def _turns(batch: Batch) -> np.ndarray:
    """The turn of each token on the mask, -1 elsewhere; a response without turns is one turn."""
    turn = batch.rollouts.records.get("turn", 0)
    return np.where(batch.rollouts.mask, turn, -1)


def _first_turns(sampled: Batch) -> Batch:
    """The rows up to the end of the first sampled turn, with only that turn on the mask."""
    rollouts = sampled.rollouts
    own = _turns(sampled) == 0
    places = np.arange(own.shape[1], dtype=np.int32)[None]
    length = np.max(np.where(own, places + 1, 0), axis=1).astype(np.int32)
    there = places < length[:, None]
    return sampled.with_rollouts(
        mask=own,
        length=length,
        tokens=np.where(there, rollouts.tokens, 0),
        turn=np.where(own, 0, -1).astype(np.int32),
    )


def _worth(sampled: Batch, actor: Actor, view: View) -> np.ndarray:
    """The critic's advantage A of each turn, [B]; 0 for a turn without tokens."""
    tokens, length = actor.prompts([replace(request, view=view) for request in sampled.requests])
    read = sampled.with_rollouts(prompt_tokens=tokens, prompt_length=length)
    critic, first = (actor.score(read, ["logp"], of)["logp"] for of in ("teacher", "start"))
    mask = sampled.rollouts.mask
    total = np.where(mask, np.asarray(critic) - np.asarray(first), 0).sum(axis=1)
    return total / np.maximum(mask.sum(axis=1), 1)


def better_turns(rollouts: Rollouts) -> Bool[Array, "B T"]:
    """The tokens of the turns that won their pairs."""
    return rollouts.mask & (rollouts.reward > 0)[:, None]


@arguments_of(Tools, into="tools", tools=None)
def sweet_rl_policy(
    critic: str = "start",
    candidates: AtLeastTwo = 16,
    pairs: Count = 4,
    coefficient: Positive = 0.1,
    imitation: NonNegative = 0.01,
    *,
    tools: Tools,
) -> Recipe:
    """Combines a preference loss on pairs of turns and the likelihood of the better turns.

    Args:
      critic: policy folder of a `sweet_rl` run, with the policy's tokens and shape; "start": the
        initial policy.
      candidates: number of samples of a turn.
      pairs: of candidates, at most half of their number.
      coefficient: scale of the scores (β).
      imitation: weight of the mean -logp of the better turns.
    """
    return Recipe(
        objective=objective_of_terms(
            [best_against_rest(coefficient), imitate(imitation, where=better_turns, reads=())]
        ),
        experience=experience(
            draw=tools.draw(),
            stages=[pair_turns(with_reference(), candidates, pairs)],
        ),
        teacher=critic,
    )


METHOD = Method(
    sweet_rl_policy,
    changes="sampling, selection, surrogate",
    shown=Shown(
        "noted_calculations",
        "experience/turn_gap",
        without={"critic": "start"},
        hyperparameters={"critic": "docs/results/methods/turn_critic"},
        within=1,
    ),
)
