"""RLMEC: rewards tokens by the probability under a model that rewrites responses.

"Improving Large Language Models via Fine-grained Reinforcement Learning with Minimum Editing
Constraint", https://github.com/RUCAIBox/RLMEC

    p_t  = probability of the token under the rewriting model
    r_t  = clip(p - ½, 0, ½) in correct responses, clip(p - ½, -0.1, 0) in incorrect ones
    c_t  = min(ρ r, clip(ρ, 1 ± 0.3) r) without gradient, ρ = π / π_ref
    loss = -Σ c_t logp_t / number of tokens with r ≠ 0  +  λ mean_t -w_t logp_t over rewrites

The rewriting model is the recipe's teacher. Its prompt shows the reference solution and the
response, and requests a correct response with few changes (`rewriting`). Rewrites of incorrect
responses are imitated, with w = 1 on edited tokens (`edited_places`) and ½ on others. Correct
responses are their own rewrites. The authors fine-tune the rewriting model to correct the first
incorrect step, and it also writes the rewrites. Here the policy writes them, after the same prompt,
and incorrect rewrites are dropped. The authors train on stored samples.

Left out: the training of the rewriting model.
Reports: above RL on whole answers in maths and question answering (no numbers).
Traps: The default teacher is the initial policy, so rewards measure whether it repeats the response
after it has read the solution. Rewrites may repeat the solution. Clipped tokens still train. Tokens
of reward 0 are not in the denominator. Incorrect responses weigh a fifth.
"""

from collections.abc import Sequence
from dataclasses import replace as replaced
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.experience import SampleRequest, ShownPrompt, Stage, View, concatenate, experience
from rlvr_jax.experience.stages.donors.imitate_correct import to_imitate
from rlvr_jax.experience.stages.rounds.another_view import GIVES, with_second_prompts
from rlvr_jax.experience.views import SOLVED, with_two_answers
from rlvr_jax.objectives import (
    Surrogate,
    Transform,
    imitate,
    masked_mean,
    objective,
    part,
    token_mean,
)
from rlvr_jax.objectives.statistics.ratios import token_ratio
from rlvr_jax.tasks import Prompt, Task
from rlvr_jax.types import Method, Recipe, Rollouts, Shown, is_correct, replace
from rlvr_jax.types.hyperparameters import NonNegative
from rlvr_jax.types.records import declare

CHECK = "\n\nThis answer may be wrong:\n"
REQUEST = "\n\nWrite this answer again, and change as little as you can to make it right."

NOT_IMITATED, KEPT, EDITED = 0, 1, 2
declare("edits", Int[Array, "B T"], "of a rewrite: 1 a kept token, 2 an edited one; 0 not imitated")


@part
def rewriting(reference: str, response: str) -> View:
    """Shows a reference solution and a response after the prompt, and requests a minimal rewrite.

    If the task has forms for hints and answers, the reference is shown as the hint and the response
    as the answer.
    """

    def show(prompt: Prompt, task: Task) -> ShownPrompt:
        if task.show_hint is not None and task.show_answer is not None:
            return with_two_answers(reference, response).show(prompt, task)
        return ShownPrompt(f"{prompt.text}{SOLVED}{reference}{CHECK}{response}{REQUEST}")

    return View(show)


@part(
    writes=GIVES | {"supervised", "edits"},
    by_row=True,
    most=2.0,
    views=(replaced(rewriting("", ""), responses=2),),
)
def rewrite_minimally() -> Stage:
    """Shows the rewriting prompt of every row to the teacher, and adds rewrites as rows to imitate.

    The second prompt of a row is `rewriting`, with the gold response (else the answer) of its
    prompt. The policy rewrites each incorrect row once after that prompt. A correct rewrite is a
    row after the plain prompt, in a separate group that enters no statistic. Correct rows are also
    imitated.

    Samples: one response per incorrect row.
    Metrics: accepted_rewrites (rows), edited_tokens (fraction of the tokens of the rewrites).
    """

    def apply(batch, actor, state, turn):
        requests = [
            replaced(request, view=rewriting(_reference(request), response.text), samples=1)
            for request, response in zip(batch.requests, batch.responses, strict=True)
        ]
        batch = with_second_prompts(batch, actor, requests, batch.decided)
        correct = batch.decided & is_correct(batch.rollouts.outcome)
        own = np.where(batch.rollouts.mask & correct[:, None], KEPT, NOT_IMITATED)
        batch = batch.with_rollouts(
            supervised=np.zeros(len(batch), bool), edits=own.astype(np.int32)
        )
        metrics = {"accepted_rewrites": 0.0}
        failed = np.flatnonzero(batch.decided & ~correct)
        if not len(failed):
            return batch, state, metrics
        rewrites = actor.grade(actor.draw([requests[row] for row in failed], turn.key))
        accepted = rewrites.decided & is_correct(rewrites.rollouts.outcome)
        if not accepted.any():
            return batch, state, metrics
        originals = batch.take(failed[accepted]).rollouts
        rewrites = rewrites.take(np.flatnonzero(accepted)).renumbered()
        plain = [replaced(batch.requests[row], samples=1) for row in failed[accepted]]
        tokens, length = actor.prompts(plain)
        edits = edits_of(originals, rewrites.rollouts)
        rewrites = replaced(to_imitate(rewrites, True), requests=plain).with_rollouts(
            prompt_tokens=tokens,
            prompt_length=length,
            second_tokens=np.zeros_like(tokens),
            second_length=np.zeros_like(length),
            edits=edits,
        )
        metrics = {
            "accepted_rewrites": float(len(rewrites)),
            "edited_tokens": float((edits == EDITED).sum() / (edits != NOT_IMITATED).sum()),
        }
        return concatenate([batch, rewrites]), state, metrics

    return apply


