"""MEL: the policy's comparison of its correct and incorrect responses is trained into its weights.

"Internalizing Meta-Experience into Memory for Guided Reinforcement Learning in Large Language
Models" (only the abstract was read)

    1. in a group with both, the policy is shown a correct and an incorrect response and writes M:
       the difference, the error, and the rule to observe
    2. M is used if the prompt with M as a note is answered correctly once
    3. loss = GRPO + λ · mean of -logp(M | prompt, correct response, incorrect response)

The second term has gradient only on the tokens of M. Prompts at test time have no note. GRPO is
PPO's clip on the token mean with A = (R_i - mean) / (std + 1e-6). A reconstruction: λ (`imitation`)
and one pair per group are ours; the paper's values are not known. The base model of
`discussed_sums` reads the request. Its M names the first incorrect line and the digits to mind.

Reports: models of 4B, 8B and 14B: pass@1 is 3.92 to 4.73 % above GRPO.
Traps: Without mixed groups, or if no response with a note is correct, the method is GRPO. Responses
with notes cost samples that are not trained on. Imitation of the policy's text lowers the entropy.
"""

from dataclasses import replace
from typing import Any

import jax
import numpy as np

from rlvr_jax.experience import Stage, View, concatenate, experience
from rlvr_jax.experience.stages.choices.pairs import asked_about, contrast_pairs
from rlvr_jax.experience.stages.donors.imitate_correct import to_imitate
from rlvr_jax.experience.views import requesting, with_note, with_two_answers
from rlvr_jax.objectives import clipped_objective, imitate, part
from rlvr_jax.types import Method, Recipe, Shown, arguments_of, is_correct
from rlvr_jax.types.hyperparameters import NonNegative
from rlvr_jax.verifiers.grade import Grade

REQUEST = (
    "Say where the two part, what is wrong with the second, and what to mind in such questions."
)


def _compared(correct: str, incorrect: str) -> View:
    return requesting(with_two_answers(correct, incorrect), REQUEST)


@part(writes={"supervised"}, by_row=True, most=1.5)
def reflect() -> Stage:
    """Adds the policy's text about a correct and an incorrect response as rows to imitate.

    In each group with both, one of each is shown with the prompt and a request in words
    (`requesting`), and the policy writes a text. The prompt is sampled once with the text as a note
    (`with_note`). If the response is correct, the text is imitated after the prompt of its
    sampling. It is a separate group that enters no statistic. The responses with notes are not
    trained on.

    Samples: two responses per mixed group.
    Metrics: mixed_groups (fraction of the groups), accepted_notes (fraction of the groups).
    """

    def apply(batch, actor, state, turn):
        batch = batch.with_rollouts(supervised=np.zeros(len(batch), bool))
        pairs = contrast_pairs(batch)
        metrics = {"mixed_groups": len(pairs) / len(batch.groups), "accepted_notes": 0.0}
        if not pairs:
            return batch, state, metrics
        requests = asked_about(batch, pairs, _compared)
        notes = actor.draw(requests, turn.key)
        tests = [
            replace(request, view=with_note(note.text))
            for request, note in zip(requests, notes.responses, strict=True)
        ]
        tested = actor.grade(actor.draw(tests, jax.random.fold_in(turn.key, 1)))
        useful = tested.decided & is_correct(tested.rollouts.outcome) & (notes.rollouts.length > 0)
        if not useful.any():
            return batch, state, metrics
        notes = notes.take(np.flatnonzero(useful))
        notes = notes.graded([Grade(None)] * len(notes))  # notes are not graded
        rows = to_imitate(notes, True)
        metrics["accepted_notes"] = len(notes) / len(batch.groups)
        return concatenate([batch, rows]), state, metrics

    shown = replace(_compared("", ""), responses=2)
    return Stage(apply, views=(shown, replace(with_note(""), responses=1)))


@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon")
def mel(imitation: NonNegative = 0.1, **clip: Any) -> Recipe:
    """Applies GRPO with the token mean, and imitates the policy's texts about its responses.

    Args:
      imitation: weight of the imitation (λ).
    """
    return Recipe(
        objective=clipped_objective(regularizers=[imitate(imitation)], **clip),
        experience=experience(stages=[reflect()]),
    )


METHOD = Method(
    mel,
    changes="regularizer, sampling, guidance",
    evidence="reconstruction",
    shown=Shown("discussed_sums", "experience/accepted_notes"),
)
