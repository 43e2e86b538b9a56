from rlvr_jax.verifiers.texts import rewardmap


def verdict(answer, gold):
    found = rewardmap.check(answer, gold)
    return {"correct": found.outcome, **found.info}
