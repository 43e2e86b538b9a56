from rlvr_jax.verifiers import Check, examine

COUNTDOWN = "rlvr_jax.verifiers.puzzles.countdown"


def verdict(response, gold):
    return int(examine(Check(f"{COUNTDOWN}:check", f"{COUNTDOWN}:extract"), response, gold).outcome)
