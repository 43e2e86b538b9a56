from rlvr_jax.verifiers.puzzles import combinatorial

OPTIMA = {"lis": combinatorial.increasing, "schedule": combinatorial.schedule}


def verdict(given, gold):
    if isinstance(gold, str):
        optimum = OPTIMA[gold](given)
        return {"size": optimum.size, "optima": optimum.optima}
    return dict(combinatorial.check(given, gold).info)
