"""A draw of trees, walked with the actor of numpy."""

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor


def walked(draw, steps=4, samples=4, **changes):
    chain = experience(draw=draw, **changes)
    own = numpy_actor.setting(chain, samples=samples)
    return [found for found, _, _ in numpy_actor.walk(chain, own=own, steps=steps)]
