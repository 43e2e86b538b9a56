from rlvr_jax.verifiers.programs import sql_verifier

SECONDS = 0.3  # one case never ends


def verdict(response, gold, engine="sqlite"):
    sql = sql_verifier.extract(response)
    if sql is None:
        return "error"
    return sql_verifier.check(sql, gold, engine=engine, seconds=SECONDS).stage
