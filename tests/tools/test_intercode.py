"""InterCode: the worked examples of its rewards, and an episode on a database."""

from dataclasses import replace

import pytest

from rlvr_jax.tasks import Prompt
from rlvr_jax.tools import Lost
from rlvr_jax.tools.intercode import sql_episodes
from rlvr_jax.verifiers.texts.intercode import bash_reward, sql_reward

SETUP = "create table t(a); insert into t values (3), (1), (2);"
GOLD = "select a from t order by a"


@pytest.mark.parametrize(
    ("answer", "gold", "reward"),
    [
        ([2, 1, 3, 5], [1, 2, 3, 4], 0.2),
        ([3, 2, 1], [1, 2, 3], -1),
        ([], [], 1),
        ([1], [], 0),
        ([1, 1], [1], 0.5),
        ([1, 2, 1], [1, 1, 2], 0.33),
    ],
)
def test_rows_are_paid_by_their_share_and_their_order(answer, gold, reward):
    assert sql_reward(answer, gold) == pytest.approx(reward)


@pytest.mark.parametrize(
    ("case", "reward"),
    [
        ((1, 0, 3, 2, "total 4 foo", "total 8 foo bar"), 0.51),
        ((0, 0, 0, 0, "", ""), 1.0),
        ((0, 0, 2, 2, "a", "b"), 0.67),
        ((5, 5, 0, 0, "word", "other"), 0.34),
    ],
)
def test_a_shell_is_paid_for_changes_contents_and_output(case, reward):
    assert bash_reward(*case) == pytest.approx(reward)


def played(*actions):
    world = sql_episodes(lambda prompt: prompt.answer, SETUP)
    state, told = world.start(Prompt("?", GOLD))[0], []
    for action in actions:
        reply = world.reply(state, action)
        state = reply.state
        told.append(reply)
    return told


def test_an_episode_is_paid_when_it_is_submitted():
    table, end = played("select a from t order by a\n", "submit\n")
    assert (table.text, table.done, table.reward) == ("1\n2\n3\n", False, 0.0)
    assert end.done and end.reward == end.outcome == 1.0
    assert played("select a from t order by a desc", "submit")[-1].reward == -1.0


def test_errors_are_told_and_forgotten():
    error, end = played("select nothing from nowhere", "submit")
    assert error.text.startswith("Error: ") and error.info == {"errors": 1.0}
    assert end.reward == end.outcome == 0.0
    (skipped,) = played("skip")
    assert skipped.done and skipped.outcome == 0.0


def gone(arguments, state):
    raise Lost("sql")


def test_what_nobody_can_say_is_no_verdict():
    world = sql_episodes(lambda prompt: prompt.answer, SETUP)
    lost = replace(world, tool=replace(world.tool, run=gone))
    for action in ("select 1", "submit"):
        told = lost.reply((GOLD, None), action)
        assert told.lost and told.done and told.outcome is None
    wrong = world.reply(("select nothing from nowhere", None), "submit")
    assert wrong.lost and wrong.done and wrong.info == {"gold_errors": 1.0}


def test_the_same_actions_give_the_same_replies():
    actions = ("select count(*) from t", "select 1", "submit")
    assert played(*actions) == played(*actions)
