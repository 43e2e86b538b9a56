"""Worked solutions with the replies of an environment, as rows to imitate."""

import concurrent.futures
from dataclasses import replace

import numpy as np

from rlvr_jax.experience.draws.asking import THREADS, Driver, Episode, environment_of
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.donors.imitate_correct import to_imitate
from rlvr_jax.objectives import TOOL
from rlvr_jax.tools import Environment
from rlvr_jax.types.hyperparameters import Count
from rlvr_jax.types.parts import part


@part(reads=frozenset({"solution"}), writes=frozenset({"supervised", "origin"}), by_row=True)
def imitate_turns(environment: Environment | None = None, reply_tokens: Count = 512) -> Stage:
    """Imitates worked solutions whose steps are turns with an environment.

    The environment replies to each step except the last, as in a response sampled by `turns`. A
    step may have no reply. Replies have a tool's `origin`, and an objective leaves them out by
    `imitate(…, where=own_words)`. A solution is left out if it exceeds the budget of a response
    with its replies. Sampled responses are only graded and counted: one per prompt is enough.

    Args:
      environment: None: that of the task.
      reply_tokens: largest number of tokens of a reply.
    Metrics: imitated_solutions (rows), solutions_too_long (prompts); those of the environment.
    """

    def apply(batch, actor, state, turn):
        every = np.ones(len(batch.groups), bool)
        requests = [replace(request, samples=1) for request in batch.requests_of(every)]
        world = environment_of("imitate_turns", environment, turn.setting.task)
        with concurrent.futures.ThreadPoolExecutor(THREADS) as threads:
            how = Driver(actor, world, turn, 0, reply_tokens, {}, threads)
            tokens, replied, counts = _played(how, requests, batch.tokenizer)
        fit = np.array([len(ids) <= turn.setting.response_tokens for ids in tokens], bool)
        counts |= {
            "imitated_solutions": float(fit.sum()),
            "solutions_too_long": float(np.sum(~fit)),
        }
        if not fit.any():
            return to_imitate(batch, False), state, counts
        rows = np.flatnonzero(fit)
        written = actor.written([requests[row] for row in rows], [tokens[row] for row in rows])
        origin = np.zeros(written.rollouts.tokens.shape, np.int32)
        for place, row in enumerate(rows):
            origin[place, : len(replied[row])] = np.where(replied[row], TOOL, 0)
        written = actor.grade(written.with_rollouts(origin=origin))
        written = replace(written, tokenizer=batch.tokenizer, further=batch.further)
        return to_imitate(written, True), state, counts

    return apply


def _played(how: Driver, requests, tokenizer):
    """Tokens of the solutions with replies, whether they are a reply's, and sums of counts."""
    tokens = [[] for _ in requests]
    replied: list[list[bool]] = [[] for _ in requests]
    episodes = [Episode(request.prompt) for request in requests]
    counts: dict[str, float] = {}
    for step in range(max(len(request.prompt.solution) for request in requests)):
        keys, waiting = {}, {}
        for row, request in enumerate(requests):
            if step >= len(request.prompt.solution):
                continue
            text = request.prompt.solution[step]
            ids = how.actor.encode(text)
            last = step == len(request.prompt.solution) - 1
            ids = [*ids, how.actor.stop_token()] if last else ids
            tokens[row] += ids
            replied[row] += [False] * len(ids)
            if last:
                continue
            keys[row] = f"solution/{request.round}/{request.number}/{row}/{step}"
            if (future := how.request(keys[row], episodes[row], text, how.owns(row))) is not None:
                waiting[row] = future
        for row, reply in how.replies(keys, waiting).items():
            for name, value in reply.info.items():
                counts[name] = counts.get(name, 0.0) + value
            ids = how.tokens_of(reply, tokenizer, True, tokens[row][-1])
            tokens[row] += ids
            replied[row] += [True] * len(ids)
    return tokens, replied, counts