def _reference(request: SampleRequest) -> str:
    prompt = request.prompt
    return str(prompt.answer if prompt.gold is None else prompt.gold)


def edits_of(originals: Rollouts, rewrites: Rollouts) -> np.ndarray:
    """The record `edits` of rewrites, int32 [B, T]."""
    found = np.zeros(rewrites.tokens.shape, np.int32)
    rows = zip(originals.tokens, originals.length, rewrites.tokens, rewrites.length, strict=True)
    for own, (old, before, new, after) in zip(found, rows, strict=True):
        own[:after] = KEPT
        own[edited_places(old[:before].tolist(), new[:after].tolist())] = EDITED
    return found


@part(reads={"teacher_logp"}, writes={"advantage", "mask"})
def rewriter_credit(high: NonNegative = 0.5, low: NonNegative = 0.1) -> Transform:
    """A_t = p - ½, clipped to [0, high] in correct responses and to [-low, 0] in incorrect ones.

    p is the teacher's probability. Tokens of reward 0 leave the mask: averages are over key tokens.

    Metrics: key_tokens_fraction (fraction of the tokens with a reward other than 0).
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        above = jnp.exp(rollouts.records["teacher_logp"]) - 0.5
        correct = is_correct(rollouts.outcome)[:, None]
        reward = jnp.where(correct, jnp.clip(above, 0, high), jnp.clip(above, -low, 0))
        key = signals.mask & (reward != 0)
        metrics = {"key_tokens_fraction": masked_mean(key, signals.mask)}
        signals = replace(signals, advantage=jnp.where(key, reward, 0), mask=key)
        return signals, state, metrics

    return apply


@part
def reference_weighted(clip: NonNegative = 0.3) -> Surrogate:
    """-c logp with c = sg(min(ρ A, clip(ρ, 1 ± ε) A)) and ρ = π / π_ref.

    c has no gradient, so clipped tokens still train.
    """

    def prepare(signals, context):
        reference = context.rollouts.reference_logp
        return replace(
            signals,
            ratio=token_ratio(context.stats.logp, reference, signals.mask),
            clip_low=jnp.full_like(signals.clip_low, clip),
            clip_high=jnp.full_like(signals.clip_high, clip),
        )

    def loss(signals, context):
        bounded = jnp.clip(signals.ratio, 1 - clip, 1 + clip) * signals.advantage
        weight = jnp.minimum(signals.ratio * signals.advantage, bounded)
        return -jax.lax.stop_gradient(weight) * context.stats.logp

    return Surrogate(prepare, loss, reads=frozenset({"reference_logp"}))


def edited_places(original: Sequence[Any], rewrite: Sequence[Any]) -> list[int]:
    """Positions of the rewrite that count as edited.

    The path of fewest edits (Levenshtein) is followed backwards until one text is used up,
    preferring a match, then a deletion, an insertion, a replacement. At every (i, j) of the path
    with different tokens the rewrite's token j is marked, at deletions as well. So tokens that are
    inserted at the very beginning are not marked.
    """
    table = np.zeros((len(original) + 1, len(rewrite) + 1), int)
    table[:, 0], table[0] = np.arange(len(original) + 1), np.arange(len(rewrite) + 1)
    for i, old in enumerate(original, 1):
        for j, new in enumerate(rewrite, 1):
            replaced = table[i - 1, j - 1] + (old != new)
            table[i, j] = min(replaced, table[i - 1, j] + 1, table[i, j - 1] + 1)
    marked = set()
    i, j = len(original), len(rewrite)
    while i and j:
        if original[i - 1] == rewrite[j - 1]:
            i, j = i - 1, j - 1
            continue
        marked.add(j - 1)
        if table[i, j] == table[i - 1, j] + 1:
            i -= 1
        elif table[i, j] == table[i, j - 1] + 1:
            j -= 1
        else:
            i, j = i - 1, j - 1
    return sorted(marked)


def imitated_tokens(rollouts: Rollouts) -> Bool[Array, "B T"]:
    """Tokens of rewrites, and of correct rows."""
    return rollouts.records["edits"] != NOT_IMITATED


def edit_weight(rollouts: Rollouts) -> Float[Array, "B T"]:
    """The weight of a token in the imitation: 1 if it is edited, else ½."""
    return jnp.where(rollouts.records["edits"] == EDITED, 1.0, 0.5)


def rlmec(
    clip: NonNegative = 0.3,
    high: NonNegative = 0.5,
    low: NonNegative = 0.1,
    imitation: NonNegative = 1.0,
    teacher: str = "start",
) -> Recipe:
    """Applies the policy gradient to key tokens, and imitates rewrites with few edits.

    Args:
      clip: half-width of the trust region around the reference.
      high: largest reward of a token in a correct response.
      low: largest penalty of a token in an incorrect response.
      imitation: weight of the imitation of rewrites (λ).
      teacher: folder of the rewriting model; "start": the initial policy.
    """
    rewrites = imitate(imitation, imitated_tokens, ("edits", "supervised"), edit_weight)
    return Recipe(
        objective=objective(
            advantage=rewriter_credit(high, low),
            surrogate=reference_weighted(clip),
            regularizers=[rewrites],
            aggregation=token_mean(),
        ),
        experience=experience(stages=[rewrite_minimally()]),
        teacher=teacher,
    )


METHOD = Method(
    rlmec,
    changes="reward, advantage, surrogate",
    baseline="other",
    gradient="stopped",
    ratio="other",
    shown=Shown("hinted_brackets:train=512", "experience/accepted_rewrites"),
)
