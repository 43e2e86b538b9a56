"""Experience: how a batch comes to be, from a task's prompts to graded rollouts.

    experience(
        curriculum=shuffled_epochs(),
        draw=plain(),
        stages=[refill(uniform, rounds=3), mask_truncated()],
    )

is an `Experience`: `collect(actor, state, step, setting)` gives the batch of a step, `observe`
tells its parts what became of it. `Curriculum`, `Draw` and `Stage` are what it is made of, `Ask`
and `View` what the policy is asked, `Batch` what flows. Parts talk to an `Actor` alone: `RunActor`
is the in-process sampler, verifier and scorer; a page of numpy can be another. `evaluate` asks
held-out prompts.
"""

from rlvr_jax.experience import curricula, draws, rewards, stages
from rlvr_jax.experience.actor import RunActor
from rlvr_jax.experience.asks import PLAIN, Ask, Shown, View
from rlvr_jax.experience.batch import Batch, concatenate
from rlvr_jax.experience.chain import Collected, Experience, experience
from rlvr_jax.experience.curricula import *
from rlvr_jax.experience.draws import *
from rlvr_jax.experience.evaluation import evaluate, held_out_indices
from rlvr_jax.experience.parts import Actor, Curriculum, Draw, Setting, Stage, Turn
from rlvr_jax.experience.rewards import *
from rlvr_jax.experience.sampling import Sampler
from rlvr_jax.experience.stages import *
from rlvr_jax.types.parts import part as part

__all__ = [
    "PLAIN",
    "Actor",
    "Ask",
    "Batch",
    "Collected",
    "Curriculum",
    "Draw",
    "Experience",
    "RunActor",
    "Sampler",
    "Setting",
    "Shown",
    "Stage",
    "Turn",
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
