"""Prompt Augmentation: a random template at every visit, and a reward for its format."""

from collections import Counter

import numpy as np
import pytest
import training_runs
from walks import walked

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.curricula.prompt_augmentation import TEMPLATES, format_score, template_of
from rlvr_jax.objectives import GIVEN

BY_NAME = {template.name: template for template in TEMPLATES}


@pytest.mark.parametrize(
    ("name", "text", "score"),
    [
        ("lines", "<think>\na\n</think>\n\n<answer>\n7\n</answer>", 1),
        ("lines", "<think>a</think><answer>7</answer>", 0),
        ("tags", "<think>a</think><answer>7</answer>", 1),
        ("tags_begun", "a</think><answer>7</answer>", 1),
        ("tags", "<think>a<think></think><answer>7</answer>", 0.75),
        ("final_line", "The final answer is: 7", 1),
        ("final_line", "The final answer is: 7. The final answer is: 8", 0),
        ("box_behind", "7", 1),
    ],
)
def test_a_template_scores_the_texts_that_occur_once(name, text, score):
    assert format_score(BY_NAME[name], text) == score


def test_templates_are_drawn_evenly_and_each_by_itself():
    number = len(TEMPLATES)
    assert number == 13
    sampled = Counter(template_of(3, 0, index, number) for index in range(13_000))
    assert all(870 <= sampled[place] <= 1130 for place in range(number))
    again = [template_of(3, epoch, 5, number) for epoch in range(20)]
    assert again == [template_of(3, epoch, 5, number) for epoch in range(20)]
    assert len(set(again)) > 3


def test_a_group_shares_its_template_which_changes_from_visit_to_visit():
    actor, views = numpy_actor.NumpyActor(), {}
    for collected, told, _ in walked("prompt_augmentation", 9, actor):
        batch = collected.batch
        for rows in batch.groups:
            (label,) = {batch.requests[row].view.label for row in rows}
            views.setdefault(batch.requests[rows[0]].number, []).append(label)
        extra = batch.rollouts.reward - batch.rollouts.outcome
        assert (extra >= 0).all() and (extra <= 1).all()
        differ = [len(set(extra[rows])) > 1 for rows in batch.groups]
        assert collected.metrics["template_contrast"] == np.mean(differ)
        assert told["templated_fraction"] == 1
        free = [
            request.view.label
            in ("template_view(template=box_behind)", "template_view(template=begun)")
            for request in batch.requests
        ]
        assert (extra[free] == 1).all()
        begun = [
            request.view.label == "template_view(template=tags_begun)" for request in batch.requests
        ]
        if any(begun):
            assert (batch.rollouts.records["origin"][begun] == GIVEN).any(axis=1).all()
            assert not batch.rollouts.mask[begun][:, 0].any()
    assert all(len(labels) == 3 for labels in views.values())
    assert sum(len(set(labels)) > 1 for labels in views.values()) > 6


@pytest.mark.slow
def test_training_in_templates(tmp_path, monkeypatch):
    shown = " ".join(f"{template.text} {template.opening}" for template in TEMPLATES)
    words = dict.fromkeys([*training_runs.WORDS, *shown.split()])
    monkeypatch.setattr(training_runs, "WORDS", list(words))
    model = training_runs.write_policy(tmp_path / "model", max_positions=64)
    config = training_runs.settings(
        model, tmp_path / "run", method="prompt_augmentation", samples_per_prompt=8
    )
    training_runs.quietly(config)
    steps = training_runs.metrics(tmp_path / "run")
    assert max(training_runs.values(steps, "experience/template_score")) > 0
    assert max(training_runs.values(steps, "experience/templates_asked")) > 1
    assert max(training_runs.values(steps, "gradient_norm")) > 0
