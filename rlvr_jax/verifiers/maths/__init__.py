"""Mathematical answers: read, compared, decided exactly.

`verifier`: one response (`verify_math`), batches and options (`MathVerifier`), `check`.
`extract`: from a response to its final answer. `notation` writes that in one way (tables in
  `signs`); `parsing` reads it, with `numerals`, `units`, `words`, `prose`, `qualifiers`, `lists`,
  `grouped`, `equations`, `regions`, to `values`.
`comparison`: when two are equal, with `quantities`, `relations`, `qualifiers`, `constants`,
  `renaming`; `gradable`: which golds can be graded.
`formulas`: reads and compares formulas; `algebra` compares them in a worker.
"""

from rlvr_jax.verifiers.maths.extract import final_answer
from rlvr_jax.verifiers.maths.verifier import MathVerifier, check, verify_math

__all__ = ["MathVerifier", "check", "final_answer", "verify_math"]
