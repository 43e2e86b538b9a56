# %% [markdown]
# # Rollouts of another framework: what would a loss have trained?
#
# An objective here is a function of `[B, T]` arrays, so it can be asked about tokens that somebody
# else drew. This page reads a JSONL as any engine can write it (tokens, log-probs, a reward, which
# question), has the policy score the tokens, and puts the batch through published losses. It takes
# some seconds on a CPU; nothing is trained.

# %%
import json
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np

from rlvr_jax import policy, tasks
from rlvr_jax.methods import recipe
from rlvr_jax.objectives import Spec
from rlvr_jax.training.gradient import statistics_needed
from rlvr_jax.types import Rollouts, replace

folder = next(path for path in (Path("data"), Path("notebooks/data")) if path.is_dir())
lines = (folder / "other_rollouts.jsonl").read_text().splitlines()
rows = [json.loads(line) for line in lines]
print(f"{len(rows)} rows; the first has {', '.join(rows[0])}")
print(rows[0]["prompt"], "→", rows[0]["response"], "reward", rows[0]["reward"])

# %% [markdown]
# ## From rows to arrays
#
# Tokens are taken as they are. Text that is tokenized again may be other tokens than were sampled,
# and their log-probs would be of something else. Questions may have labels of any kind; masks come
# from lengths, never from token values. Of a file with texts and no tokens, `again` below is what
# there is; its log-probs, if it has any, belong to other tokens unless all are the same.

# %%
tokenizer = policy.tokenizer(tasks.load("brackets").base_model)
width = max(len(row["token_ids"]) for row in rows)
prompts = [tokenizer.encode(row["prompt"]) for row in rows]


def padded(lists, dtype, width):
    """Lists as the rows of a table, 0 behind them."""
    table = np.zeros((len(lists), width), dtype)
    for place, values in zip(table, lists, strict=True):
        place[: len(values)] = values
    return table


lengths = np.array([len(row["token_ids"]) for row in rows])
rollouts = Rollouts.of_responses(
    tokens=padded([row["token_ids"] for row in rows], np.int32, width),
    mask=np.arange(width) < lengths[:, None],
    reward=np.array([row["reward"] for row in rows], np.float32),
    group=[row["question"] for row in rows],
    prompt_tokens=padded(prompts, np.int32, max(map(len, prompts))),
    prompt_length=np.array([len(ids) for ids in prompts], np.int32),
    behaviour_logp=padded([row["logprobs"] for row in rows], np.float32, width),
)
again = [tokenizer.encode(row["response"], add_special_tokens=False) for row in rows]
same = sum(ids == row["token_ids"][: len(ids)] for ids, row in zip(again, rows, strict=True))
print(f"{same} of {len(rows)} texts are the same tokens when they are tokenized again")

# %% [markdown]
# ## The policy's own words about them
#
# The log-probs of the engine and ours are of the same weights here; where they are not, or where
# precision differs, the ratio between them says by how much.

# %%
model, params = policy.load(tasks.load("brackets").base_model)
methods = {
    name: recipe(name, **given)
    for name, given in {
        "grpo": {"kl_coefficient": 0.0},
        "dapo": {"max_rounds": 1},
        "clip_cov": {"fraction": 0.01},
        "forking_tokens": {},
        "nsr": {},
    }.items()
}
needs = set().union(*(statistics_needed(made.objective) for made in methods.values()))
stats = policy.score(model, params, rollouts, needs | {"entropy"})
mask = np.asarray(rollouts.mask)
ratio = np.exp(np.asarray(stats.logp) - np.asarray(rollouts.behaviour_logp))[mask]
print(f"ours over theirs: {ratio.min():.3f} to {ratio.max():.3f}, mean {ratio.mean():.3f}")
print(f"entropy {np.asarray(stats.entropy)[mask].mean():.2f} nats a token")

# %% [markdown]
# ## What each loss would have pushed
#
# The derivative of the loss in the log-prob of a token, with its sign turned: above 0 the token
# would have become likelier. A question whose answers were all right or all wrong teaches most of
# them nothing.


# %%
def push_of(made):
    """How far a step on the recipe's loss would raise the log-prob of each token."""
    objective = made.objective
    questions = {row["question"] for row in rows}
    state = objective.init(Spec(len(questions), *mask.shape))

    def loss(logp):
        own = replace(stats, logp=logp)
        return objective.loss(own, rollouts, state, jax.random.key(0))[0]

    return -np.asarray(jax.grad(loss)(stats.logp))[mask] * mask.sum()


print(f"{'':<16}{'trained':>9}{'up':>7}{'down':>7}{'on the uncertain fifth':>24}")
entropy = np.asarray(stats.entropy)[mask]
uncertain = entropy >= np.quantile(entropy, 0.8)
pushes = {name: push_of(made) for name, made in methods.items()}
for name, push in pushes.items():
    size = np.abs(push)
    share = size[uncertain].sum() / max(size.sum(), 1e-9)
    print(
        f"{name:<16}{(size > 0).mean():>9.0%}{(push > 0).mean():>7.0%}{(push < 0).mean():>7.0%}"
        f"{share:>24.0%}"
    )

figure, panels = plt.subplots(1, len(pushes), figsize=(13, 3), sharey=True, layout="constrained")
for panel, (name, push) in zip(panels, pushes.items(), strict=True):
    panel.plot(entropy, push, ".", markersize=3)
    panel.set(title=name, xlabel="entropy (nats)")
_ = panels[0].set_ylabel("push")

# %% [markdown]
# The same rows train for real with `exact_gradient`, whose score function may be anybody's: see "In
# anybody's training loop" in the README.
