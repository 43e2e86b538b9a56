"""Every actor of the library has the methods of the protocol, and a stage gets no others."""

import inspect

import jax
import pytest

from rlvr_jax.experience import Actor, RunActor, Stage, experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.stage_actor import CountedActor, StageActor

METHODS = {
    name: method
    for name, method in vars(Actor).items()
    if inspect.isfunction(method) and name[0] != "_"
}
ACTORS = (RunActor, numpy_actor.NumpyActor, CountedActor, StageActor)


def seen_by(**declared):
    """The actor of a stage, and the batch that it was given."""
    seen = []

    def apply(batch, actor, state, turn):
        seen.append((actor, batch, turn))
        return batch, state, {}

    numpy_actor.walk(experience(stages=[Stage(apply, **declared)]), steps=1)
    return seen[0]


@pytest.mark.parametrize("actor", ACTORS, ids=lambda actor: actor.__name__)
def test_an_actor_has_each_method_of_the_protocol_with_its_signature(actor):
    assert len(METHODS) == 9
    for name, method in METHODS.items():
        own = getattr(actor, name)
        assert own is not method, f"{actor.__name__} lacks {name}"
        found, wanted = (
            [(p.name, p.kind, p.default) for p in inspect.signature(one).parameters.values()]
            for one in (own, method)
        )
        assert found == wanted, name


@pytest.mark.parametrize("missing", METHODS)
def test_an_actor_without_a_method_cannot_be_made(missing):
    own = {name: lambda self: None for name in METHODS if name != missing}
    with pytest.raises(TypeError, match=missing):
        type("Engine", (Actor,), own)()


@pytest.mark.parametrize("at_grading", [False, True])
def test_a_stage_sees_the_methods_of_the_protocol_only(at_grading):
    actor, _, _ = seen_by(at_grading=at_grading)
    assert {name for name in dir(actor) if name[0] != "_"} == METHODS.keys()
    assert not hasattr(actor, "tokenizer")  # of the actor below


def test_a_stage_does_not_set_the_sampling_of_the_draw():
    actor, batch, _ = seen_by()
    for options in ({"sampling": {"top_k": 1}}, {"constants": 1}):
        (name,) = options
        with pytest.raises(ValueError, match=f"draw: {name} must be None in a stage"):
            actor.draw(batch.requests[:1], jax.random.key(0), **options)


def test_a_further_round_is_sampled_with_the_key_of_the_first_responses():
    actor, batch, turn = seen_by()
    (first,) = {request.number: request for request in batch.requests[:4]}.values()
    again = actor.draw([first], turn.setting.sampler_key(turn.step))
    assert again.rollouts.tokens.tolist() == batch.rollouts.tokens[:4].tolist()


class Engine:
    """An actor that is no subclass of the protocol."""

    def __init__(self):
        for name in METHODS:
            setattr(self, name, getattr(numpy_actor.NumpyActor(), name))


def test_any_object_with_the_methods_is_an_actor():
    chain = experience()
    ((one, _, _),), ((other, _, _),) = (
        numpy_actor.walk(chain, actor, steps=1) for actor in (Engine(), None)
    )
    assert one.batch.rollouts.tokens.tolist() == other.batch.rollouts.tokens.tolist()
