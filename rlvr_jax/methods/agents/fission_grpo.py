"""Fission-GRPO: a failed response and the reason of its failure become a new prompt.

"Robust Tool Use via Fission-GRPO: Learning to Recover from Execution Errors",
https://github.com/zxzadm/Fission-GRPO

    context = prompt, failed response, feedback; stored in a buffer, newest first
    G' recoveries of each context, by the current policy; the context is never trained
    R    = ((2 - u) R_form + (1 + u) R_correct) / 3, u the completed fraction of the run
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1, within a group of responses or of recoveries
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / Σ n_i

With tools, an incorrect response fails if a call was an error; its context ends after the reply to
the last such call. Without tools, every incorrect response is a context. `feedback` is the source
of the text after the failure:

  - "reply", the default with tools: the environment's reply, which is in the context
  - "policy", the default without tools: a sentence of the policy about the failure, which must not
    contain the answer
  - "judge": the reply of the run's judge (`--judge`) to the response

R_form is 1 if the response ended and all its calls could be read. R_correct is the outcome. If the
prompt has reference calls (`Prompt.meta["calls"]`, pairs of name and arguments), it is the mean of
the outcome and of `call_reward`. A group of recoveries with equal rewards is dropped.

A reconstruction: sizes, trigger, clip, the mean with the outcome and the linear change of the
weights are ours. In the paper, a fine-tuned model of 32B parameters writes the feedback.

Left out: the training of the model that writes the feedback; the term for the length, whose form
was not found.
Reports: Qwen3-8B on BFCL v4 multi-turn: accuracy rises from 42.75 to 46.75 %. Recovery from errors
rises by 5.7 points.
Traps: A small policy explains its failures badly. A failed response counts in the budget of its
recoveries. If it leaves less than a quarter of the budget, it is not stored.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from rlvr_jax.experience import (
    Batch,
    SampleRequest,
    Stage,
    call_reward,
    concatenate,
    experience,
    trained_reward,
)
from rlvr_jax.experience.parts import Actor, StepContext
from rlvr_jax.experience.prompts import row_texts
from rlvr_jax.experience.stages.problems.written import with_request
from rlvr_jax.experience.store import repeatable
from rlvr_jax.methods._tools import Tools
from rlvr_jax.objectives import TOOL, clipped_objective
from rlvr_jax.tasks.derived.hints import gives_away
from rlvr_jax.tools import Environment
from rlvr_jax.tools.calls import calls_in
from rlvr_jax.types import Method, Recipe, Shown, arguments_of, part, replace
from rlvr_jax.types.hyperparameters import Count, Unit

REQUEST = (
    "This response is wrong. Say in one sentence why it failed, without the answer and without a"
    " corrected call."
)
ERRORS = {"malformed_calls": 1.0, "tool_errors": 1.0, "tool_timeouts": 1.0}
"""Counts of a reply that are execution errors, as costs of a turn."""

Contexts = dict[str, np.ndarray]


@part
def recover(
    feedback: Literal["reply", "policy", "judge"] = "policy",
    capacity: Count | None = None,
    per_prompt: Count = 2,
    contexts: Count | None = None,
    call_fraction: Unit = 0.5,
    environment: Environment | Literal["task"] | None = None,
) -> Stage:
    """Samples groups that continue failed responses after feedback, and rewards all rows.

    A failed response and its feedback are a context, which is stored in a buffer. When the buffer
    holds enough contexts, the newest ones are prompts of further groups. These groups begin with
    the context, which is never trained. The current policy samples them in the context of training.
    Groups of recoveries have their own baselines. `parent` is not set, as the failed row may be of
    an earlier step.

    Where the draw has an environment, a turn with a negative reward is an error. A recovery begins
    a new episode after the context: variables of an interpreter are lost. Only responses to
    unmodified train prompts are stored. A context that leaves less than a quarter of the budget is
    not stored.

    Args:
      feedback: source of the text after a failed response, see the module.
      capacity: maximum number of contexts that are stored, the newest ones; None: the prompts of a
        step.
      per_prompt: maximum number of stored contexts of a prompt.
      contexts: groups of recoveries of a step, for which the buffer waits; None: a quarter of its
        prompts.
      call_fraction: weight of the names of calls against their arguments in the reward (α).
      environment: environment of the draw, whose calls are rewarded; None: no calls.
    Reads: outcome, texts. Writes: origin. Draws: a group (G' rows) for each context.
    Metrics: failed_rows (rows), stored_contexts (new ones), refused_feedback (unusable texts),
      recovery_groups (groups), trained_recoveries (rows), recovered_fraction (of recoveries),
      form_reward, correct_reward (means).
    """

    def init(setting):
        return empty_contexts(capacity or setting.prompts, setting.response_tokens)

    def apply(batch, actor, state, turn):
        setting = turn.setting
        failed = failures(batch, actor, setting)
        newest = _newest(failed, batch, per_prompt, len(state["number"]))
        known = [tokens for _, tokens in newest]
        said = _feedback(batch, [row for row, _ in newest], feedback, actor, turn)
        whole = [
            tokens + list(actor.encode(f" {text.strip()} ") if text else ())
            for tokens, text in zip(known, said, strict=True)
            if text is not None
        ]
        rows = [row for (row, _), text in zip(newest, said, strict=True) if text is not None]
        room = setting.response_tokens - max(setting.response_tokens // 4, 1)
        fitting = [(r, ids) for r, ids in zip(rows, whole, strict=True) if len(ids) <= room]
        for row, tokens in fitting:
            state = push_context(state, batch.requests[row].number, tokens, per_prompt)
        metrics = {
            "failed_rows": float(len(failed)),
            "stored_contexts": float(len(fitting)),
            "refused_feedback": float(len(newest) - len(rows)),
            "recovery_groups": 0.0,
            "trained_recoveries": 0.0,
            "recovered_fraction": 0.0,
        }
        sampled = None
        wanted = min(contexts or max(setting.prompts // 4, 1), setting.prompts)
        wanted = min(wanted, len(state["number"]))
        if np.sum(state["number"] >= 0) >= wanted:
            requests, state = _recoveries(state, wanted, setting)
            sampled = actor.grade(actor.draw(requests, turn.key))
            metrics["recovery_groups"] = float(len(requests))
            metrics["recovered_fraction"] = float(sampled.rollouts.outcome.mean())
            sampled, _ = rewarded(sampled, environment, call_fraction, turn)
            rewards = np.where(sampled.rollouts.valid, sampled.rollouts.reward, np.nan)
            spread = np.array([np.ptp(rewards[own]) for own in sampled.groups])
            sampled = sampled.without(~(spread > 0)[sampled.rollouts.group])
            metrics["trained_recoveries"] = float(sampled.rollouts.mask.any(axis=1).sum())
        batch, rewards = rewarded(batch, environment, call_fraction, turn)
        metrics |= rewards
        return (batch if sampled is None else concatenate([batch, sampled])), state, metrics

    views = (replace(with_request(REQUEST, ""), responses=1),) if feedback == "policy" else ()
    return Stage(apply, init, writes={"origin"}, most=2.0, by_row=True, views=views)


def failures(batch: Batch, actor: Actor, setting: Any) -> list[tuple[int, list[int]]]:
    """The failed rows with the tokens of their contexts, without feedback of a model."""
    rollouts, found = batch.rollouts, []
    incorrect = repeatable(batch, setting) & batch.decided & (rollouts.outcome <= 0.5)
    for row in np.flatnonzero(incorrect).tolist():
        end = int(rollouts.length[row])
        if "turn" in rollouts.records:
            errors = np.flatnonzero(rollouts.records["process_reward"][row, :end] < 0)
            if not len(errors):
                continue
            begin, origin = errors[-1] + 1, rollouts.records["origin"][row, :end]
            reply = np.cumprod(origin[begin:] == TOOL).sum()
            if not reply:
                continue
            end = int(begin + reply)
        tokens = rollouts.tokens[row, :end].tolist()
        if tokens and tokens[-1] == actor.stop_token():
            tokens.pop()
        found.append((row, tokens))
    return found


def _newest(
    failed: Sequence[tuple[int, list[int]]], batch: Batch, per_prompt: int, capacity: int
) -> list[tuple[int, list[int]]]:
    """The failures of a step that its buffer can hold, in order."""
    held: dict[int, int] = {}
    chosen = []
    for row, tokens in reversed(failed):
        number = batch.requests[row].number
        held[number] = held.get(number, 0) + 1
        if held[number] <= per_prompt and len(chosen) < capacity:
            chosen.append((row, tokens))
    return chosen[::-1]


def _feedback(
    batch: Batch, rows: Sequence[int], source: str, actor: Actor, turn: StepContext
) -> list[str | None]:
    """The text after each failed row: "" if the context has it, None if there is none."""
    if source == "reply" or not len(rows):
        return [""] * len(rows)
    if source == "judge":
        return [batch.grades[row].reply or None for row in rows]
    texts = row_texts(
        batch.tokenizer, [batch.rollouts.tokens[row, : batch.rollouts.length[row]] for row in rows]
    )
    chats = []
    for row, text in zip(rows, texts, strict=True):
        prompt = batch.requests[row].prompt
        content = "\n\n".join((prompt.text, text, REQUEST))
        chats.append([*prompt.messages, {"role": "user", "content": content}])
    most = max(1, turn.setting.response_tokens // 4)
    written = actor.write(chats, turn.key, list(range(len(rows))), {"tokens": most})
    return [
        one.text.strip() or None
        if one is not None and not gives_away(one.text, batch.requests[row].prompt)
        else None
        for one, row in zip(written, rows, strict=True)
    ]


def _recoveries(state: Contexts, wanted: int, setting: Any) -> tuple[list[SampleRequest], Contexts]:
    """Requests for groups that continue the newest contexts, and the buffer without these."""
    places, left = newest_contexts(state, wanted)
    number = setting.samples
    requests = [
        SampleRequest(
            setting.task.train[state["number"][place]],
            int(state["number"][place]),
            number,
            given=state["tokens"][place, : state["length"][place]].tolist(),
            # Two contexts of a prompt have different random numbers, and so has the prompt.
            first_sample=(1 + order) * number,
        )
        for order, place in enumerate(places)
    ]
    return requests, left


def rewarded(
    batch: Batch, environment: Any, fraction: float, turn: StepContext
) -> tuple[Batch, dict[str, float]]:
    """The rows with R, and the means of its two terms.

    Args:
      batch: graded rows.
      environment: environment whose calls are rewarded; "task": that of the task; None: no calls.
      fraction: weight of the names of the calls against their arguments, in [0, 1] (α).
      turn: the step, which determines the weights of the two terms.
    """
    world = turn.setting.task.environment if environment == "task" else environment
    style, rollouts = getattr(world, "style", None), batch.rollouts
    own = rollouts.mask if "origin" not in rollouts.records else rollouts.records["origin"] == 0
    own = own & (np.arange(own.shape[1])[None] < rollouts.length[:, None])
    texts = row_texts(
        batch.tokenizer, [ids[on] for ids, on in zip(rollouts.tokens, own, strict=True)]
    )
    form = (~rollouts.truncated).astype(float)
    correct = rollouts.outcome.astype(float)
    for row, text in enumerate(texts if style else ()):
        calls = calls_in(text, style)
        form[row] *= not any(call.wrong for call in calls)
        reference = batch.requests[row].prompt.meta.get("calls")
        if reference is not None:
            made = [(call.tool, _arguments(call.arguments, world, call.tool)) for call in calls]
            correct[row] = (correct[row] + call_reward(made, reference, fraction)) / 2
    progress = turn.step / max(turn.setting.steps - 1, 1)
    reward = [trained_reward(*two, 0.0, progress) for two in zip(form, correct, strict=True)]
    means = {"form_reward": float(form.mean()), "correct_reward": float(correct.mean())}
    return batch.rewarded(np.array(reward)), means


def _arguments(arguments: Any, world: Any, tool: str) -> dict[str, Any]:
    """Arguments of a call by name; a text is the first parameter of its tool."""
    if not isinstance(arguments, str):
        return dict(arguments)
    return {next(iter(world.by_name[tool].parameters)): arguments} if tool in world.by_name else {}


def empty_contexts(capacity: int, tokens: int) -> Contexts:
    """An empty buffer; a place without a context has the number and the order -1."""
    none = np.full(capacity, -1, np.int32)
    return {
        "tokens": np.zeros((capacity, tokens), np.int32),
        "length": np.zeros(capacity, np.int32),
        "number": none,
        "order": none,
    }


def push_context(contexts: Contexts, number: int, tokens: list[int], per_prompt: int) -> Contexts:
    """The buffer with another context.

    A full buffer loses its oldest context; a prompt with `per_prompt` contexts loses its oldest
    one.

    Args:
      contexts: the buffer: tokens int [C, T], length, number and order int [C]. A free place has
        number -1; the oldest context has the smallest order.
      number: of the prompt.
      tokens: context, at most T tokens.
      per_prompt: maximum number of contexts of one prompt.
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
    """The places of the newest contexts, newest first, and the buffer without them.

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


@arguments_of(Tools, into="tools")
@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon")
def fission_grpo(
    feedback: Literal["reply", "policy", "judge"] | None = None,
    per_prompt: Count = 2,
    contexts: Count | None = None,
    call_fraction: Unit = 0.5,
    *,
    tools: Tools,
    **clip: Any,
) -> Recipe:
    """Applies GRPO to responses and to recoveries from failed responses.

    Args:
      feedback: source of the text after a failed response; None: "reply" with tools, else "policy".
      per_prompt: maximum number of stored failed responses of a prompt.
      contexts: groups of recoveries of a step, for which the buffer waits; None: a quarter of its
        prompts.
      call_fraction: weight of the names of calls against their arguments in the reward (α).
    Raises:
      ValueError: the feedback is that of replies, and there are no tools.
    """
    draw = tools.draw(costs=ERRORS) if tools else None
    if feedback == "reply" and draw is None:
        raise ValueError(
            "fission_grpo: feedback must be 'policy' or 'judge' without tools, which reply, got"
            " 'reply'; tools=python has replies"
        )
    stage = recover(
        feedback or ("reply" if draw else "policy"),
        per_prompt=per_prompt,
        contexts=contexts,
        call_fraction=call_fraction,
        environment=draw.environment if draw else None,
    )
    return Recipe(
        objective=clipped_objective(**clip), experience=experience(draw=draw, stages=[stage])
    )


METHOD = Method(
    fission_grpo,
    changes="sampling, reward",
    evidence="reconstruction",
    shown=Shown(
        "noted_calculations",
        "experience/trained_recoveries",
        without="verltool",
        hyperparameters={"contexts": 4},
        steps=160,
    ),
)
