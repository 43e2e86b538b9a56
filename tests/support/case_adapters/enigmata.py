from rlvr_jax.verifiers import Check, examine

ENIGMATA = "rlvr_jax.verifiers.puzzles.enigmata"


def verdict(response, gold):
    return int(examine(Check(f"{ENIGMATA}:check", f"{ENIGMATA}:extract"), response, gold).outcome)
