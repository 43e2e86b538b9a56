"""A check that tests name, here where workers can import it."""

import time

from rlvr_jax.verifiers import Grade


def after_colon(text, mark=":"):
    _, found, tail = text.partition(mark)
    return tail.strip() if found else None


def equal(answer, gold, offset=0):
    if answer == "raise":
        raise RuntimeError
    if answer == "late":
        time.sleep(60)
    if answer == "unknown":
        return None
    return Grade(
        float(int(answer) + offset == gold),
        answer=answer,
        stage="number",
        info={"digits": len(answer)},
    )
