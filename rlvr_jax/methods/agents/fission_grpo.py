"""Fission-GRPO: a failed answer is split off as a new problem: it failed for this reason, go on.

"Robust Tool Use via Fission-GRPO: Learning to Recover from Execution Errors",
https://github.com/zxzadm/Fission-GRPO

    context = prompt, failed answer, feedback; kept in a buffer, newest first
    G' recoveries of each context, by the current policy; the context is never trained
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1, within a group of answers or of recoveries
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / Σ n_i

A reconstruction: sizes, trigger and clip are ours. With `tools` wrong answers that were told an
error are gone on from, behind the tool's own words, where the paper has an error simulator write
them; without tools all wrong ones are, behind one sentence. `recover(feedback=…)` takes any.
Recoveries are on-policy, however old the failed answer is. Groups of recoveries whose outcomes are
equal are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from rlvr_jax.experience import experience
from rlvr_jax.experience.asks import Ask
from rlvr_jax.experience.batch import Batch, concatenate
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.choices.groups import uniform
from rlvr_jax.experience.store import repeatable
from rlvr_jax.methods._tools import named_turns
from rlvr_jax.objectives import group_normalized
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.surrogates.by_origin import TOOL
from rlvr_jax.tasks.base import Prompt, Response
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Count, Epsilon
from rlvr_jax.types.parts import part

_ERROR = re.compile(r"Error: [^\n<]*")


Feedback = Callable[[Prompt, Response], str | None]
"""(prompt, response) -> what is said of it; None: nothing, it is no failure to recover from."""


def told_wrong(prompt: Prompt, response: Response) -> str | None:
    """The same sentence for every answer."""
    del prompt, response
    return " That is wrong. "


def last_error(told: str) -> str | None:
    """What is said of an answer to which a `toolbox` has told an error; None: it told none.

    Args:
      told: all that tools have told it.
    """
    errors = _ERROR.findall(told)
    return f" The call failed. {errors[-1].strip()} Try again. " if errors else None


Contexts = dict[str, np.ndarray]


def empty_contexts(capacity: int, tokens: int) -> Contexts:
    """Room for failed contexts: tokens [C, T], length, the prompt's number (-1: no context), and
    order, the later the newer."""
    none = np.full(capacity, -1, np.int32)
    return {
        "tokens": np.zeros((capacity, tokens), np.int32),
        "length": np.zeros(capacity, np.int32),
        "number": none,
        "order": none,
    }


def push_context(contexts: Contexts, number: int, tokens: list[int], per_prompt: int) -> Contexts:
    """With another context; where there is no room the oldest one goes, of the same prompt first if
    that has as many as it may.

    Args:
      number: of the prompt.
      per_prompt: contexts of a prompt at most.
    """
    held, order = contexts["number"], contexts["order"]
    own = np.flatnonzero(held == number)
    free = np.flatnonzero(held < 0)
    if len(own) >= per_prompt:
        place = own[order[own].argmin()]
    elif len(free):
        place = free[0]
    else:
        place = order.argmin()
    found = {name: array.copy() for name, array in contexts.items()}
    found["tokens"][place] = 0
    found["tokens"][place, : len(tokens)] = tokens
    found["length"][place] = len(tokens)
    found["number"][place] = number
    found["order"][place] = order.max(initial=-1) + 1
    return found


def newest_contexts(contexts: Contexts, count: int) -> tuple[np.ndarray, Contexts]:
    """The places of the newest contexts, newest first, and the others without them.

    Args:
      count: at most.
    """
    order = contexts["order"]
    held = np.flatnonzero(contexts["number"] >= 0)
    places = held[np.argsort(-order[held])][:count]
    left = {name: array.copy() for name, array in contexts.items()}
    left["number"][places] = -1
    left["order"][places] = -1
    return places, left


@part
def recover(
    feedback: Feedback | None = told_wrong,
    samples: Count | None = None,
    capacity: Count | None = None,
    per_prompt: Count = 2,
    contexts: Count | None = None,
) -> Stage:
    """Draws groups that go on from failed answers and what was said of them.

    A wrong answer and its feedback are a context, kept in a buffer; when that holds as many as a
    step wants, the newest ones are asked: their groups stand behind the others, begin with the
    failed answer and the feedback (given, never trained), and are drawn by the current policy in
    the very context that they are trained in. A group of equal outcomes is dropped. Groups of
    recoveries have baselines of their own; `parent` is not known, for the failed row may be of an
    earlier step.

    Where the draw has an environment, a recovery begins a new episode of it behind the context:
    names that an interpreter knew are gone. A context counts in the budget of the response; one
    that leaves less than a quarter of it is not kept. Only rows of train prompts as they are can
    fail.

    Args:
      feedback: what is said of a failed answer, such as a simulator's words; None: the last error
        that tools have told it (`last_error`).
      samples: recoveries of a context (G'); None: as many as a group has.
      capacity: contexts that are kept, the newest ones; None: as many as a step has prompts.
      per_prompt: contexts of a prompt that are kept at most.
      contexts: groups of recoveries of a step, which the buffer waits for; None: a quarter of its
        prompts.
    Reads: outcome, texts. Writes: origin. Draws: `samples` for each context. Metrics:
      failed_rows, recovery_groups, recovered_share (right ones among the recoveries).
    Raises:
      ValueError: a count below 1; when a run begins, more samples than a group has.
    """

    def init(setting):
        if samples is not None and samples > setting.samples:
            raise ValueError(
                f"recover: samples must be at most the {setting.samples} of a group, got {samples}"
            )
        return empty_contexts(capacity or setting.prompts, setting.response_tokens)

    def apply(batch, actor, state, turn):
        setting = turn.setting
        known, failed = _with_failures(batch, actor, state, setting, feedback, per_prompt)
        wanted = contexts or max(setting.prompts // 4, 1)
        wanted = min(wanted, setting.prompts, len(known["number"]))
        told = {"failed_rows": float(failed), "recovery_groups": 0.0, "recovered_share": 0.0}
        if np.sum(known["number"] >= 0) < wanted:
            return batch, known, told
        places, left = newest_contexts(known, wanted)
        number = samples or setting.samples
        asks = [
            Ask(
                setting.task.train[known["number"][place]],
                int(known["number"][place]),
                number,
                given=known["tokens"][place, : known["length"][place]].tolist(),
                # Two contexts of a prompt are not answered alike, nor as the prompt is.
                first_sample=(1 + order) * number,
            )
            for order, place in enumerate(places)
        ]
        drawn = actor.grade(actor.draw(asks, turn.key))
        told["recovery_groups"] = float(len(asks))
        told["recovered_share"] = float(drawn.rollouts.outcome.mean())
        equal = uniform(drawn.outcomes())
        drawn = drawn.without(equal[drawn.rollouts.group])
        return concatenate([batch, drawn]), left, told

    return Stage(apply, init, writes={"origin"}, most=2.0, by_row=True)


def _with_failures(
    batch: Batch, actor, state: Contexts, setting, feedback: Feedback | None, per_prompt: int
) -> tuple[Contexts, int]:
    """The buffer with the failed rows of a batch, and how many there are."""
    rollouts = batch.rollouts
    room = setting.response_tokens - max(setting.response_tokens // 4, 1)
    responses, failed = batch.responses, 0
    wrong = repeatable(batch, setting) & batch.decided & (rollouts.outcome <= 0.5)
    for row in np.flatnonzero(wrong).tolist():
        ask = batch.asks[row]
        if feedback is None:
            said = last_error(_told(batch, row))
        else:
            said = feedback(ask.prompt, responses[row])
        if said is None:
            continue
        failed += 1
        tokens = rollouts.tokens[row, : rollouts.length[row]].tolist()
        if tokens and tokens[-1] == actor.stop_token():
            tokens.pop()
        tokens += list(actor.encode(said))
        if len(tokens) <= room:
            state = push_context(state, ask.number, tokens, per_prompt)
    return state, failed


def _told(batch: Batch, row: int) -> str:
    """What tools have told a row."""
    rollouts = batch.rollouts
    if rollouts.origin is None:
        return ""
    tokens = rollouts.tokens[row][rollouts.origin[row] == TOOL].tolist()
    return batch.tokenizer.batch_decode([tokens], clean_up_tokenization_spaces=False)[0]


def fission_grpo(
    per_prompt: int = 2,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
    tools: Sequence[str] | None = (),
    style: str = "json",
    max_turns: int = 8,
    reply_tokens: int = 512,
    describe: bool = True,
) -> Recipe:
    """GRPO on answers, and on recoveries from failed ones.

    Args:
      per_prompt: failed answers of a prompt that are kept at most.
      tools: that may be called, by name (`named_toolbox`); none: a response is one text; None: the
        task has an environment.
      style: how calls are written: "json", "tags" or "fenced".
      max_turns: replies of a response at most.
      reply_tokens: of a reply at most.
      describe: a system message says what tools there are; it needs a chat template.
    """
    draw = named_turns(tools, style, max_turns, reply_tokens, describe)
    feedback = None if draw else told_wrong
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low, clip_high=clip_high, advantage=group_normalized(epsilon)
        ),
        experience=experience(draw=draw, stages=[recover(feedback, per_prompt=per_prompt)]),
    )


METHOD = Method(
    fission_grpo,
    "Robust Tool Use via Fission-GRPO: Learning to Recover from Execution Errors",
    "https://github.com/zxzadm/Fission-GRPO",
    changes="sampling",
    evidence="reconstruction",
    left_out="the error simulator, and the reward of calls (`call_reward`, `trained_reward`)",
    reports="Qwen3-8B on BFCL v4 multi-turn: 42.75 to 46.75; recovery from errors 5.7 points up",
    traps=(
        "without tools the feedback is one fixed sentence that knows nothing of the error; a "
        "failed answer counts in the budget of its recoveries, so long ones leave no room and are "
        "not kept"
    ),
)
