"""Traces of the base model of expressions.

Half of the prompts are questions, half request a proposal. An answer is correct with probability
`SKILL`, else that of another program. A proposal is a random program with inputs, with an extra
word with probability `MALFORMED`.
"""

from random import Random

from rlvr_jax.experiments.base_traces.rows import Trace
from rlvr_jax.tasks.worlds.expressions import EXPRESSIONS, random_program
from rlvr_jax.tasks.worlds.triplets import KINDS, split

SKILL, MALFORMED = 0.5, 0.1


def expression_traces(count: int, seed: int) -> list[Trace]:
    """Random questions in the world of expressions and a random response to each."""
    random, traces = Random(seed), []
    for _ in range(count):
        text, response = expression_trace(random)
        traces.append(Trace(text.split(), [(response.split(), False)]))
    return traces


def expression_trace(random: Random) -> tuple[str, str]:
    """A question in the world of expressions, and one random response to it."""
    kind = random.choice(KINDS)
    number = random.choice((2, 4)) if kind == "induction" else 1
    triplet, other = random_program(random, number), random_program(random, number)
    if random.random() < 0.5:
        references = [random_program(random, number) for _ in range(random.randint(1, 3))]
        inputs = " ".join(map(str, triplet.inputs))
        response = f"{triplet.program} ; {inputs}"
        if random.random() < MALFORMED:
            response += " ;"
        return EXPRESSIONS.request(kind, references), response
    shown, _ = split(kind, triplet)
    chosen = triplet if random.random() < SKILL else other
    answers = {
        "deduction": chosen.outputs[0],
        "abduction": chosen.inputs[0],
        "induction": chosen.program,
    }
    return EXPRESSIONS.show(kind, shown), str(answers[kind])
