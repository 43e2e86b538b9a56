"""Laws of every experience, and the check of one against them.

    from rlvr_jax.experience import experience
    from rlvr_jax.experience.laws import check

    for law, reason in check(lambda: experience(stages=[my_stage()])).items():
        print(law, reason or "holds")

A law is a function of a `Case` (a chain that takes four steps with `numpy_actor`) that raises
`rlvr_jax.laws.Broken`. The test tests/experience/test_contract.py checks the library's parts by
these laws.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from rlvr_jax.experience.chain import Collected, Experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numbered_task import numbered_task
from rlvr_jax.laws import hold, laws_of, require
from rlvr_jax.objectives import GIVEN
from rlvr_jax.tasks import Task

STEPS = 4


@dataclass(frozen=True, eq=False)
class Case:
    """A chain and its first steps.

    Fields:
      make: () -> a new chain at each call, so that state outside of the chain is found.
      task: its prompts are answered by the actor; its verifier is not called.
    """

    make: Callable[[], Experience]
    task: Task = field(default_factory=numbered_task)

    @functools.cached_property
    def chain(self) -> Experience:
        """The chain that takes the steps."""
        return self.make()

    @functools.cached_property
    def _walked(self) -> tuple[list[numpy_actor.Walked], list[int]]:
        sampled: list[int] = []

        class Counting(numpy_actor.NumpyActor):
            def draw(self, requests, key, sampling=None, constants=None):
                batch = super().draw(requests, key, sampling, constants)
                rollouts = batch.rollouts
                own = (
                    True
                    if "origin" not in rollouts.records
                    else rollouts.records["origin"] != GIVEN
                )
                sampled.append(int((rollouts.mask & own).sum()))
                return batch

        return self.walk(self.chain, steps=STEPS, actor=Counting()), sampled

    @property
    def steps(self) -> list[numpy_actor.Walked]:
        """Collected batch, metrics of `observe` and next state of each step."""
        return self._walked[0]

    @property
    def sampled(self) -> list[int]:
        """Tokens that the actor sampled in each of its calls."""
        return self._walked[1]

    def walk(
        self, chain: Experience, steps: int = 1, seed: int = 0, **options: Any
    ) -> list[numpy_actor.Walked]:
        """Steps of a chain on the task."""
        own = numpy_actor.setting(chain, self.task, seed=seed)
        return numpy_actor.walk(chain, steps=steps, own=own, **options)


def require_same(one: Collected, two: Collected) -> None:
    """Requires two collections to have the same bytes, except for wall times."""
    _require_equal("rollouts", one.batch.rollouts, two.batch.rollouts)
    require(one.batch.requests == two.batch.requests, "the prompt requests differ")
    # As text: an unknown number of a grade is NaN, which does not equal itself.
    require(str(one.batch.grades) == str(two.batch.grades), "the grades differ")
    require(one.metrics == two.metrics, "the metrics differ")
    _require_equal("the state", one.state, two.state)


def _require_equal(name: str, one: Any, two: Any) -> None:
    (left, tree), (right, other) = map(jax.tree_util.tree_flatten_with_path, (one, two))
    require(tree == other, f"{name} has another structure")
    for (path, x), (_, y) in zip(left, right, strict=True):
        place = f"{name}{jax.tree_util.keystr(path)}"
        x, y = np.asarray(x), np.asarray(y)
        require(x.shape == y.shape, f"{place} has the shapes {x.shape} and {y.shape}")
        # NaN equals itself here; texts and objects are compared as they are.
        same = (x == y) | ((x != x) & (y != y))
        first = tuple(int(n[0]) for n in np.nonzero(~same)) if not np.all(same) else ()
        require(bool(np.all(same)), f"{place} differs, at {list(first)} {x[first]} and {y[first]}")


def resume(case: Case) -> None:
    """A run that stops after any step continues with the same bytes."""
    whole = case.steps
    for stop in range(1, STEPS):
        # The state goes through a file, as numpy arrays only. It is equal after the next step, so
        # all further steps are equal.
        state = jax.tree.map(lambda x: np.array(x), whole[stop - 1][2])
        ((two, metrics_again, after_again),) = case.walk(case.make(), first=stop, state=state)
        one, metrics, after = whole[stop]
        require_same(one, two)
        require(metrics == metrics_again, "the metrics of observe differ")
        _require_equal("the state after observe", after, after_again)


def state(case: Case) -> None:
    """A step changes neither the names of the state's arrays nor their shapes and dtypes."""
    first = case.chain.init(numpy_actor.setting(case.chain, case.task))
    shapes = [
        jax.tree.map(lambda x: (np.shape(x), np.asarray(x).dtype), one)
        for one in (first, case.steps[-1][2])
    ]
    require(shapes[0] == shapes[1], f"init returns {shapes[0]}, four steps {shapes[1]}")


