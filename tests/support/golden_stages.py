"""Results of the stages of an experience on an input set of the reference vectors."""

import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.experience import Batch, RunInfo, SampleRequest, StepContext
from rlvr_jax.objectives.laws.cases import array
from rlvr_jax.tasks import Grade, Prompt, Task
from rlvr_jax.types import Rollouts

VOCABULARY = 64  # no input set has more


def experience_batch(batch):
    """A record as a graded batch of an experience: each group answers a prompt of its own."""
    rows = jax.tree.map(np.asarray, batch)
    size = np.bincount(rows.group)
    place = np.arange(len(rows.group)) - np.searchsorted(rows.group, rows.group)
    requests = [
        SampleRequest(
            Prompt(f"prompt {g}", "4", solution=("a", "b")),
            int(g),
            int(size[g]),
            first_sample=int(first),
        )
        for g, first in zip(rows.group, place, strict=True)
    ]
    return Batch(rows, requests, [Grade(float(outcome)) for outcome in rows.outcome], _Letters())


class _Letters:
    """A tokenizer: the first three ids are letters, the others words, none is special."""

    all_special_ids = ()

    def __len__(self):
        return VOCABULARY

    def batch_decode(self, rows, **options):
        del options
        return [" ".join("abc"[id] if id < 3 else f"word{id}" for id in row) for row in rows]


class NothingMore(Exception):
    """A stage wanted what a record cannot give."""


class _Still:
    """The actor of a record: it can draw nothing."""

    def __getattr__(self, name):
        raise NothingMore(name)


def staged(experience, batch, samples=None):
    """Results of the stages of an experience on a record, without those that sample again.

    Args:
      samples: rows of a group that are trained on; None: all.
    """
    found = experience_batch(batch)
    sampled = int(np.bincount(np.asarray(batch.group)).max())
    rewards = (
        0
        if "component_rewards" not in batch.records
        else batch.records["component_rewards"].shape[1]
    )
    names = [f"reward_{k}" for k in range(rewards)]
    sides = [Prompt("train", "4")], [Prompt("test", "4")]
    task = Task(
        "golden", *sides, None, rewards=names, answers=True, score_steps=lambda prompt, text: []
    )
    width = batch.mask.shape[1]
    setting = RunInfo(task, len(found.groups), samples or sampled, sampled, width, rounds=2)
    for name, stage in experience.stages.items():
        turn = StepContext(0, jax.random.key(0), setting, lambda count: [])
        try:
            found, _, _ = stage.apply(found, _Still(), stage.init(setting), turn)
        except NothingMore:
            continue
        assert isinstance(found, Batch), name
    return found


def prepared(recipe, batch, samples=None):
    """The batch as training would hand it to the objective: shaped reward, dropped groups.

    Rows that the stages do not select keep their places, without tokens and in groups of their own.

    Args:
      samples: rows of a group that are trained on; None: all.
    """
    experience = recipe.experience
    if experience is None:
        return batch
    before = experience_batch(batch)
    found = staged(experience, batch, samples)
    place = {
        (request.number, request.first_sample): row for row, request in enumerate(before.requests)
    }
    rows = np.array([place[request.number, request.first_sample] for request in found.requests])

    def back(new, old):
        whole = np.zeros((len(before), *new.shape[1:]), new.dtype) if old is None else old.copy()
        whole[rows] = new
        return jnp.asarray(whole)

    arrays = found.rollouts.arrays
    known = {name: back(new, before.rollouts.get(name)) for name, new in arrays.items()}
    chosen = np.isin(np.arange(len(before)), rows)
    alone = -1 - np.arange(len(before), dtype=np.int32)
    known["mask"] &= chosen[:, None]
    known["group"] = array(np.where(chosen, before.rollouts.group, alone), np.int32)
    known["rollout_id"] = array(before.rollouts.rollout_id, np.int32)
    return Rollouts.of_arrays(known)
