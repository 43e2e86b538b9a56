"""Laws of every loss, and the check of one objective against them.

    from rlvr_jax.objectives.laws import check

    for law, reason in check(my_objective).items():
        print(law, reason or "holds")

A law is a function of a `Case` (an objective on a batch) that raises `rlvr_jax.laws.Broken`.
tests/methods/test_contract.py checks the library's objectives by these laws.
`python -m rlvr_jax.methods my_file:my_method --check` prints the result on the command line.
"""

import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.laws import hold, laws_of
from rlvr_jax.objectives.algebra.core import Objective
from rlvr_jax.objectives.laws import numbers, rows
from rlvr_jax.objectives.laws.cases import Case
from rlvr_jax.types import STATISTICS, Method, Rollouts, TokenStats
from rlvr_jax.types.rollouts import kind_and_axes

__all__ = ["LAWS", "Case", "check", "example"]

LAWS = laws_of(
    rows.order_of_rows,
    rows.padding,
    rows.mask,
    rows.empty_rows,
    rows.supervised_rows,
    rows.empty_batch,
    rows.micro_batches,
    numbers.groups_of_one,
    numbers.equal_rewards,
    numbers.slope,
    numbers.first_ratio,
    numbers.bad_grade,
    numbers.structure,
    numbers.float32,
    numbers.decided_once,
    numbers.metrics,
    numbers.random_key,
)


def check(objective: Objective, card: Method | None = None) -> dict[str, str]:
    """Checks an objective against all laws, on a random batch of 12 rollouts in three groups.

    Args:
      objective: the loss.
      card: declarations of the method; None: the defaults of `Method`.
    Returns:
      For each law "" if it holds, else the reason.
    """
    card = Method(lambda: None, "", "") if card is None else card
    with jax.enable_x64(True):
        return hold(LAWS, Case(objective, *example(objective), card))


def example(objective: Objective) -> tuple[TokenStats, Rollouts]:
    """Random float64 statistics and rollouts, with every record that an objective may read.

    Log-probs are in [-3, -0.1], other numbers in [0.1, 0.9], rewards 0 and 1 in every group.
    """
    random = np.random.default_rng(0)
    width, groups, samples = 6, 3, 4
    count = groups * samples
    length = np.array([6, 3, 1, 4, 6, 2, 5, 3, 4, 6, 2, 5])
    mask = np.arange(width) < length[:, None]
    number = dict(objective.options).get("top_k", 3)
    records = dict(objective.records)
    sizes = {
        "B": count,
        "T": width,
        "P": 2,
        "Q": 2,
        "V": 7,
        "K": 3,
        "k": number,
        "D": 4,
        "E": 1,
        "F": 5,
    }

    def values(name, kind, axes):
        shape = [sizes[axis] for axis in axes]
        if kind == "Bool":
            return random.uniform(size=shape) < 0.5
        if kind == "Int":
            return np.sort(random.integers(0, 3, shape), axis=-1).astype(np.int32)
        low, high = (-3, -0.1) if "logp" in name else (0.1, 0.9)
        return random.uniform(low, high, shape)

    stats = {}
    for name, entry in STATISTICS.items():
        kind, axes = entry.kind, entry.axes
        if name == "tempered_logp":
            axes = (*axes[:2], "k")
            sizes["k"] = len(records.get("old_tempered_logp", (1.0, 1.0)))
        stats[name] = values(name, kind, axes)
        sizes["k"] = number
    reward = np.tile([1.0, 0.0, 0.0, 1.0], groups)
    known = {
        "tokens": random.integers(0, 9, (count, width)).astype(np.int32),
        "mask": mask,
        "reward": reward,
        "group": np.repeat(np.arange(groups, dtype=np.int32), samples),
        "length": length.astype(np.int32),
        "truncated": length == width,
        "prompt_length": np.full(count, 2, np.int32),
        "behaviour_logp": values("behaviour_logp", "Float", ("B", "T")),
        "entropy": values("entropy", "Float", ("B", "T")),
        "old_logp": stats["logp"] + random.uniform(-0.5, 0.5, mask.shape),
    }
    others = {*STATISTICS, *known, "batch_statistics", "sampled_entropy"}
    for name in sorted(objective.reads - others):
        kind, axes = kind_and_axes(name)
        if name in ("component_rewards", "old_tempered_logp") and name in records:
            wanted = records[name]
            sizes["K"] = wanted if isinstance(wanted, int) else len(wanted)
        known[name] = values(name, kind, axes)
        sizes["K"] = 3
    return jax.tree.map(jnp.asarray, TokenStats.of_arrays(stats)), Rollouts.of_responses(**known)
