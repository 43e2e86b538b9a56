"""Mathematical answers: they are read as values and compared exactly.

`verifier` has the functions for users: `verify_math`, `MathVerifier`, `check`.
`extract` finds the final answer of a response. `notation` writes it in one form (tables in
`signs`). `parsing` reads that form as one of `values`. It uses `numerals`, `units`, `words`,
`prose`,
  `qualifiers`, `lists`, `grouped`, `equations`, `regions`.
`comparison` decides whether two values are equal. It uses `quantities`, `relations`, `qualifiers`,
  `constants`, `renaming`. `gradable` decides which golds can be graded.
`formulas` reads and compares formulas. `algebra` compares them in a worker.
"""

from rlvr_jax.verifiers.maths.extract import final_answer
from rlvr_jax.verifiers.maths.verifier import MathVerifier, check, verify_math

__all__ = ["MathVerifier", "check", "final_answer", "verify_math"]
