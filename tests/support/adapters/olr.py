"""OLR's vectors: a column of the tokens makes the answers of an epoch, a group is a prompt."""

import golden_vectors as golden
import numpy as np

from rlvr_jax.methods.rewards.olr import judged_label

LEFT_OUT = dict.fromkeys(("slope", "history_mode"), "inside of the test that `replaced` compares")


def outputs(case, hyper):
    data = golden.inputs(case)
    tokens, size = data["tokens"], int(data["group_size"])
    epochs = tokens.shape[1]
    answers = np.where(tokens % (epochs + 1) <= np.arange(epochs), 0, tokens % 3)
    grouped = answers.reshape(-1, size, epochs)
    columns = {name: [] for name in ("majority", "rate", "replaced")}
    for group in grouped:
        told = []
        for epoch in range(epochs):
            before = [verdict.majority for verdict in told], [verdict.rate for verdict in told]
            told.append(
                judged_label(group[:, epoch], *before, epoch, hyper["start"], hyper["slope"])
            )
        for name, column in columns.items():
            column.append([getattr(verdict, name) for verdict in told])
    found = {name: np.array(column) for name, column in columns.items()}
    given = (np.arange(len(grouped)) + 1)[:, None] % 3
    label = np.where(found["replaced"], found["majority"], given)
    return {
        "answers": answers,
        "majority": found["majority"],
        "majority_rate": found["rate"],
        "replaced": found["replaced"],
        "label": label,
        "rewards": answers == np.repeat(label, size, axis=0),
    }
