"""Responses that branch where an environment answers, after turns of more entropy."""

import concurrent.futures
from collections import Counter
from dataclasses import replace

from rlvr_jax.experience.draws.asking import THREADS, Driver, Episode
from rlvr_jax.experience.draws.trees.branching import Branches
from rlvr_jax.experience.draws.trees.pieces import Pieces
from rlvr_jax.experience.draws.trees.turn_pieces import (
    TurnRow,
    answer_turns,
    draw_turn,
    lone_environment,
)
from rlvr_jax.experience.draws.turns import turns
from rlvr_jax.experience.parts import Draw
from rlvr_jax.tools import Environment
from rlvr_jax.types.parts import part


@part
def branch_turns(
    environment: Environment | None = None,
    limit: int = 8,
    reply_tokens: int = 512,
    weight: float = 0.2,
    base: float = 0.5,
    penalty: float = 0.0,
    share: float = 0.5,
    sensitivity: float | None = None,
    top: int = 10,
    window: int = 20,
) -> Draw:
    """Writes responses in turns with an environment, and forks one behind a reply where the turn
    before it was less sure than the first one.

    Rows are written and told as by `turns`, and forked as by `branch_rounds`, a round being a turn
    of the policy: after each of a row's turns but the first that is answered. A fork copies the
    context, the reply that both go on behind, and what the environment knows of the episode; it
    has random numbers of its own and is answered for itself from then on. Shared turns are trained
    in every row that has them, replies in none. All prompts go on together, so that drawing waits
    for replies.

    Evaluations are drawn by `turns`: their responses are samples of the policy, without branches.

    Args:
      environment, limit, reply_tokens: as for `turns`.
      weight, base, penalty, share, sensitivity, top, window: as for `branch_rounds`.
    Writes: turn, origin, process_reward, as `turns`.
    Metrics: those of `branch_rounds` with `turns` (that were drawn) in the place of rounds;
      answers, tool_tokens (each reply once, however many rows go on behind it), cut_replies,
      lost_answers, and the sums of what the environment counts, as `turns`.
    Source: ARPO and AEPO draw so (the links stand in the methods' cards).
    """
    whole = turns(environment, limit, reply_tokens)
    branches = Branches(weight, base, penalty, share, sensitivity, top, window)
    branches.check("branch_turns")

    def init(setting):
        branches.check_vocabulary("branch_turns", setting)
        lone_environment("branch_turns", environment, setting.task)
        return ()

    def apply(asks, actor, state, turn):
        vocabulary, counts = turn.setting.vocabulary, Counter[str]()
        with concurrent.futures.ThreadPoolExecutor(THREADS) as threads:
            world = lone_environment("branch_turns", environment, turn.setting.task)
            how = Driver(actor, world, turn, limit, reply_tokens, {"record_top": top}, threads)
            pieces = Pieces(actor, turn.key, how.sampling)

            def make(group, sample):
                return TurnRow(group, sample, episode=Episode(asks[group].prompt))

            def write(rows):
                drawn = draw_turn(pieces, asks, rows)
                entropies = branches.entropies(pieces, drawn, vocabulary)
                answer_turns(how, pieces, asks, rows, counts)
                return entropies

            rows = branches.grow(asks, pieces, turn.random(), vocabulary, make, write)
        batch = pieces.responses([row.tip for row in rows], asks)
        rewards = batch.rollouts.process_reward.sum(axis=1)
        batch = replace(batch, brought=how.grades([row.episode for row in rows], rewards))
        forked = sum(row.forked for row in rows)
        counts.update(answers=len(rows), turns=len(pieces))
        counts.update(forked_rows=forked, begun_rows=len(rows) - forked)
        counts["lost_answers"] += sum(row.episode.lost for row in rows)
        return batch, state, {name: float(value) for name, value in counts.items()}

    return replace(whole, apply=apply, init=init, evaluation=whole)
