"""Experience: how a batch comes to be, from a task's prompts to graded rollouts.

`Sampler` draws groups of responses and has them graded; `Graded` is what it gives; `evaluate` asks
held-out prompts.
"""

from rlvr_jax.experience.batch import Graded, concatenate
from rlvr_jax.experience.evaluation import evaluate
from rlvr_jax.experience.sampling import Sampler

__all__ = ["Graded", "Sampler", "concatenate", "evaluate"]
