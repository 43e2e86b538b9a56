"""Answers that are written in turns with an environment: tools, searches, games."""

import concurrent.futures
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rlvr_jax.experience.asks import Ask, numbered_answers
from rlvr_jax.experience.batch import Batch, concatenate
from rlvr_jax.experience.draws.asking import SECONDS, THREADS, Driver, environment_of
from rlvr_jax.experience.draws.conversation import Half, PlayedHalf
from rlvr_jax.experience.parts import Draw
from rlvr_jax.tools import Environment, Game
from rlvr_jax.types.hyperparameters import Bound, Count, NonNegative
from rlvr_jax.types.parts import part


@part
def turns(
    environment: Environment | Game | None = None,
    limit: Count = 8,
    reply_tokens: Count = 512,
    costs: Mapping[str, NonNegative] | None = None,
    turn_tokens: Count | None = None,
    seconds: Bound = SECONDS,
    **sampling: Any,
) -> Draw:
    """Writes each answer in turns: the policy until it pauses or ends, then the environment.

    A response is one row: what the policy wrote is on the mask, what it was told is not, stands in
    `origin` as a tool's and is read as given in the next turn. `turn` numbers the policy's turns
    0, 2, … and the replies between them 1, 3, …. The budget of a response is that of all its turns;
    a reply that leaves no room for a further token is left out, and the response ends there.

    Half of the prompts are drawn while the environment answers the others. A token depends on its
    row's key and turn alone, never on who was answered first. What was said is kept beside the run
    (`Setting.told`) and said again when a step is drawn again.

    Where the environment is a `Game`, responses to a prompt that follow one another play with each
    other: each reads what was said to it, and all of them are asked for at the same time.

    Args:
      environment: None: that of the task (`Task.environment`).
      limit: replies of a response at most, at least 1; behind the last one the policy goes on, and
        is not asked again.
      reply_tokens: of a reply at most; what is longer loses its middle.
      costs: what a turn costs for each of what the environment counts in its reply
        (`Reply.info`), such as {"malformed_calls": 0.1}; in place of the environment's own rewards
        of turns, which stand where it is None.
      turn_tokens: that the policy writes in a turn at most; a response that has written so many and
        has not come to the end of an action is over, cut. None: what is left of its budget.
      seconds: of a reply at most. One that takes longer is lost: the response ends without a
        verdict, and `late_replies` counts it. Its thread goes on.
      sampling: settings of the sampler that are prescribed, as in `plain`.
    Writes: turn, origin, process_reward (of a turn at its last token, 0 where there is none).
    Metrics: answers, turns (of the policy, all together), tool_tokens, cut_replies (those that did
      not fit), lost_answers (without a verdict), unknown_words (of replies, that the tokenizer does
      not know; if there are any), and the sums of what the environment counts.
    Raises:
      ValueError: a number that is no count; a cost below 0; seconds that are not positive; when a
        run begins, a task without an environment where none is given; groups that are no multiple
        of a game's players.
    """

    def init(setting):
        _check_players(environment_of("turns", environment, setting.task), [setting.drawn_samples])
        return ()

    def apply(asks, actor, state, turn):
        world = environment_of("turns", environment, turn.setting.task)
        _check_players(world, [ask.samples for ask in asks])
        with concurrent.futures.ThreadPoolExecutor(THREADS) as threads:
            how = Driver(
                actor,
                world,
                turn,
                limit,
                reply_tokens,
                sampling,
                threads,
                costs,
                turn_tokens,
                seconds,
            )
            answers = numbered_answers(asks)
            starts = np.cumsum([0, *(ask.samples for ask in asks)])
            half_of = Half if getattr(world, "players", 1) == 1 else PlayedHalf
            halves = deque()
            for part in (range(0, len(asks), 2), range(1, len(asks), 2)):
                if part:
                    rows = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in part])
                    halves.append(half_of(how, [asks[i] for i in part], answers, rows))
            parts = list(halves)
            while halves:
                half = halves.popleft()
                if half.go_on():
                    halves.append(half)
        whole = _in_order([half.whole() for half in parts], [half.rows for half in parts], asks)
        how.counts["answers"] += len(answers)
        return whole, state, {name: float(value) for name, value in how.counts.items()}

    return Draw(
        apply,
        init,
        sampling=sampling,
        of_policy=True,
        environment=environment or "task",
        writes=frozenset({"turn", "process_reward"}),
    )


def _check_players(world: Environment | Game, samples: Sequence[int]) -> None:
    players = getattr(world, "players", 1)
    if wrong := [number for number in samples if number % players]:
        raise ValueError(
            f"turns: samples_per_prompt must be a multiple of the {players} players of"
            f" {world.label}, got {wrong[0]}"
        )


def _in_order(parts: Sequence[Batch], rows: Sequence[np.ndarray], asks: Sequence[Ask]) -> Batch:
    """One batch of the halves, its groups in the order of the asks."""
    order = np.argsort(np.concatenate(rows), kind="stable")
    group = np.repeat(np.arange(len(asks), dtype=np.int32), [ask.samples for ask in asks])
    whole = concatenate(parts).take(order).with_rollouts(group=group).renumbered()
    return replace(
        whole,
        asks=[asks[number] for number in group],
        sample_seconds=sum(part.sample_seconds for part in parts),
    )
