"""Tasks whose answers are texts, for methods that are paid for them."""

import training_runs

from rlvr_jax.tasks import Grade, Prompt, Task


def ended(prompts, responses):
    """What a task without an opinion says: whether there is an answer at all."""
    del prompts
    return [Grade(float(bool(one.text.strip()))) for one in responses]


def lists():
    """Lists of words, which are numbers here."""
    prompts = [Prompt(f"{a} + {b} =", f"{a}, {b}") for a in range(5) for b in range(4)]
    return Task("lists", prompts[4:], prompts[:4], ended, training_runs.BUDGET)


def counts():
    """Questions about a map: how many, of two maps, the easy ones first."""

    def asked(a, b):
        size = "easy" if a + b < 5 else "hard"
        return Prompt(f"{a} + {b} =", {"type": "count", "map": size, "gold": a}, size)

    prompts = [asked(a, b) for a in range(8) for b in range(3)]
    return Task("counts", prompts[4:], prompts[:4], ended, training_runs.BUDGET)


def constrained():
    """Sums of which every second has a soft constraint."""
    sums = training_runs.sums()

    def with_soft(split):
        return [
            Prompt(p.text, p.answer, p.kind, p.gold, meta={"soft": ["short"]} if n % 2 else {})
            for n, p in enumerate(split)
        ]

    return Task(
        "constrained", with_soft(sums.train), sums.test, training_runs.verify, training_runs.BUDGET
    )
