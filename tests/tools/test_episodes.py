"""Objects with `reset` and `step` as environments, and environments as such objects."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import training_runs

from rlvr_jax.experience import experience, turns
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.tasks import Prompt
from rlvr_jax.tools import Lost, Reply, episode, stepped
from rlvr_jax.tools.intercode import sql_episodes


class Reaching:
    """A number is to be reached by "+1" and "*2"; "submit" is paid by whether it was."""

    def __init__(self, prompt):
        self.goal = prompt.answer

    def reset(self, seed=None):
        self.number = 0
        return "0", {}

    def step(self, action):
        if action == "submit":
            return "over", float(self.number == self.goal), True, False, {}
        self.number = {"+1": self.number + 1, "*2": 2 * self.number}[action]
        return str(self.number), 0.0, False, self.number > 8, {"moves": 1, "name": "reaching"}


class Older(Reaching):
    """With `step` as gym had it."""

    def step(self, action):
        shown, reward, ended, cut, info = super().step(action)
        return shown, reward, ended or cut, info


class Locked(Reaching):
    """Which nobody can copy."""

    def __init__(self, prompt):
        super().__init__(prompt)
        self.lock = threading.Lock()


def played(make, *actions, state=None, **given):
    world = episode(make, **given)
    state = state or world.start(Prompt("3?", 3))[0]
    told = []
    for action in actions:
        told.append(world.reply(state, action))
        state = told[-1].state
    return told


@pytest.mark.parametrize("make", [Reaching, Older, Locked])
def test_an_episode_is_played_and_paid(make):
    one, two, three, end = played(make, " +1\n", "*2", "+1", "submit")
    assert [told.text for told in (one, two, three)] == ["1", "2", "3"]
    assert one.info == {"step_errors": 0, "step_timeouts": 0, "moves": 1}
    assert (end.done, end.reward, end.outcome, one.outcome) == (True, 1.0, 1.0, None)
    assert played(make, "+1", "submit")[-1].outcome == 0.0
    assert played(make, "+1", *["*2"] * 4)[-1].done  # cut by the object


@pytest.mark.parametrize("make", [Reaching, Locked])
def test_a_row_can_go_back_to_a_state(make):
    (first,) = played(make, "+1")
    for _ in range(2):
        assert played(make, "*2", state=first.state)[0].text == "2"


class Hanging(Reaching):
    def step(self, action):
        if action == "wait":
            self.number = 99
            time.sleep(4)
        return super().step(action)


class Loud(Reaching):
    def step(self, action):
        return {"long": "y" * 50, "bytes": b"\xff", "half": "\ud800"}[action], 0, False, {}


def test_a_step_that_raises_or_hangs_is_told_counted_and_has_not_happened():
    wrong, right = played(Reaching, "-1", "+1")
    assert wrong.text == "Error: KeyError: '-1'" and wrong.info["step_errors"] == 1
    assert not wrong.done and right.text == "1"
    late, right = played(Hanging, "wait", "+1", seconds=1)
    assert late.text == "Error: the step took longer than 1 seconds."
    assert late.info["step_timeouts"] == 1 and right.text == "1"


def test_an_observation_is_a_text_of_some_length():
    told = [reply.text for reply in played(Loud, "long", "bytes", "half", characters=10)]
    assert told == ["y" * 10 + "… (10 of 50 characters)", "\ufffd", "?"]


class Short(Reaching):
    def step(self, action):
        return "1", 0.0


def test_what_is_no_such_object_is_refused():
    with pytest.raises(ValueError, match="step must return 4 or 5 values, got 2"):
        played(Short, "+1")
    with pytest.raises(ValueError, match="episode: seconds must be positive, got 0"):
        episode(Reaching, seconds=0)
    with pytest.raises(ValueError, match="episode: characters must be positive, got -1"):
        episode(Reaching, characters=-1)


class Echo:
    """Counts steps, and cannot be copied; what the actor of numpy reads is "word3 x"."""

    def __init__(self, prompt):
        self.lock, self.steps = threading.Lock(), 0

    def reset(self):
        self.steps = 0

    def step(self, action):
        self.steps += 1
        return "c" * self.steps, 0.25, self.steps > 2, False, {"steps": float(self.steps)}


def test_rows_of_objects_that_cannot_be_copied_are_written_to_their_ends():
    world = episode(Echo, stops=("b",), role="")
    chain = experience(draw=turns(world))
    for found, _, _ in numpy_actor.walk(chain, steps=4):
        rollouts = found.batch.rollouts
        assert found.metrics["steps"] > 0 and found.metrics["step_errors"] == 0
        # 0.25 of each step, and an outcome where the third one ended it.
        paid = rollouts.records["process_reward"].sum(axis=1) / 0.25
        np.testing.assert_allclose(paid, np.round(paid), atol=1e-5)
        np.testing.assert_allclose(rollouts.outcome, np.where(paid > 2.5, 0.25, 0))


class Sums:
    """Shows "3 4" whoever ends in "="; an episode is over, and paid, by the sum."""

    def __init__(self, prompt):
        self.wanted = str(prompt.answer)

    def reset(self):
        pass

    def step(self, action):
        right = self.wanted in action.split()
        return "3 4", float(right), right or not action.endswith("="), {}


def sums_by_steps():
    """The sums of `training_runs`, graded by objects with `step`."""
    world = episode(Sums, stops=("=",), role="")
    return replace(training_runs.sums(), environment=world)


@pytest.mark.slow  # ten seconds
def test_a_run_learns_from_objects_with_steps(tmp_path):
    policy = training_runs.write_policy(tmp_path / "policy")
    config = training_runs.settings(
        policy,
        tmp_path / "run",
        task=f"{__name__}:sums_by_steps",
        method="verltool",
        hyperparameters=("tools=None",),
        response_tokens=10,
    )
    training_runs.quietly(config)
    steps = training_runs.metrics(tmp_path / "run")
    assert max(training_runs.values(steps, "experience/tool_tokens")) > 0
    assert 0 < max(training_runs.values(steps, "outcome")) <= 1
    assert max(training_runs.values(steps, "gradient_norm")) > 0


# The other way round.

SETUP = "create table t(a); insert into t values (3), (1), (2);"
GOLD = "select a from t order by a"


def test_an_environment_is_stepped_by_intercodes_names():
    prompts = [Prompt("all of a?", GOLD), Prompt("how many?", "select count(*) from t")]
    own = stepped(sql_episodes(lambda prompt: prompt.answer, SETUP), prompts)
    assert own.reset(1) == ("how many?", {})
    shown, reward, done, info = own.step("select nothing from nowhere")
    assert shown.startswith("Error: ") and (reward, done, info) == (0.0, False, {"errors": 1.0})
    assert own.step("select count(*) from t") == ("3\n", 0.0, False, {"actions": 1.0})
    assert own.step("submit") == ("", 1.0, True, {"outcome": 1.0})
    with pytest.raises(ValueError, match="an episode must be running"):
        own.step("submit")
    own.reset(0)
    assert own.step("skip")[1:3] == (0.0, True)


def test_the_same_actions_give_the_same_observations_there_and_back():
    own = stepped(episode(Reaching), [Prompt("3?", 3)])
    for _ in range(2):
        assert own.reset(0) == ("3?", {})
        told = [own.step(action)[:3] for action in ("+1", "*2", "+1", "submit")]
        assert told == [("1", 0, False), ("2", 0, False), ("3", 0, False), ("over", 1, True)]


class Gone:
    label, stops, judges = "gone()", (), True

    def start(self, prompt):
        return None, []

    def reply(self, state, text):
        return Reply(None, lost=True)


def test_a_lost_step_raises():
    own = stepped(Gone(), [Prompt("?", 0)])
    own.reset(0)
    with pytest.raises(Lost, match=r"gone\(\)"):
        own.step("go")
