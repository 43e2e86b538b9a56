"""Mixed-CoT-RL: half of the responses begin with a solution that contains one planted error."""

from dataclasses import replace

import numpy as np
import pytest
import training_runs
from walks import walked

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numbered_task import numbered_task
from rlvr_jax.methods import recipe
from rlvr_jax.methods.guidance.flawed_prefix import exact_fractions
from rlvr_jax.objectives import GIVEN
from rlvr_jax.tasks.base import Response
from rlvr_jax.tasks.sums.partial_sums import flawed_sum, partial_sums


def test_a_running_sum_is_wrong_in_its_last_line_alone():
    numbers = [4, 5, 6, 7]
    assert flawed_sum(numbers, 1, "calculation", 1) == ["4 + 5 = 9", "9 + 6 = 16"]
    assert flawed_sum(numbers, 1, "reasoning") == ["4 + 5 = 9", "9 + 7 = 16"]
    assert flawed_sum(numbers, 0, "calculation", -1) == ["4 + 5 = 8"]


def test_shares_are_exact():
    assert exact_fractions(8, [0.25, 0.25]) == [0, 0, 1, 1, -1, -1, -1, -1]
    assert exact_fractions(3, [0.5, 0.5]).count(-1) == 0


def test_prompts_of_partial_sums_bring_a_flaw_of_each_kind():
    task = partial_sums(size=20, test_size=5)
    for prompt in task.train:
        correct, incorrect = task.verify(
            [prompt, prompt], [Response(prompt.gold), Response(prompt.meta["flawed"]["reasoning"])]
        )
        assert correct.outcome == 1 and incorrect.outcome == 0
        assert "".join(prompt.solution) == prompt.gold


def test_what_was_planted_is_not_learned_from():
    for collected, told, _ in walked("flawed_prefix", 6, kinds=["slip"], fractions=[0.5]):
        batch, rollouts = collected.batch, collected.batch.rollouts
        begun = np.array([request.view.label != "plain" for request in batch.requests])
        assert batch.by_group(begun, False).all(axis=1).sum() == 2
        given = rollouts.records["origin"] == GIVEN
        assert given[begun].any(axis=1).all() and not given[~begun].any()
        assert not (rollouts.mask & given).any()
        assert {"outcome/plain", "outcome/begin_with_flaw(kind=slip)"} <= told.keys()
        assert told["flawed_fraction"] == 0.5


def test_prompts_without_a_flaw_count_as_plain():
    task = numbered_task()
    bare = replace(task, train=[replace(p, meta={"chance": 0.5}) for p in task.train])
    chain = recipe("flawed_prefix", kinds=["slip"], fractions=[0.5]).experience
    own = numpy_actor.setting(chain, task=bare)
    ((_, told, _),) = numpy_actor.walk(chain, steps=1, own=own)
    assert {name for name in told if name.startswith("outcome/")} == {"outcome/plain"}
    assert told["flawed_fraction"] == 0


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
    assert (
        len(training_runs.values(steps, "experience/outcome/begin_with_flaw(kind=calculation)"))
        == 3
    )
    assert min(training_runs.values(steps, "given_tokens")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0