def rows(case: Case) -> None:
    """Rows are whole groups of graded responses, and nothing on the mask is after the end."""
    own = numpy_actor.setting(case.chain, case.task)
    parts = (case.chain.draw[1], *case.chain.stages.values())
    most = own.prompts * own.samples * np.prod([part.most for part in parts])
    for collected, _, _ in case.steps:
        batch = collected.batch
        rollouts = batch.rollouts
        counts = len(batch), len(batch.grades), len(rollouts.group)
        require(len(set(counts)) == 1, f"rows, grades and groups are {counts}")
        require(0 < len(batch) <= most, f"a batch has {len(batch)} rows, at most {most:g} allowed")
        require(bool(np.all(np.diff(rollouts.group) >= 0)), "the rows of a group are apart")
        require(
            np.array_equal(rollouts.rollout_id, np.arange(len(batch))), "rollout_id is not in order"
        )
        longest = int(np.max(rollouts.length))
        require(longest <= own.response_tokens, f"a response has {longest} tokens")
        places = np.arange(rollouts.mask.shape[1])[None]
        outside = np.any(rollouts.mask & (places >= rollouts.length[:, None]))
        require(not outside, "the mask has tokens after the end of a response")


def outcome(case: Case) -> None:
    """The outcome is the verifier's."""
    for collected, _, _ in case.steps:
        batch = collected.batch
        outcomes = np.asarray([grade.outcome or 0.0 for grade in batch.grades], np.float32)
        same = np.array_equal(batch.rollouts.outcome, outcomes)
        require(same, f"outcomes are {batch.rollouts.outcome}, the grades are {outcomes}")


def counted_tokens(case: Case) -> None:
    """The number of sampled tokens in the metrics is the number that the actor sampled."""
    counted = sum(collected.metrics["sampled_tokens"] for collected, _, _ in case.steps)
    sampled = sum(case.sampled)
    require(counted == sampled, f"metrics count {counted} tokens, the actor sampled {sampled}")


def seed(case: Case) -> None:
    """Another seed produces another batch."""
    one, two = case.steps[0][0], case.walk(case.make(), seed=1)[0][0]
    # A batch of stored solutions, which are all equal here, differs by its prompts.
    batches = [
        ([request.number for request in found.batch.requests], found.batch.rollouts.tokens.tolist())
        for found in (one, two)
    ]
    require(batches[0] != batches[1], "two seeds give the same prompts and tokens")


LAWS = laws_of(resume, state, rows, outcome, counted_tokens, seed)


def check(make: Callable[[], Experience], task: Task | None = None) -> dict[str, str]:
    """Checks an experience against all laws, in four steps of four prompts with four responses.

    Args:
      make: () -> a new chain at each call.
      task: a task with the fields that the parts read; None: `numbered_task`.
    Returns:
      For each law "" if it holds, else the reason.
    """
    return hold(LAWS, Case(make) if task is None else Case(make, task))
