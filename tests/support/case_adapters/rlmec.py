from rlvr_jax.methods.credit.rlmec import edited_places


def verdict(given, gold):
    del gold
    return edited_places(given["original"], given["rewrite"])
