"""Format rewards for <think>…</think><answer>…</answer>, as published and as `tags` reads it.

Gold: the tag that the prompt has opened, "<think>", or "" if none. The readings differ in the tags
that they check. A graded penalty of tags is `TagReport.share` on another scale.

Sources: https://github.com/Unakar/Logic-RL (`exact_tags`),
https://github.com/wenquanlu/prompt-augmentation-GRPO (`tag_fraction`),
https://github.com/huggingface/trl (`think_format`).
"""

from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.tags import prefilled_tags, tags


def exact_tags(response: str, opened: str = "") -> bool:
    """Each of the four tags once in prompt and response, in order."""
    return tags(opened + response).exact


def tag_fraction(response: str, opened: str = "") -> float:
    """Fraction of the tags to write that occur once, in any order."""
    return tags(response, prefilled=prefilled_tags(opened)).fraction


def think_format(response: str, opened: str = "") -> bool:
    """Prompt and response begin with the only <think>, and a </think> follows."""
    text = opened + response
    return text.startswith("<think>") and text.count("<think>") == 1 and "</think>" in text


def well_formed(response: str, opened: str = "") -> bool:
    """Ours: each tag once and in order; tags quoted in the thinking do not count."""
    return tags(response, prefilled=prefilled_tags(opened)).ok


def check(response: str, gold: str) -> Grade:
    """1 if well formed.

    Metrics: exact_tags, tag_fraction, think_format (the readings of the functions of these names, 0
      to 1).
    """
    info = {
        "exact_tags": float(exact_tags(response, gold)),
        "tag_fraction": tag_fraction(response, gold),
        "think_format": float(think_format(response, gold)),
    }
    return Grade(float(well_formed(response, gold)), answer=response, stage="format", info=info)
