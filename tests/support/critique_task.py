"""A task with stored critiques to imitate, for tests."""

import training_runs

from rlvr_jax.tasks import Task
from rlvr_jax.tasks.derived.critiques import KIND, critique_prompts, grade_critiques

WORDS = ("Conclusion:", "right", "wrong", "[END]")


def critiques():
    """One sum with right and wrong answers, each with a critique."""
    sums = training_runs.sums()
    problem = sums.train[0]
    candidates = [str(number) for number in range(6)]
    outcomes = [float(int(text) == problem.answer) for text in candidates]
    texts = [
        f"{problem.text} {problem.answer} Conclusion: {'right' if out else 'wrong'} [END]"
        for out in outcomes
    ]
    train = critique_prompts(problem.text, candidates, outcomes, texts, " ", " =")

    def verify(prompts, responses):
        pairs = list(zip(prompts, responses, strict=True))
        told = [
            grade_critiques([p], [r]) if p.kind == KIND else sums.verify([p], [r]) for p, r in pairs
        ]
        return [grade for one in told for grade in one]

    return Task("critiques", train, sums.test, verify, 12)
