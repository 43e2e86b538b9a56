from rlvr_jax.verifiers.texts.meta_policy import fraction_of_points, parse_score, sum_of_points


def verdict(answers, maxima):
    scores = [parse_score(text, most) for text, most in zip(answers, maxima, strict=False)]
    total = sum_of_points(scores, maxima)
    return None if total is None else {"sum": total, "mean": fraction_of_points(scores, maxima)}
