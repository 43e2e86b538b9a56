# %% [markdown]
# # A stage and a curriculum of one's own
#
# Which prompts are asked, how they are answered and what becomes of the answers is a chain of
# functions of arrays, too. This page writes a curriculum and a stage, and looks at what they do to
# the batches of a policy, without training one. It takes a minute on a CPU.

# %%
import matplotlib.pyplot as plt
import numpy as np

from rlvr_jax import tasks
from rlvr_jax.diagnosis.held_out import evaluation_settings, load_held_out
from rlvr_jax.experience import Curriculum, RunInfo, Stage, all_incorrect, experience, part
from rlvr_jax.experience.requests import SampleRequest
from rlvr_jax.types import replace

# %% [markdown]
# ## A curriculum: what is missed comes again
#
# It keeps a number for each prompt, by how much it was missed lately, and asks those with the
# highest first; what was never asked counts as missed. State is numpy
# arrays of fixed shape: a checkpoint keeps it, and a resumed run goes on with it.


# %%
@part
def missed_first(patience: float = 0.5) -> Curriculum:
    """Asks the prompts that were missed most; what was seen before fades by `patience`."""

    def init(setting):
        return np.ones(len(setting.task.train))

    def propose(requests, state, turn):
        del requests  # of curricula before this one: it is the first
        shuffled = turn.random().permutation(len(state))
        order = shuffled[np.argsort(-state[shuffled], kind="stable")]
        task = turn.setting.task
        return [
            SampleRequest(task.train[number], int(number), turn.setting.samples)
            for number in order[: turn.setting.prompts]
        ]

    def observe(state, turn, seen, learned):
        del turn, learned
        state = state.copy()
        for batch in seen:
            for rows in batch.groups:
                number = batch.requests[rows[0]].number
                rate = np.mean([batch.grades[row].outcome for row in rows])
                state[number] = patience * state[number] + (1 - patience) * (1 - rate)
        return state, {"missed": float(state.mean())}

    return Curriculum(propose, init, observe)


# %% [markdown]
# ## A stage: once more
#
# Groups without a right answer are drawn again, and both tries are kept. `most` says how many rows
# there may be at most, so that programs can be compiled for them.


# %%
@part(most=2.0)
def once_more() -> Stage:
    """Draws groups again that nobody solved."""

    def apply(batch, actor, state, turn):
        again = all_incorrect(batch.outcomes())
        if not again.any():
            return batch, state, {"asked_again": 0.0}
        sampled = actor.grade(actor.draw(batch.requests_of(again), turn.key))
        found = {"asked_again": float(again.mean())}
        return batch.with_groups(again, sampled, "append"), state, found

    return apply


# %% [markdown]
# ## What they do to a policy's batches
#
# The base model of *brackets* answers; nothing is learned in between. So the curriculum asks all
# prompts once, and then those again that this policy cannot do, which the stage asks once more.

# %%
task = tasks.load("brackets:train=64")
# A policy at work asks the prompts of its table, which are the held-out ones.
asked = replace(task, train=task.test[:32], test=task.train)
settings = evaluation_settings(
    "brackets", model=task.base_model, evaluation_prompts=8, evaluation_samples=8
)
actor = load_held_out(settings, replace(task, test=task.test[:32])).actor()


def followed(chain, steps=8):
    """Curves of a chain over steps without an update."""
    setting = RunInfo(asked, 8, 8, chain.initial_samples(8), asked.response_tokens)
    state = chain.init(setting)
    told = []
    for step in range(steps):
        collected = chain.collect(actor, state, step, setting)
        state, seen = chain.observe(collected, collected.batch, step, setting)
        outcomes = [grade.outcome for grade in collected.batch.grades]
        told.append(dict(collected.metrics) | seen | {"outcome": float(np.mean(outcomes))})
    return told


chains = {
    "plain": experience(),
    "once_more": experience(stages=[once_more()]),
    "missed_first": experience([missed_first()], stages=[once_more()]),
}
curves = {name: followed(chain) for name, chain in chains.items()}
for name, told in curves.items():
    rows = [f"{row['outcome']:.2f}" for row in told]
    print(f"{name:<14} right, by step: {' '.join(rows)}")

figure, panels = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
for name, told in curves.items():
    panels[0].plot([row["outcome"] for row in told], label=name)
    panels[1].plot([row.get("asked_again", 0.0) for row in told], label=name)
panels[0].set(title="right", xlabel="step")
panels[1].set(title="asked again", xlabel="step")
_ = panels[0].legend()

# %% [markdown]
# In a run a stage is given by name, and a curriculum in a `Recipe`: docs/experience.md.
#
#     python -m experiments.train --stage my_stage:once_more --run-dir runs/again
