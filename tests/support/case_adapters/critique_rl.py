from rlvr_jax.verifiers import Check, examine
from rlvr_jax.verifiers.texts import critique_rl

CRITIQUE = "rlvr_jax.verifiers.texts.critique_rl"


def verdict(response, gold):
    found = examine(Check(f"{CRITIQUE}:check", f"{CRITIQUE}:extract"), response, gold)
    return {"ours": found.outcome, "theirs": critique_rl.released(response, gold)}
