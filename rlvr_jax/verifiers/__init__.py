"""Verifiers: text in, grade out. The text is a model's and is taken for hostile.

No text of a response raises here or runs in this process, and every grade arrives within a time
limit. The subpackage knows neither prompts nor tasks, and imports the standard library and the
sandbox only (engines are loaded where they are needed).

  `pool`: `WorkerPool` runs a function on JSON jobs in limited processes of the sandbox.
  `maths`: mathematical answers: `verify_math` for one response, `MathVerifier` for batches and
    options, `check` for a `Check`, `final_answer` for the answer of a response. `report` runs it
    on files of cases, or measures its speed.
  `tags`: `tags` reports on the format; `prefilled_tags` finds the tags that a chat template has
    opened.
  `puzzles`: generators and checks of puzzles; `texts`: rules about texts; `programs`: answers that
    are run, in the sandbox or by an engine. `answers` finds the answer of a response in a tag or a
    fence, `fences` the code of a language; `exact` evaluates arithmetic.
  `checks`: `Check` names the functions that read and compare an answer. `grade`: `Grade`, the
    result of every verifier.
"""

from rlvr_jax.verifiers.checks import Check, examine
from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.maths import MathVerifier, final_answer, verify_math
from rlvr_jax.verifiers.pool import Result, WorkerPool

__all__ = [
    "Check",
    "Grade",
    "MathVerifier",
    "Result",
    "WorkerPool",
    "examine",
    "final_answer",
    "verify_math",
]
