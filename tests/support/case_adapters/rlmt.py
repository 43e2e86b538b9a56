from rlvr_jax.verifiers.texts.rlmt import visible


def verdict(given, gold):
    return {"normal": visible(given), "strict": visible(given, strict=True)}
