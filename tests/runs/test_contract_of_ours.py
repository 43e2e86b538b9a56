"""The laws of the experience with the in-process actor: on one device, on eight, on two processes.

`tests/experience/test_contract.py` holds them with an actor of numpy, which is fast; here every
part asks a real policy on `hinted_brackets`.
"""

import functools

import numpy as np
import pytest
from part_cases import CASES

from rlvr_jax.experience import RunActor
from rlvr_jax.runs import TrainConfig
from rlvr_jax.runs.composition import setting_of
from rlvr_jax.runs.resolved import resolve
from rlvr_jax.runs.run import make_run

pytestmark = pytest.mark.slow

# Products of float32 in another order, in log-probs of some nats.
LOGP = 1e-5
STEPS = 2


# Parts for tasks with something that brackets has not; they are refused by name.
ELSEWHERE = {
    "climb_formats": "prompts must have variants",
    "propose_and_solve": "task must have a world",
    "earn_learnability": "task must have a world",
    "kinds_in_order": "kinds must be those of the train prompts",
    "pair_turns": "or a recipe.s teacher, got",
}


@functools.cache
def run_on(mesh):
    """A run with the whole actor, whose chain is exchanged below."""
    config = TrainConfig.of(
        task="hinted_brackets:train=24",
        method="grpo",
        hyperparameters=("kl_coefficient=0",),
        prompts_per_step=8,
        samples_per_prompt=4,
        evaluation_prompts=8,
        evaluation_samples=4,
        prompt_tokens=40,  # room for hints
        mask_truncated=False,
        mesh=mesh,
    )
    run = make_run(resolve(config))
    return run, run.initial_state()


def walked(name, mesh):
    """Steps of a chain without an update, and the actor."""
    run, state = run_on(mesh)
    chain = CASES[name]()
    policy = run.start.model.config
    task = chain.graded(run.task)
    setting = setting_of(run.config, task, chain, policy.vocab_size, policy.width)
    params = run.sampler_params(state.device)
    actor = RunActor(run.start.sampler, params, run.start.tables, 0, run.scorer(state.device))
    data, found = chain.init(setting), []
    for step in range(STEPS):
        collected = chain.collect(actor, data, step, setting)
        batch = collected.batch
        scored = actor.score(batch, ("logp",))["logp"]
        data, _ = chain.observe(collected, batch.with_rollouts(old_logp=scored), step, setting)
        found.append((collected, scored))
    return found, actor


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_part_that_the_task_does_not_suit_is_refused(name):
    with pytest.raises(ValueError, match=ELSEWHERE[name]):
        walked(name, "")


@pytest.mark.parametrize("name", [name for name in CASES if name not in ELSEWHERE])
def test_a_part_asks_and_learns_alike_on_one_device_and_on_eight(name):
    """Asks are equal where grades are; log-probs of the same rows agree."""
    alone, _ = walked(name, "")
    split, eight = walked(name, "data=2,fsdp=4")
    for (collected, scored), (other, _) in zip(alone, split, strict=True):
        batch = collected.batch
        assert len(batch) and np.all(np.diff(batch.rollouts.group) >= 0)
        assert collected.metrics["sampled_tokens"] + collected.metrics.get("reused_tokens", 0) > 0
        known = eight.score(batch, ("logp",))["logp"]
        on = batch.rollouts.mask
        np.testing.assert_allclose(known[on], scored[on], atol=LOGP)
        if [grade.outcome for grade in batch.grades] != [g.outcome for g in other.batch.grades]:
            return
        assert batch.requests == other.batch.requests
        same = functools.partial(np.testing.assert_allclose, atol=LOGP)
        told = batch.rollouts.behaviour_logp, other.batch.rollouts.behaviour_logp
        same(*(np.where(on, logp, 0) for logp in told))
