"""One chain for each public factory of the experience: what the contract test walks.

A factory of `curricula`, `draws` or `stages` without a case here fails the contract.
"""

import paper_part_cases
from paper_part_cases import OF_ITSELF
from small_environments import Counting

from rlvr_jax.experience import (
    PLAIN,
    add_traces,
    all_incorrect,
    branch_rounds,
    branch_turns,
    cells_by_kind,
    column,
    experience,
    give_again,
    grade_also,
    imitate_turns,
    judge,
    mask_truncated,
    plain,
    queued,
    queued_turns,
    redraw,
    refill,
    request_verdict,
    score_steps,
    select_rows,
    shape,
    show_sibling,
    shuffled_epochs,
    signed_outcome,
    turns,
    uniform,
    weighted,
)
from rlvr_jax.experience.views import hint
from rlvr_jax.tasks import Grade


def shortest(batch, rows, number, turn):
    del turn
    order = batch.rollouts.length[rows].argsort(kind="stable")
    return rows[order[:number]]


def counted(prompts, responses):
    """A second verifier: how many words there are, and no verdict on answers without any."""
    del prompts
    numbers = [len(response.text.split()) for response in responses]
    return [Grade(float(n > 3) if n else None, info={"words": float(n)}) for n in numbers]


CASES = paper_part_cases.CASES | {
    "shuffled_epochs": lambda: experience(shuffled_epochs()),
    "cells_by_kind": lambda: experience([shuffled_epochs(), cells_by_kind()]),
    "plain": lambda: experience(draw=plain(temperature=0.7)),
    "branch_rounds": lambda: experience(
        draw=branch_rounds(tokens=2, weight=1.0, fraction=0.5, top=3, window=2)
    ),
    "branch_rounds(probed)": lambda: experience(
        draw=branch_rounds(tokens=2, penalty=0.2, sensitivity=0.5, top=3, window=2)
    ),
    "branch_turns": lambda: experience(
        draw=branch_turns(Counting(), weight=1.0, base=0.8, top=3, window=2)
    ),
    "branch_turns(probed)": lambda: experience(
        draw=branch_turns(Counting(judges=True), penalty=0.2, sensitivity=0.5, top=3, window=2)
    ),
    "queued": lambda: experience(draw=queued(staleness=2, redundancy=1, window=0.3)),
    "turns": lambda: experience(draw=turns(Counting())),
    "turns(judged)": lambda: experience(draw=turns(Counting(judges=True))),
    "turns(short)": lambda: experience(draw=turns(Counting(), turn_tokens=3)),
    "queued_turns": lambda: experience(draw=queued_turns(Counting(), staleness=2)),
    "redraw": lambda: experience(stages=[redraw(all_incorrect, hint(0.5))]),
    "redraw_again": lambda: experience(
        stages=[redraw(all_incorrect, hint(fraction)) for fraction in (0.25, 0.5)]
    ),
    "refill_redrawn": lambda: experience(
        stages=[refill(uniform, rounds=3, stages=[redraw(all_incorrect, hint(0.5), trained=PLAIN)])]
    ),
    "redraw_append": lambda: experience(stages=[redraw(all_incorrect, hint(0.5), "append")]),
    "refill": lambda: experience(stages=[refill(uniform, rounds=3)]),
    "mask_truncated": lambda: experience(stages=[mask_truncated()]),
    "shape": lambda: experience(stages=[shape(signed_outcome)]),
    "shape_of_rewards": lambda: experience(stages=[shape(weighted([1.0, 0.5]), rewards=2)]),
    "select_rows": lambda: experience(stages=[select_rows(shortest, oversampling=2)]),
    "add_traces": lambda: experience(stages=[add_traces()]),
    "show_sibling": lambda: experience(stages=[show_sibling()]),
    "imitate_turns": lambda: experience(stages=[imitate_turns(Counting())]),
    "score_steps": lambda: experience(stages=[score_steps()]),
    "judge": lambda: experience(
        stages=[judge(OF_ITSELF), redraw(all_incorrect, hint(0.5)), shape(column(0))]
    ),
    "give_again": lambda: experience(stages=[give_again(), refill(uniform, 2), shape(column(0))]),
    "grade_also": lambda: experience(
        stages=[grade_also(counted, ["words"], "long"), refill(uniform, 2), shape(column(0))]
    ),
    "request_verdict": lambda: experience(stages=[request_verdict(["1", "2"], "sure?")]),
}
"""By factory; a word behind its name says which way it is used."""
