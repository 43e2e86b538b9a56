"""Traces of the base model of calculations.

Sums and products, half of each, of the train split. With probability `CALL_SHARE`, for any
question, the response calls the calculator and repeats the reply, which is not trained on. A call
has an incorrect number with probability `SLIP`. Other responses are the correct answer only.
"""

from random import Random

from rlvr_jax.experiments.base_traces.rows import Trace
from rlvr_jax.tasks.sums.calculations import KINDS, calculations

CALL_SHARE, SLIP = 0.1, 0.1


def calculation_traces(count: int, seed: int) -> list[Trace]:
    """Random sums and products and a random response to each."""
    random = Random(seed)
    pool = {
        kind: [prompt for prompt in calculations().train if prompt.kind == kind] for kind in KINDS
    }
    traces = []
    for _ in range(count):
        prompt = random.choice(pool[random.choice(list(pool))])
        call, reply = "", ""
        if random.random() < CALL_SHARE:
            a, b = prompt.text[:2], prompt.text[3:5]
            if random.random() < SLIP:
                b = str(random.randint(10, 99))
            value = int(a) + int(b) if prompt.kind == "sum" else int(a) * int(b)
            call, reply = f"[{a}{prompt.text[2]}{b}]", f"{value};"
        answer = reply[:-1] or prompt.gold
        traces.append(Trace(prompt.text, [(call, False), (reply, True), (answer, False)]))
    return traces
