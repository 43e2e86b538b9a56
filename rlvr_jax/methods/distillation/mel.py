"""MEL: what the policy says about its right and wrong answers becomes part of its weights.

"Internalizing Meta-Experience into Memory for Guided Reinforcement Learning in Large Language
Models", of which the abstract was read.

    in a group with a right and a wrong answer the policy is shown one of each and says where they
    part, what is wrong, and what to mind: M
    M is kept if the prompt, asked once more with M as a note, is answered rightly
    loss = GRPO + λ · mean of -logp(M | prompt, right answer, wrong answer)

The second term has gradient on the tokens of M alone; at test time nothing is shown. GRPO is PPO's
clip on the token mean with A = (R_i - mean) / (std + 1e-6). λ and one pair per group are ours; the
paper's is not known. Text of the policy's own sharpens it: watch the entropy.
"""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np

from rlvr_jax.experience import experience
from rlvr_jax.experience.batch import concatenate
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.choices.pairs import RIGHT, asked_about, contrast_pairs
from rlvr_jax.experience.stages.donors.imitate_right import to_imitate
from rlvr_jax.experience.views import with_note, with_two_answers
from rlvr_jax.objectives import group_normalized, imitate
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.tasks.base import Grade
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon
from rlvr_jax.types.parts import part

REQUEST = (
    "Say where the two part, what is wrong with the second, and what to mind in such questions."
)


@part(by_row=True, most=1.5)
def reflect() -> Stage:
    """Adds what the policy says about a right and a wrong answer as rows to imitate.

    Of each group with both, one of each is shown beside the prompt (`with_two_answers`), and the
    policy writes about them. The text is tried: the prompt is asked once with it as a note
    (`with_note`), and the text is kept if that answer is right. It is imitated behind the prompt
    that it was written to, in a group of its own that no statistic sees; the answers that tried it
    are not trained.

    Reads: outcome, Grade.answer, the responses' texts. Draws: two rows for each mixed group.
      Writes: supervised. Metrics: mixed_groups (share), kept_notes (share of the groups).
    """

    def apply(batch, actor, state, turn):
        batch = batch.with_rollouts(supervised=np.zeros(len(batch), bool))
        pairs = contrast_pairs(batch)
        told = {"mixed_groups": len(pairs) / len(batch.groups), "kept_notes": 0.0}
        if not pairs:
            return batch, state, told
        asks = asked_about(batch, pairs, REQUEST)
        notes = actor.draw(asks, turn.key)
        tries = [
            replace(ask, view=with_note(note.text))
            for ask, note in zip(asks, notes.responses, strict=True)
        ]
        tried = actor.grade(actor.draw(tries, jax.random.fold_in(turn.key, 1)))
        good = tried.decided & (tried.rollouts.outcome > RIGHT) & (notes.rollouts.length > 0)
        if not good.any():
            return batch, state, told
        kept = notes.take(np.flatnonzero(good))
        # Nobody grades what is said about answers.
        kept = replace(kept, grades=[Grade(None)] * len(kept))
        rows = to_imitate(kept, np.ones(len(kept), bool))
        told["kept_notes"] = len(kept) / len(batch.groups)
        return concatenate([batch, rows]), state, told

    shown = replace(with_two_answers("", "", REQUEST), responses=2)
    views = (shown, replace(with_note(""), responses=1))
    gives = frozenset({"supervised"})
    return Stage(apply, views=views, writes=gives)


def mel(
    imitation: float = 0.1,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO on the token mean, and imitation of what the policy says about its answers.

    Args:
      imitation: weight of the imitation (λ).
    """
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            advantage=group_normalized(epsilon),
            regularizers=[imitate(imitation)],
        ),
        experience=experience(stages=[reflect()]),
    )


METHOD = Method(
    mel,
    "Internalizing Meta-Experience into Memory for Guided Reinforcement Learning in Large Language"
    " Models",
    "",
    changes="regularizer, sampling, guidance",
    evidence="reconstruction",
    reports="models of 4B, 8B and 14B: pass@1 3.92 to 4.73 % above GRPO",
    traps=(
        "without mixed groups, or where no replay is right, it is GRPO; replays cost rollouts that "
        "are not trained on; imitation of its own text lowers the entropy"
    ),
)
