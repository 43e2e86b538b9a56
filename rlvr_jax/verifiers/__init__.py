r"""Verifiers: they turn the text of a response into a grade. The text is untrusted.

    from rlvr_jax.verifiers.maths.verifier import verify_math
    verify_math(gold="1/2", response=r"So x is \boxed{\frac{2}{4}}.").outcome    # 1.0

No text of a response raises here or runs in this process, and every grade has a time limit. The
subpackage knows neither prompts nor tasks. It imports only the standard library and the sandbox;
engines are loaded where they are needed.

  `maths`: mathematical answers. `verify_math` grades one response, `MathVerifier` batches with
    options, `check` serves a `Check`. `report` runs it on files of cases.
  `puzzles`: generators and checks of puzzles. `texts`: rules about texts. `programs`: answers that
    are run in the sandbox or by an engine.
  `answers` finds the answer of a response in a tag or a fence. `fences` finds the code of a
    language. `tags` checks the tags of a format. `exact` evaluates arithmetic.
  `Check` names the functions that extract and compare an answer. `Grade` is the result of every
    verifier. `WorkerPool` runs a function on JSON jobs in limited processes.
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
