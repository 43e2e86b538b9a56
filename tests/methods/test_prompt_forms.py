"""Templates, flawed beginnings, starts from prefixes, and prompts that are not yet solved."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import training_runs
from walks import walked

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numbered_task import numbered_task
from rlvr_jax.methods import recipe
from rlvr_jax.methods.curricula.prompt_augmentation import TEMPLATES, format_score, template_of
from rlvr_jax.methods.guidance.flawed_prefix import exact_shares
from rlvr_jax.objectives import GIVEN
from rlvr_jax.tasks.base import Response
from rlvr_jax.tasks.sums.partial_sums import flawed_sum, partial_sums

BY_NAME = {template.name: template for template in TEMPLATES}


# Prompt augmentation


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
    drawn = Counter(template_of(3, 0, index, number) for index in range(13_000))
    assert all(870 <= drawn[place] <= 1130 for place in range(number))
    again = [template_of(3, epoch, 5, number) for epoch in range(20)]
    assert again == [template_of(3, epoch, 5, number) for epoch in range(20)]
    assert len(set(again)) > 3


def test_a_group_shares_its_template_which_changes_from_visit_to_visit():
    actor, views = numpy_actor.NumpyActor(), {}
    for collected, _, _ in walked("prompt_augmentation", 9, actor):
        batch = collected.batch
        for rows in batch.groups:
            (label,) = {batch.asks[row].view.label for row in rows}
            views.setdefault(batch.asks[rows[0]].number, []).append(label)
        extra = batch.rollouts.reward - batch.rollouts.outcome
        assert (extra >= 0).all() and (extra <= 1).all()
        free = [
            ask.view.label
            in ("template_view(template=box_behind)", "template_view(template=begun)")
            for ask in batch.asks
        ]
        assert (extra[free] == 1).all()
        begun = [ask.view.label == "template_view(template=tags_begun)" for ask in batch.asks]
        if any(begun):
            assert (batch.rollouts.origin[begun] == GIVEN).any(axis=1).all()
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


# Flawed prefixes


def test_a_running_sum_is_wrong_in_its_last_line_alone():
    numbers = [4, 5, 6, 7]
    assert flawed_sum(numbers, 1, "calculation", 1) == ["4 + 5 = 9", "9 + 6 = 16"]
    assert flawed_sum(numbers, 1, "reasoning") == ["4 + 5 = 9", "9 + 7 = 16"]
    assert flawed_sum(numbers, 0, "calculation", -1) == ["4 + 5 = 8"]


def test_shares_are_exact():
    assert exact_shares(8, [0.25, 0.25]) == [0, 0, 1, 1, -1, -1, -1, -1]
    assert exact_shares(3, [0.5, 0.5]).count(-1) == 0


def test_prompts_of_partial_sums_bring_a_flaw_of_each_kind():
    task = partial_sums(size=20, test_size=5)
    for prompt in task.train:
        right, wrong = task.verify(
            [prompt, prompt], [Response(prompt.gold), Response(prompt.meta["flawed"]["reasoning"])]
        )
        assert right.outcome == 1 and wrong.outcome == 0
        assert "".join(prompt.solution) == prompt.gold


def test_what_was_planted_is_not_learned_from():
    for collected, told, _ in walked("flawed_prefix", 6, kinds=["slip"], shares=[0.5]):
        batch, rollouts = collected.batch, collected.batch.rollouts
        begun = np.array([ask.view.label != "plain" for ask in batch.asks])
        assert batch.by_group(begun, False).all(axis=1).sum() == 2
        given = rollouts.origin == GIVEN
        assert given[begun].any(axis=1).all() and not given[~begun].any()
        assert not (rollouts.mask & given).any()
        assert {"outcome/plain", "outcome/begin_with_flaw(kind=slip)"} <= told.keys()


def test_prompts_without_a_flaw_count_as_plain():
    task = numbered_task()
    bare = replace(task, train=[replace(p, meta={"chance": 0.5}) for p in task.train])
    chain = recipe("flawed_prefix", kinds=["slip"], shares=[0.5]).experience
    own = numpy_actor.setting(chain, task=bare)
    ((_, told, _),) = numpy_actor.walk(chain, steps=1, own=own)
    assert {name for name in told if name.startswith("outcome/")} == {"outcome/plain"}


@pytest.mark.slow
def test_training_from_flawed_beginnings(tmp_path, monkeypatch):
    monkeypatch.setattr(training_runs, "WORDS", [*training_runs.WORDS, ";"])
    model = training_runs.write_policy(tmp_path / "model", max_positions=64)
    config = training_runs.settings(
        model,
        tmp_path / "run",
        task="partial_sums:terms=3,largest=2,size=6,test_size=2,response_tokens=16",
        method="flawed_prefix",
        samples_per_prompt=8,
        steps=3,
        evaluation_prompts=2,
    )
    training_runs.quietly(config)
    steps = training_runs.metrics(tmp_path / "run")
    assert len(training_runs.values(steps, "experience/outcome/begin_with_flaw(calculation)")) == 3
    assert min(training_runs.values(steps, "given_tokens")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0


# ReST-RL


def test_starts_wait_in_a_queue_and_begin_as_the_best_answers_did():
    given = {"rated": 4, "rating_samples": 4, "capacity": 40}
    asked, best = 0, {}
    for collected, told, state in walked("rest_rl", 8, **given):
        batch, rollouts = collected.batch, collected.batch.rollouts
        for rows in batch.groups:
            ask = batch.asks[rows[0]]
            if len(ask.given):
                asked += 1
                length = len(ask.given)
                assert (rollouts.tokens[rows, :length] == ask.given).all()
                assert not rollouts.mask[rows, :length].any()
                assert tuple(ask.given) in best[ask.number]
        (rated,) = [b for b in collected.seen if b.asks[0].rating]
        for rows, outcomes in zip(rated.groups, rated.outcomes(), strict=True):
            row = rows[np.argmax(outcomes)]
            ids = rated.rollouts.tokens[row].tolist()
            known = best.setdefault(rated.asks[row].number, set())
            if outcomes.max() == 1:
                known |= {tuple(ids[:end]) for end in range(1, len(ids))}
        assert told["queue"] == state["start_from_prefixes"].held
        extra = rollouts.reward - rollouts.outcome
        np.testing.assert_allclose(extra, np.where(rollouts.truncated, 0, 1e-3), atol=1e-7)
    assert asked > 0


@pytest.mark.slow
def test_training_from_prefixes_of_the_best_answers(tmp_path):
    given = ("rated=8", "rating_samples=4")
    steps = training_runs.on_brackets("rest_rl", tmp_path, steps=4, hyperparameters=given)
    assert max(training_runs.values(steps, "experience/asked_prefixes")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0


# SELF


def test_prompts_that_are_solved_greedily_are_left_out():
    kept = 0
    for collected, _, _ in walked("self_data_curation", 6):
        first = collected.seen[0]
        assert first.rollouts.temperature.max() < 1e-3 and len(first) == 4
        open_ = [
            first.asks[rows[0]].number for rows in first.groups if first.rollouts.outcome[rows] < 1
        ]
        batch = collected.batch
        if open_:
            assert [batch.asks[rows[0]].number for rows in batch.groups] == open_
            assert [len(rows) for rows in batch.groups] == [4] * len(open_)
            assert batch.rollouts.temperature.min() == 1
        else:
            assert not batch.rollouts.mask.any()
        assert collected.metrics["solved_greedily"] == 1 - len(open_) / 4
        kept += len(open_)
    assert 0 < kept < 24


def test_further_prompts_fill_the_batch():
    for collected, _, _ in walked("self_data_curation", 4, rounds=4):
        assert len(collected.batch.groups) == 4 or len(collected.seen) >= 4


@pytest.mark.slow
def test_training_on_what_is_not_solved_greedily(tmp_path):
    steps = training_runs.on_brackets("self_data_curation", tmp_path)
    assert max(training_runs.values(steps, "experience/solved_greedily")) > 0
    assert len(training_runs.values(steps, "statistic_penalty/reverse_kl")) == 2
    assert max(training_runs.values(steps, "gradient_norm")) > 0
