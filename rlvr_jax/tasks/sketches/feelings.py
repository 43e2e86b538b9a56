"""Feelings: the emotions that two to four cues of a scene show, as an open list of words.

    prompt    smiles,gasps?
    response  <think>smiles,gasps</think><answer>happy,surprised</answer>

Two cues show one emotion, and two words name it: `WHEEL` of `words` has the cluster of the further
words. `rlvr_jax.verifiers.texts.affectgpt_r1` grades the lists by their clusters.

The base model leaves out some emotions, adds some others, and often leaves out the thought.
"""

from random import Random

from rlvr_jax.tasks.base import Prompt
from rlvr_jax.tasks.checked import verifier_of
from rlvr_jax.tasks.generated import Generated, generated
from rlvr_jax.tasks.sketches.words import BASE_MODEL, CUES, WHEEL

__all__ = ["feelings", "response_text"]

SIZES = (2, 3, 4)


@generated(response_tokens=20, size=180, test_size=40)
def feelings() -> Generated:
    """Scenes of two, three and four emotions, in equal numbers.

    Metrics: precision, recall, f1 (of the clusters), price (of words beyond the
      reference), reward (f1 less the price).
    """
    return Generated(
        _prompt,
        SIZES,
        verify=verifier_of(
            "rlvr_jax.verifiers.texts.affectgpt_r1", options={"wheel": WHEEL}, workers=0
        ),
        base_model=BASE_MODEL,
        answers=True,
    )


def _prompt(random: Random, size: int) -> Prompt:
    shown = random.sample(sorted({*CUES.values()}), size)
    cues = [random.choice([cue for cue, own in CUES.items() if own == name]) for name in shown]
    answer = ",".join(shown)
    return Prompt(f"{','.join(cues)}?", answer, f"{size}_emotions", response_text(cues, shown))


def response_text(cues, emotions) -> str:
    """A thought and a list."""
    return f"<think>{','.join(cues)}</think><answer>{','.join(emotions)}</answer>"
