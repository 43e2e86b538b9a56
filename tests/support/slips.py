"""Parts, tasks and methods of a user's own that have a slip in them."""

import dataclasses

import jax.numpy as jnp
import numpy as np
from small_environments import Answering

from rlvr_jax.experience import experience, turns
from rlvr_jax.experience.parts import Curriculum, Draw, Stage
from rlvr_jax.methods import recipe
from rlvr_jax.objectives import (
    Transform,
    group_normalized,
    objective,
    reinforce,
    token_mean,
)
from rlvr_jax.tools.environment import Reply
from rlvr_jax.types import Recipe
from rlvr_jax.types.parts import part


def _grpo(**parts):
    return Recipe(recipe("grpo").objective, experience(**parts))


def _slip(kind, apply, **fields):
    """A part of a kind with the label slip()."""

    def slip():
        return kind(apply, **fields)

    slip.__annotations__["return"] = kind
    return part(slip)()


def _staged(apply, **fields):
    return _grpo(stages=[_slip(Stage, apply, **fields)])


def batch_alone():
    return _staged(lambda batch, actor, state, turn: batch)


def two_things():
    return _staged(lambda batch, actor, state, turn: (batch, state))


def nothing():
    return _staged(lambda batch, actor, state, turn: None)


def no_batch():
    return _staged(lambda batch, actor, state, turn: (batch.rollouts, state, {}))


def metrics_in_a_list():
    return _staged(lambda batch, actor, state, turn: (batch, state, [1.0]))


def metric_of_a_row():
    return _staged(lambda batch, actor, state, turn: (batch, state, {"x": np.ones(3)}))


def _divides(*_):
    return 1 / 0


def stage_raises():
    return _staged(_divides)


def stage_broadcasts():
    return _staged(lambda batch, actor, state, turn: np.zeros(3) + np.zeros(4))


def stage_asks_jax():
    return _staged(lambda batch, actor, state, turn: jnp.zeros((2, 3)) @ jnp.zeros((2, 3)))


def late():
    def apply(batch, actor, state, turn):
        if turn.step:
            raise ValueError("no such thing")
        return batch, state, {}

    return _staged(apply)


def stage_observes():
    return _staged(lambda batch, actor, state, turn: (batch, state, {}), observe=_divides)


def draw_raises():
    return _grpo(draw=_slip(Draw, _divides))


def draw_alone():
    def sampled(requests, actor, state, turn):
        return actor.draw(requests, turn.key)

    return _grpo(draw=_slip(Draw, sampled))


def curriculum_raises():
    return _grpo(curriculum=_slip(Curriculum, _divides))


def curriculum_gives_prompts():
    def propose(requests, state, turn):
        return list(turn.setting.task.train[:4])

    return _grpo(curriculum=_slip(Curriculum, propose))


def init_raises():
    return _staged(_divides, init=_divides)


class Broken(Answering):
    def reply(self, state, text):
        return Reply(state, {}["nothing"])


def environment_raises():
    return _grpo(draw=turns(Broken(stops=("=",))))


def loss_raises():
    own = _slip(Transform, _divides)
    made = objective(
        group_normalized(), transforms=[own], surrogate=reinforce(), aggregation=token_mean()
    )
    return Recipe(made)


def loss_broadcasts():
    def apply(signals, context, state):
        weight = signals.weight + jnp.ones(5, jnp.float32)
        return dataclasses.replace(signals, weight=weight), state, {}

    own = _slip(Transform, apply)
    made = objective(
        group_normalized(), transforms=[own], surrogate=reinforce(), aggregation=token_mean()
    )
    return Recipe(made)
