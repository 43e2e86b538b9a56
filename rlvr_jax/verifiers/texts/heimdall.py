"""Verdicts on solutions: the last line of a response, RIGHT or WRONG, against the truth.

The reasoning before that line is not graded. If half of the solutions are correct, a constant
verdict has a mean reward of one half.

Source: "Heimdall: test-time scaling on the generative verification". The paper's form of a verdict
was not found, so these words are ours.
"""

from rlvr_jax.verifiers.answers import after_thinking


def extract(response: str) -> str | None:
    """Returns "right" or "wrong"; None if the last line with text after the thinking is neither.
    Its letters may have any case, and one full stop may follow."""
    last_line = after_thinking(response).strip().rpartition("\n")[2]
    verdict = last_line.strip().removesuffix(".").lower()
    return verdict if verdict in ("right", "wrong") else None


def check(answer: str, gold: bool) -> float:
    """1 if the verdict agrees with the truth (whether the solution is correct), else 0."""
    return float((answer == "right") == gold)
