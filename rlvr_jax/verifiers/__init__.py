"""Verifiers: text in, grade out. The text is a model's and is taken for hostile.

Nothing here raises on what a response says or runs it in this process, and every grade arrives
within a time limit. The room knows neither prompts nor tasks, and imports the standard library only
(math-verify and sympy are loaded in workers).

  `pool`: `WorkerPool` runs a function on JSON jobs in limited processes; `worker` is their side.
  `extract`: from a response to its final answer, in one notation.
  `maths`: `verify_math` for one response, `MathVerifier` for batches and options; `parsing` reads
    an answer and `values` compares two.
  `tags`: `tags` reports on the format; `add`, `gate` and `floor` let it count.
"""

from rlvr_jax.verifiers.extract import final_answer
from rlvr_jax.verifiers.maths import MathVerifier, Verdict, verify_math
from rlvr_jax.verifiers.pool import Result, WorkerPool

__all__ = ["MathVerifier", "Result", "Verdict", "WorkerPool", "final_answer", "verify_math"]
