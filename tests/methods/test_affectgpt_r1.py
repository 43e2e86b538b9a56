"""AffectGPT-R1: pays lists of emotion words by the clusters they hit, with a price for each
word.
"""

import dataclasses

import pytest
import text_tasks
from training_runs import trained, values

from rlvr_jax.methods import recipe

PRINTED = 1e-6
"""As many digits as the examples print."""


@pytest.mark.slow
def test_lists_of_words_are_paid_and_priced(model, tmp_path):
    lines = trained(
        model, tmp_path / "run", "affectgpt_r1", task="text_tasks:lists", response_tokens=1
    )
    accuracy = values(lines, "experience/reward/accuracy")
    assert any(accuracy) and values(lines, "info/reward") == pytest.approx(accuracy, abs=PRINTED)
    assert all(own >= told for own, told in zip(values(lines, "info/f1"), accuracy, strict=True))
    assert values(lines, "experience/reward/format") == [0, 0]


def test_what_a_method_weighs_is_named_by_its_stages():
    chain = recipe("affectgpt_r1").experience
    task = chain.graded(dataclasses.replace(text_tasks.lists(), rewards=("outcome",)))
    assert list(task.rewards) == ["reward", "f1", "price", "format", "outcome"]
    with pytest.raises(ValueError, match=r"must have different names .* got \['reward'\] twice"):
        chain.graded(dataclasses.replace(task, rewards=("reward",)))
