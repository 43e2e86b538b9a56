"""Experience: the chain of parts that turns a task's prompts into a batch of graded rollouts.

    chain = experience(curriculum=shuffled_epochs(), draw=plain(),
                       stages=[refill(uniform, rounds=3), mask_truncated()])
    collected = chain.collect(actor, chain.init(setting), step=0, setting=setting)

`experience` makes an `Experience`. Its `collect` returns the batch of a step, and its `observe`
passes the results of the step to the parts. There are three kinds of parts:

    Curriculum  makes prompt requests (`SampleRequest`), each of a prompt in a `View`
    Draw        samples the responses to the requests: a `Batch`
    Stage       changes the batch before training

Parts use the policy only through an `Actor`. `RunActor` has the sampler, verifier and scorer of a
run; `laws.numpy_actor` is an example in numpy. `evaluate` samples responses to held-out prompts.
"""

from rlvr_jax.experience import curricula, draws, rewards, stages
from rlvr_jax.experience.actor import RunActor
from rlvr_jax.experience.batch import Batch, concatenate
from rlvr_jax.experience.chain import Collected, Experience, experience
from rlvr_jax.experience.curricula import *
from rlvr_jax.experience.draws import *
from rlvr_jax.experience.evaluation import evaluate, held_out_indices
from rlvr_jax.experience.parts import Actor, Curriculum, Draw, RunInfo, Stage, StepContext
from rlvr_jax.experience.requests import PLAIN, SampleRequest, ShownPrompt, View
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
    "ShownPrompt",
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
