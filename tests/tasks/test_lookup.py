"""Lookup: every answer can be found by the searches of the solution, and by nothing else."""

import re

import pytest

from rlvr_jax import tasks
from rlvr_jax.tasks import self_check
from rlvr_jax.tasks.lookup import lookup
from rlvr_jax.verifiers.texts.r1_searcher import stage1_reward, stage2_reward


@pytest.fixture(scope="module")
def task():
    return lookup(people=160, size=60, test_size=20)


def found(task, prompt):
    state, texts = task.environment.start(prompt)[0], []
    for step in prompt.solution[:-1]:
        reply = task.environment.reply(state, step)
        state = reply.state
        texts.append(reply.text)
    return texts


def test_the_searches_of_the_solution_find_the_answer(task):
    for prompt in [*task.train, *task.test]:
        texts = found(task, prompt)
        assert len(texts) == prompt.meta["level"]
        assert prompt.answer in texts[-1] and prompt.answer not in prompt.text
        if prompt.meta["level"] == 2:  # the first text does not hold it, it says where to look
            town = re.search(r"born in the town of (\w+)", texts[0])[1]
            assert town in prompt.solution[1] and prompt.answer not in texts[0]


def test_nobody_is_asked_about_in_both_splits(task):
    def people(prompts):
        return {re.search(r"[A-Z]\w{3} [A-Z]\w{7}", prompt.text)[0] for prompt in prompts}

    assert not people(task.train) & people(task.test)
    assert {prompt.kind for prompt in task.test} == {"1_hops", "2_hops"}


def test_its_gold_is_right_and_others_are_wrong(task):
    assert self_check(task).problems == ()


def test_it_is_the_same_world_each_time(task):
    again = lookup.__wrapped__(people=160, size=60, test_size=20)
    assert again.fingerprint() == task.fingerprint()
    assert lookup.__wrapped__(people=160, size=60, test_size=20, seed=1).train[0] != task.train[0]
    assert tasks.load("lookup:people=160,size=60,test_size=20").train == task.train


def test_the_form_of_r1_searcher_has_its_tags_and_rewards():
    task = lookup(people=160, size=60, test_size=20, form="r1_searcher")
    assert self_check(task).problems == ()
    for prompt in task.test:
        texts = found(task, prompt)
        assert prompt.answer in texts[-1]
        pairs = zip(prompt.solution, [*texts, ""], strict=True)
        whole = "".join(step + reply for step, reply in pairs)
        assert stage2_reward(whole, prompt.answer) == 1.0
        assert stage1_reward(whole, prompt.answer) == 2.0


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({"max_hops": 3}, r"max_hops must be in \[1, 2\], got 3"),
        ({"people": 3}, "people must be at least 8"),
    ],
)
def test_bad_options_are_named(options, wrong):
    with pytest.raises(ValueError, match=wrong):
        lookup(**options)
