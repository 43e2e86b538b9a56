"""Dilemma: its payoffs make one, and its game pays them."""

import pytest

from rlvr_jax import tasks
from rlvr_jax.tasks import self_check
from rlvr_jax.tasks.dilemma import dilemma, payoffs_of


@pytest.fixture(scope="module")
def task():
    return dilemma(size=60, test_size=20)


def test_payoffs_are_those_of_a_dilemma_and_stand_in_the_text(task):
    for prompt in [*task.train, *task.test]:
        sucker, punishment, reward, temptation = prompt.answer
        assert sucker < punishment < reward < temptation and 2 * reward > temptation + sucker
        assert (
            f"If both cooperate, each earns {reward}; if both defect, {punishment}." in prompt.text
        )
        assert f"alone earns {temptation}, and the other one {sucker}." in prompt.text


def test_the_game_of_a_prompt_pays_its_table(task):
    world, prompt = task.environment, task.train[0]
    state = world.start(prompt)[0]
    sucker, punishment, reward, temptation = prompt.answer
    for texts, paid in (
        (("cooperate", "cooperate"), (reward, reward)),
        (("cooperate", "defect"), (sucker, temptation)),
        (("defect", "defect"), (punishment, punishment)),
        (("nothing", "I defect? I cooperate"), (temptation, sucker)),
    ):
        told = world.reply(state, texts)
        assert tuple(each.reward for each in told.each) == paid
        state = told.state
    last = world.reply(state, ("cooperate", "cooperate")).each[0]
    mean = (reward + sucker + punishment + temptation + reward) / 5
    assert last.done
    assert last.outcome == pytest.approx((mean - sucker) / (temptation - sucker))


def test_payoffs_of_other_prompts_are_not_mixed_up(task):
    world = task.environment
    states = [world.start(prompt)[0] for prompt in task.test]
    for state, prompt in zip(states, task.test, strict=True):
        told = world.reply(state, ("cooperate", "defect"))
        assert told.each[1].reward == payoffs_of(prompt)["defect", "cooperate"]


def test_the_same_numbers_make_the_same_prompts(task):
    again = dilemma.__wrapped__(size=60, test_size=20)
    assert again.train == task.train and again.test == task.test
    assert tasks.load("dilemma:size=60,test_size=20").train == task.train
    assert dilemma.__wrapped__(size=60, test_size=20, seed=1).train != task.train


def test_an_answer_that_is_not_played_earns_nothing(task):
    assert not self_check(task).problems


def test_no_rounds_are_refused():
    with pytest.raises(ValueError, match="rounds must be at least 1, got 0"):
        dilemma(rounds=0, size=4, test_size=2)
