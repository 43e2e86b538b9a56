from rlvr_jax.verifiers.texts import instruction_following as following


def verdict(response, gold):
    return following.followed(gold["check"], gold["arguments"], following.extract(response) or "")
