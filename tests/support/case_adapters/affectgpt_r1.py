from rlvr_jax.verifiers.texts import affectgpt_r1

WORDS = {
    "joy": "happy joyful glad",
    "sadness": "sad gloomy",
    "anger": "angry furious irritated",
    "fear": "afraid nervous",
}
WHEEL = {word: cluster for cluster, words in WORDS.items() for word in words.split()}


def verdict(answer, gold):
    found = affectgpt_r1.check(answer, gold, wheel=WHEEL)
    return None if found.outcome is None else dict(found.info)
