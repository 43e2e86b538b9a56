# %% [markdown]
# # A custom curriculum and a custom batch transform
#
# The batch of a training step is made by a chain of parts, which are functions of arrays:
#
# 1. A curriculum (`Curriculum`) selects the prompts.
# 2. A sampler (`Draw`) samples the responses, which are then graded.
# 3. Batch transforms (`Stage`) change the graded batch.
#
# This page defines a curriculum and a batch transform. Then it shows their effect on the batches of
# a policy, without training. It takes a minute on a CPU.

# %%
# If rlvr_jax is not installed, use the path of a clone of the repository:
# %pip install /path/to/rlvr_jax

# %%
import matplotlib.pyplot as plt
import numpy as np

from rlvr_jax import tasks
from rlvr_jax.analysis.colours import COLOURS
from rlvr_jax.diagnosis.held_out import evaluation_settings, load_held_out
from rlvr_jax.experience import Curriculum, RunInfo, Stage, all_incorrect, experience, part
from rlvr_jax.experience.requests import SampleRequest
from rlvr_jax.types import replace

# %% [markdown]
# ## A curriculum: failed prompts first
#
# The curriculum stores one number for each train prompt: a moving average of the fraction of
# incorrect responses. It is 1 for a new prompt.
#
# - `init` makes the state: numpy arrays of constant shapes. A checkpoint stores the state, and a
#   resumed run continues with it.
# - `propose` requests the prompts with the highest numbers. Prompts with equal numbers are in
#   random order.
# - `observe` updates the numbers after the step. Its argument `seen` has all graded batches of the
#   step.


# %%
@part
def missed_first(patience: float = 0.5) -> Curriculum:
    """Requests failed prompts first. `patience` is the weight of earlier steps in the average."""

    def init(setting):
        return np.ones(len(setting.task.train))

    def propose(requests, state, turn):
        del requests  # empty: no curriculum comes before this one
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
# ## A batch transform: sample failed groups again
#
# Groups without a correct response are sampled a second time, and both attempts stay in the batch.
# The field `most` is the largest number of rows after the transform, as a multiple of the rows
# before it. A run plans its updates with this number.


# %%
@part(most=2.0)
def once_more() -> Stage:
    """Samples groups without a correct response again."""

    def apply(batch, actor, state, turn):
        again = all_incorrect(batch.outcomes())
        if not again.any():
            return batch, state, {"sampled_again": 0.0}
        sampled = actor.grade(actor.draw(batch.requests_of(again), turn.key))
        found = {"sampled_again": float(again.mean())}
        return batch.with_groups(again, sampled, "append"), state, found

    return apply


# %% [markdown]
# ## The effect on the batches of a policy
#
# The base model of *brackets* samples the responses. Its weights do not change. Three chains make 8
# batches each, of 8 prompts with 8 responses:
#
# - `plain`: shuffled epochs over the prompts, and no batch transform.
# - `once_more`: the same prompts, with the batch transform.
# - `missed_first`: the curriculum, with the batch transform.
#
# The printed numbers, and the left plot, are the fraction of correct responses in each batch. The
# right plot is the fraction of groups that were sampled again.
#
# - With `once_more` fewer responses are correct than with `plain`: only groups without a correct
#   response get further rows.
# - With `missed_first` few responses are correct in the later steps: the curriculum then prefers
#   prompts that the policy fails.

# %%
task = tasks.load("brackets:train=64")
# `load_held_out` returns an actor for held-out prompts only. The train prompts of the chains are
# therefore held-out prompts of the task.
swapped = replace(task, train=task.test[:32], test=task.train)
settings = evaluation_settings(
    "brackets", model=task.base_model, evaluation_prompts=8, evaluation_samples=8
)
actor = load_held_out(settings, replace(task, test=task.test[:32])).actor()


def followed(chain, steps=8):
    """Metrics of each step of a chain, without updates."""
    setting = RunInfo(swapped, 8, 8, chain.initial_samples(8), swapped.response_tokens)
    state = chain.init(setting)
    rows = []
    for step in range(steps):
        collected = chain.collect(actor, state, step, setting)
        state, seen = chain.observe(collected, collected.batch, step, setting)
        outcomes = [grade.outcome for grade in collected.batch.grades]
        rows.append(dict(collected.metrics) | seen | {"outcome": float(np.mean(outcomes))})
    return rows


chains = {
    "plain": experience(),
    "once_more": experience(stages=[once_more()]),
    "missed_first": experience([missed_first()], stages=[once_more()]),
}
curves = {name: followed(chain) for name, chain in chains.items()}
for name, rows in curves.items():
    correct = [f"{row['outcome']:.2f}" for row in rows]
    print(f"{name:<14} correct, by step: {' '.join(correct)}")

figure, panels = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
for colour, (name, rows) in zip(COLOURS, curves.items(), strict=False):
    panels[0].plot([row["outcome"] for row in rows], color=colour, label=name)
    panels[1].plot([row.get("sampled_again", 0.0) for row in rows], color=colour, label=name)
panels[0].set(title="fraction of correct responses", xlabel="step")
panels[1].set(title="fraction of groups sampled again", xlabel="step")
_ = panels[0].legend()

# %% [markdown]
# In a run, the flag `--stage` adds a batch transform by name. For the command below, write the cell
# of `once_more` and its imports to a file `my_stage.py`:
#
#     python -m rlvr_jax train --method grpo --stage my_stage:once_more --run-dir runs/again
#
# A curriculum enters a run in a `Recipe`: see the tutorial `docs/tutorials/custom_stage.md`.
