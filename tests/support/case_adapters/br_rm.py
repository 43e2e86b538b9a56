from rlvr_jax.verifiers.texts import br_rm


def verdict(turns, better):
    return br_rm.reward(turns["turn1"], turns["turn2"], better)
