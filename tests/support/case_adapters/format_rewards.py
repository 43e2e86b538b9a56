from rlvr_jax.verifiers.texts import format_rewards


def verdict(response, opened):
    found = format_rewards.check(response, opened)
    return {
        "F1": found.info["exact_tags"],
        "F3": found.info["tag_fraction"],
        "F4": found.info["think_format"],
        "ours": found.outcome,
    }
