"""A published method: what it changes of a step, and the card that tells of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import InitVar, dataclass
from typing import Any

from rlvr_jax.alike import Alike

__all__ = ["Method", "Recipe"]

_REPLACED = {
    "sampling": "experience(draw=plain(temperature=…))",
    "selection": "experience(stages=[refill(uniform, rounds=…)])",
    "reward": "experience(stages=[shape(…)])",
    "guidance": "experience(stages=[…])",
}


@dataclass(frozen=True, eq=False)
class Recipe(Alike):
    """A published method: what it changes of a step. None means: as in the plain algorithm.

    Recipes are equal where they were made alike: by one method, with equal hyperparameters. So are
    their parts, objectives and experiences.

    Fields:
      objective: `rlvr_jax.objectives.Objective`, the loss.
      experience: `rlvr_jax.experience.Experience`, how a batch comes to be.
      critic: `rlvr_jax.objectives.Critic`, how training fits the critic whose estimates the
        objective reads as `rollouts.values`; or a `Scorer`, whose scores it reads as
        `rollouts.process_reward` or `rollouts.critic_values`. None: it has none, or training cannot
        make it.
      teacher: whose log-probs and distributions the objective compares with (`teacher_logp`, `kl`,
        `reverse_kl`, `js`): "start", the weights that the run begins with; "average:0.99", the
        exponential average of the weights with that decay; or the folder of another policy with the
        same tokens and shape. None: the weights that sampled the batch, for divergences alone.
    Raises:
      ValueError: a slot of earlier versions (sampling, selection, reward, guidance), by what it was
        replaced.
    """

    objective: Any
    experience: Any = None
    critic: Any = None
    teacher: str | None = None
    sampling: InitVar[Any] = None
    selection: InitVar[Any] = None
    reward: InitVar[Any] = None
    guidance: InitVar[Any] = None

    def __post_init__(self, sampling: Any, selection: Any, reward: Any, guidance: Any) -> None:
        given = dict(sampling=sampling, selection=selection, reward=reward, guidance=guidance)
        for name, value in given.items():
            if value is not None:
                raise ValueError(
                    f"Recipe: {name} must be a part of its experience now,"
                    f" experience={_REPLACED[name]}, got {name}={value!r}"
                )


@dataclass(frozen=True)
class Method:
    """The card of a method.

    Fields:
      recipe: the factory.
      title, url: of the paper.
      changes: the parts of an RL step it changes, of "advantage", "weight", "mask", "surrogate",
        "regularizer", "aggregation", "reward", "selection", "sampling", "curriculum",
        "guidance", "optimizer"; comma-separated.
      evidence: "exact" if it agrees with the authors' or a maintained code, "reconstruction" if
        made from the paper alone, "own" for a method that is not published.
      left_out: what the paper does beyond the recipe, a phrase; "" if nothing.
      reports: what its authors report, a phrase or two; "" where nobody wrote it down here.
      traps: what goes wrong with it, and in other codes of that name; "" likewise.
    """

    recipe: Callable[..., Recipe]
    title: str
    url: str
    changes: str = ""
    evidence: str = "exact"
    left_out: str = ""
    reports: str = ""
    traps: str = ""
