"""Responses in turns with an environment: tools, searches, games."""

import concurrent.futures
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rlvr_jax.experience.batch import Batch, concatenate
from rlvr_jax.experience.draws.asking import SECONDS, THREADS, Driver, environment_of
from rlvr_jax.experience.draws.conversation import Half, PlayedHalf
from rlvr_jax.experience.parts import Draw
from rlvr_jax.experience.requests import SampleRequest, groups_of, numbered_answers
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
    """Writes each response in turns of the policy, until it pauses or ends, and the environment.

    A response is one row. Tokens of the policy are on the mask. Replies are not on the mask: their
    `origin` is a tool, and the next turn reads them as given tokens. `turn` numbers the policy's
    turns 0, 2, … and the replies between them 1, 3, …. All turns share the budget of the response.
    If no token fits after a reply, the reply is left out and the response ends there.

    Half of the prompts are sampled while the environment replies to the others. A token depends
    only on its row's key and turn, not on the order of replies. The run records replies
    (`RunInfo.reply_log`), and reads them from there when a step is repeated.

    If the environment is a `Game`, consecutive responses to a prompt play with each other. Each one
    reads the replies to it, and their turns are requested at the same time.

    Args:
      environment: None: that of the task (`Task.environment`).
      limit: largest number of replies; after the last one the policy writes one more turn.
      reply_tokens: largest number of tokens of a reply; a longer reply loses its middle.
      costs: cost of a turn for each count in its reply (`Reply.info`), such as
        {"malformed_calls": 0.1}. Costs replace the environment's rewards of turns. None: no costs.
      turn_tokens: largest number of tokens of a policy's turn. A response with a longer turn is
        truncated, unless the turn is at the end of an action. None: the rest of its budget.
      seconds: time limit of a reply (seconds). A later one is lost: the response is ungraded, and
        `late_replies` counts it. Its thread continues.
      sampling: prescribed settings of the sampler, as in `plain`.
    Writes: turn, origin, process_reward (of a turn at its last token, else 0).
    Metrics: answers (responses), turns (turns of the policy), tool_tokens (tokens of replies),
      cut_replies (replies that do not fit), lost_answers (ungraded responses), unknown_words (words
      of replies that the tokenizer does not know, if there are any), late_replies (replies after
      their limit, if there are any); those of the environment.
    Raises:
      ValueError: when a run begins: there is no environment, or the group size is not a multiple of
        a game's number of players.
    """

    def init(setting):
        _check_players(
            environment_of("turns", environment, setting.task), [setting.initial_samples]
        )
        return ()

    def apply(requests, actor, state, turn):
        world = environment_of("turns", environment, turn.setting.task)
        _check_players(world, [request.samples for request in requests])
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
            answers = numbered_answers(requests)
            starts = np.cumsum([0, *(request.samples for request in requests)])
            half_of = Half if getattr(world, "players", 1) == 1 else PlayedHalf
            halves = deque()
            for part in (range(0, len(requests), 2), range(1, len(requests), 2)):
                if part:
                    rows = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in part])
                    halves.append(half_of(how, [requests[i] for i in part], answers, rows))
            parts = list(halves)
            while halves:
                half = halves.popleft()
                if half.go_on():
                    halves.append(half)
        whole = _in_order([half.whole() for half in parts], [half.rows for half in parts], requests)
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
    if incorrect := [number for number in samples if number % players]:
        raise ValueError(
            f"turns: samples_per_prompt must be a multiple of the {players} players of"
            f" {world.label}, got {incorrect[0]}"
        )


def _in_order(
    parts: Sequence[Batch], rows: Sequence[np.ndarray], requests: Sequence[SampleRequest]
) -> Batch:
    """One batch of the halves, its groups in the order of the requests."""
    order = np.argsort(np.concatenate(rows), kind="stable")
    group = groups_of(requests)
    whole = concatenate(parts).take(order).with_rollouts(group=group).renumbered()
    return replace(
        whole,
        requests=[requests[number] for number in group],
        sample_seconds=sum(part.sample_seconds for part in parts),
    )
