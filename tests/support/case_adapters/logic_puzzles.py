from rlvr_jax.verifiers import Check, examine
from rlvr_jax.verifiers.puzzles import knights

ROOM = "rlvr_jax.verifiers.puzzles"


def verdict(response, gold):
    puzzle = "knights" if isinstance(gold, dict) else "zebra"
    check = Check(f"{ROOM}.{puzzle}:check", f"{ROOM}.{puzzle}:extract")
    found = examine(check, response, gold)
    if puzzle == "zebra":
        return {"cells": found.info["cells"], "exact": found.outcome}
    return {"logic_rl": knights.logic_rl(response, gold), "ours": found.outcome}
