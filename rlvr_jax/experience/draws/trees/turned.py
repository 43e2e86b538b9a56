"""Responses that fork after a reply of an environment to a turn of more entropy."""

import concurrent.futures
from dataclasses import replace

from rlvr_jax.experience.draws.asking import THREADS, Driver, Episode, environment_of
from rlvr_jax.experience.draws.trees.branching import Branches
from rlvr_jax.experience.draws.trees.pieces import Pieces
from rlvr_jax.experience.draws.trees.turn_pieces import (
    TurnRow,
    answer_turns,
    draw_turn,
)
from rlvr_jax.experience.draws.turns import turns
from rlvr_jax.experience.parts import Draw
from rlvr_jax.tools import Environment
from rlvr_jax.types.hyperparameters import Count, NonNegative, Unit
from rlvr_jax.types.parts import part


@part
def branch_turns(
    environment: Environment | None = None,
    limit: Count = 8,
    reply_tokens: Count = 512,
    weight: NonNegative = 0.2,
    base: Unit = 0.5,
    penalty: NonNegative = 0.0,
    share: Unit = 0.5,
    sensitivity: NonNegative | None = None,
    top: Count = 10,
    window: Count = 20,
) -> Draw:
    """Writes responses in turns with an environment, and forks one after a reply.

    Rows are written as by `turns`, and forked as by `branch_rounds`, with turns of the policy as
    rounds: after each of a row's turns but the first that has a reply. A fork copies the context,
    the reply, and the environment's state of the episode; it has different random numbers and
    separate replies. Shared turns are trained in every row that has them, replies in none. All
    prompts are sampled together, so sampling waits for replies.

    Evaluations sample by `turns`: their responses are samples of the policy, without forks.

    Args:
      environment, limit, reply_tokens: as for `turns`.
      weight, base, penalty, share, sensitivity, top, window: as for `branch_rounds`.
    Writes: turn, origin, process_reward, as `turns`.
    Metrics: those of `branch_rounds` with `turns` (sampled ones) in place of rounds; answers,
      tool_tokens (each reply once, however many rows continue after it), cut_replies,
      lost_answers, and the sums of the environment's counts, as `turns`.
    Source: ARPO and AEPO (the links are in the methods' cards).
    """
    whole = turns(environment, limit, reply_tokens)
    branches = Branches(weight, base, penalty, share, sensitivity, top, window)

    def init(setting):
        branches.check_vocabulary("branch_turns", setting)
        environment_of("branch_turns", environment, setting.task, alone=True)
        return ()

    def apply(asks, actor, state, turn):
        vocabulary = turn.setting.vocabulary
        with concurrent.futures.ThreadPoolExecutor(THREADS) as threads:
            world = environment_of("branch_turns", environment, turn.setting.task, alone=True)
            how = Driver(actor, world, turn, limit, reply_tokens, {"record_top": top}, threads)
            pieces = Pieces(actor, turn.key, how.sampling)

            def make(group, sample):
                return TurnRow(group, sample, episode=Episode(asks[group].prompt))

            def write(rows):
                drawn = draw_turn(pieces, asks, rows)
                entropies = branches.entropies(pieces, drawn, vocabulary)
                answer_turns(how, pieces, asks, rows)
                return entropies

            rows, forks = branches.grow(asks, pieces, turn.random(), vocabulary, make, write)
        batch = pieces.responses([row.tip for row in rows], asks)
        rewards = batch.rollouts.process_reward.sum(axis=1)
        batch = replace(batch, brought=how.grades([row.episode for row in rows], rewards))
        lost = sum(row.episode.lost for row in rows)
        how.counts.update(forks, answers=len(rows), turns=len(pieces), lost_answers=lost)
        return batch, state, {name: float(value) for name, value in how.counts.items()}

    return replace(whole, apply=apply, init=init, evaluation=whole)
