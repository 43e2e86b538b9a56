"""Experience: how a batch comes to be, from a task's prompts to graded rollouts.

    experience(
        curriculum=shuffled_epochs(),
        draw=plain(),
        stages=[refill(uniform, rounds=3), mask_truncated()],
    )

is an `Experience`: `collect(actor, state, step, setting)` returns the batch of a step, and
`observe` gives its parts the results. Its parts are `Curriculum`, `Draw` and `Stage`. A curriculum
makes `SampleRequest`s, each a prompt in a `View`; a draw and stages pass on a `Batch`. Parts call
an `Actor` only: `RunActor` is the in-process sampler, verifier and scorer, and `laws.numpy_actor`
is an example in numpy. `evaluate` samples responses to held-out prompts.
"""

from rlvr_jax.experience import curricula, draws, rewards, stages
from rlvr_jax.experience.actor import RunActor
from rlvr_jax.experience.batch import Batch, concatenate
from rlvr_jax.experience.chain import Collected, Experience, experience
from rlvr_jax.experience.curricula import *
from rlvr_jax.experience.draws import *
from rlvr_jax.experience.evaluation import evaluate, held_out_indices
from rlvr_jax.experience.parts import Actor, Curriculum, Draw, RunInfo, Stage, StepContext
from rlvr_jax.experience.requests import PLAIN, SampleRequest, Shown, View
from rlvr_jax.experience.rewards import *
from rlvr_jax.experience.sampling import Sampler
from rlvr_jax.experience.stages import *
from rlvr_jax.types.parts import part as part

__all__ = [
    "PLAIN",
    "Actor",
    "SampleRequest",
    "Batch",
    "Collected",
    "Curriculum",
    "Draw",
    "Experience",
    "RunActor",
    "Sampler",
    "RunInfo",
    "Shown",
    "Stage",
    "StepContext",
    "View",
    "concatenate",
    "evaluate",
    "experience",
    "held_out_indices",
    "part",
    *curricula.__all__,
    *draws.__all__,
    *rewards.__all__,
    *stages.__all__,
]
