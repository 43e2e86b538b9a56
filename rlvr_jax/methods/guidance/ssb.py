"""SSB: the policy learns to explain as it does after reading a correct and an incorrect response.

"Semantic Soft Bootstrapping: Long Context Reasoning in LLMs without Reinforcement Learning",
https://github.com/purbeshmitra/semantic-soft-bootstrapping

    mixed groups: a correct response, and an incorrect one with the commonest incorrect answer
    reply: the policy's, shown both; used if it is correct
    loss = τ² mean_t KL(softmax(z_T / τ) ‖ softmax(z / τ)) over the replies' tokens

z_T are the logits of the initial policy after the prompt with both responses, z those of the policy
after the plain prompt. Gradient flows only through z. No reward enters the loss. The authors make
replies and logits once, before training, from one base model. Here the current weights sample
replies in every step, and the teacher has the initial weights. The authors' runs are LoRA with
learning rate 2e-4: `--lora-rank 32`.

Left out: replies and logits made once, before training; their temperature of 0.8 and top-k of 50;
the request in tasks with own forms.
Reports: gains over GRPO with equal model and data: 10.6 points on MATH500, 10 on AIME24.
Traps: Only groups with correct and incorrect responses have a reply, and only correct replies are
used. A step without any reply has no gradient. Without τ², the gradient shrinks.
"""

from dataclasses import replace

import numpy as np

from rlvr_jax.experience import Stage, View, experience
from rlvr_jax.experience.stages.choices.pairs import asked_about, contrast_pairs
from rlvr_jax.experience.stages.rounds.another_view import GIVES
from rlvr_jax.experience.views import with_two_answers
from rlvr_jax.objectives import objective_of_terms, part, statistic_penalty
from rlvr_jax.types import Method, Recipe, Shown, is_correct
from rlvr_jax.types.hyperparameters import Positive

REQUEST = "Explain, step by step and so that nothing is left open, how to answer rightly."


def _both(correct: str, incorrect: str) -> View:
    return with_two_answers(correct, incorrect, REQUEST)


@part(writes=GIVES, by_row=True)
def bootstrap_replies(temperature: Positive) -> Stage:
    """Replaces the batch by correct replies that were sampled with two responses in the prompt.

    In each mixed group, the policy is shown a correct row and an incorrect one with the commonest
    incorrect answer (`with_two_answers`), and replies once. A correct reply is a row under the
    plain prompt. Its second prompt, for the teacher, is the one it was sampled from.

    Samples: one response per mixed group.
    Metrics: mixed_groups (fraction of the groups), accepted_replies (fraction of the groups).
    """

    def apply(batch, actor, state, turn):
        nothing = batch.without(np.ones(len(batch), bool))
        pairs = contrast_pairs(batch)
        metrics = {"mixed_groups": len(pairs) / len(batch.groups), "accepted_replies": 0.0}
        if not pairs:
            return nothing, state, metrics
        replies = actor.grade(actor.draw(asked_about(batch, pairs, _both), turn.key))
        correct = np.flatnonzero(replies.decided & is_correct(replies.rollouts.outcome))
        if not len(correct):
            return nothing, state, metrics
        replies = replies.take(correct).renumbered()
        plain = [replace(batch.requests[pairs[place].correct], samples=1) for place in correct]
        tokens, length = actor.prompts(plain)
        rollouts = replies.rollouts
        kind = rollouts.temperature.dtype
        replies = replace(replies, requests=plain).with_rollouts(
            prompt_tokens=tokens,
            prompt_length=length,
            second_tokens=rollouts.prompt_tokens,
            second_length=rollouts.prompt_length,
            temperature=(temperature * rollouts.temperature).astype(kind),
            sampled_temperature=rollouts.temperature,
        )
        return replies, state, metrics | {"accepted_replies": len(replies) / len(batch.groups)}

    view = replace(_both("", ""), responses=2)
    return Stage(apply, views=(view,))


def ssb(temperature: Positive = 2.0, teacher: str = "start") -> Recipe:
    """Applies a forward KL from the policy that reads a correct and an incorrect response.

    Args:
      temperature: temperature of both distributions, as a multiple of the sampling temperature (τ).
      teacher: weights of the teacher; see `Recipe`.
    """
    return Recipe(
        objective=objective_of_terms([statistic_penalty(temperature**2, "reverse_kl")]),
        experience=experience(stages=[bootstrap_replies(temperature)]),
        teacher=teacher,
    )


METHOD = Method(
    ssb,
    changes="surrogate, guidance",
    shown=Shown("hinted_brackets:train=512", "experience/accepted_replies"),
)
