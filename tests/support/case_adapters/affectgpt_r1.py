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
    if found.outcome is None:
        return None
    # The price is the difference of f1 and reward, which the cases have.
    return {name: value for name, value in found.info.items() if name != "price"}
