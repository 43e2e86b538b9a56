from rlvr_jax.verifiers.texts.words import decimal_of


def verdict(text, gold):
    del gold
    effort = decimal_of(text, 1.0)
    return 0.5 if effort is None else effort
