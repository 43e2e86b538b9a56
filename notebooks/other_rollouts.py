# %% [markdown]
# # Published losses on rollouts of another framework
#
# An objective of this library is a function of `[B, T]` arrays, so it also accepts tokens that
# another framework sampled. This page has three steps:
#
# 1. Read a JSONL file of rollouts. Each line has a question label, prompt, response, token ids,
#    log-probs and reward.
# 2. Score the tokens with a policy.
# 3. Compute the push of five published losses on each token.
#
# It takes some seconds on a CPU, and nothing is trained. The rollouts are a file of the package.

# %%
# If rlvr_jax is not installed, use the path of a clone of the repository:
# %pip install /path/to/rlvr_jax

# %%
import json
from importlib import resources

import jax
import matplotlib.pyplot as plt
import numpy as np

from rlvr_jax import policy, tasks
from rlvr_jax.analysis.colours import COLOURS
from rlvr_jax.methods import recipe
from rlvr_jax.objectives import Spec
from rlvr_jax.training.gradient import statistics_needed
from rlvr_jax.types import Rollouts, replace

examples = resources.files("rlvr_jax") / "rollout/examples"
lines = (examples / "other_rollouts.jsonl").read_text().splitlines()
rows = [json.loads(line) for line in lines]
print(f"{len(rows)} rows; the first has {', '.join(rows[0])}")
print(rows[0]["prompt"], "→", rows[0]["response"], "reward", rows[0]["reward"])

# %% [markdown]
# ## From rows to arrays
#
# - Tokens are used as the file has them. Tokenizing a response again may produce other tokens, to
#   which the log-probs do not belong. The cell counts the responses with equal tokens.
# - Responses to one question form a group. Labels of questions may have any type.
# - The mask is made from lengths, never from token values.
#
# If a file has texts but no tokens, use the list `again` as the tokens. Log-probs of such a file
# are valid only if these tokens are the sampled ones.

# %%
tokenizer = policy.tokenizer(tasks.load("brackets").base_model)
width = max(len(row["token_ids"]) for row in rows)
prompts = [tokenizer.encode(row["prompt"]) for row in rows]


def padded(lists, dtype, width):
    """The lists as rows of one array, padded with 0 on the right."""
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
# ## Log-probs under the policy
#
# The policy scores each token. `ours over theirs` is the probability under the policy divided by
# the probability in the file. The weights are equal here, so this ratio is near 1. Other weights or
# another precision move it away from 1.

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
print(f"entropy {np.asarray(stats.entropy)[mask].mean():.2f} nats per token")

# %% [markdown]
# ## The push of each loss
#
# The *push* on a token is -∂loss/∂logp times the number of tokens. A positive push raises the
# log-prob of the token.
#
# - `trained`: fraction of the tokens with a push other than 0.
# - `up`, `down`: fractions of the tokens with a positive and a negative push.
# - `on the uncertain fifth`: fraction of all absolute push that acts on the fifth of the tokens
#   with the highest entropy.
#
# If all responses to a question are correct, or all are incorrect, only `nsr` trains on them.
#
# In the plots, each dot is a token.
#
# - `grpo` averages over each response first, so tokens of short responses get a larger push. The
#   other losses average over all tokens.
# - `forking_tokens` has no push on tokens of low entropy.
# - `nsr` lowers the tokens of incorrect responses, and raises those of correct ones by a tenth of
#   that.


# %%
def push_of(made):
    """The push of a recipe's loss on each token of the mask."""
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
    fraction = size[uncertain].sum() / max(size.sum(), 1e-9)
    print(
        f"{name:<16}{(size > 0).mean():>9.0%}{(push > 0).mean():>7.0%}{(push < 0).mean():>7.0%}"
        f"{fraction:>24.0%}"
    )

figure, panels = plt.subplots(1, len(pushes), figsize=(13, 3), sharey=True, layout="constrained")
for panel, (name, push) in zip(panels, pushes.items(), strict=True):
    panel.plot(entropy, push, ".", color=COLOURS[0], markersize=3)
    panel.set(title=name, xlabel="entropy (nats)")
_ = panels[0].set_ylabel("push")

# %% [markdown]
# `exact_gradient` trains any model on such rows. The model needs a function that scores tokens: see
# the tutorial `docs/tutorials/own_loop.md`.
