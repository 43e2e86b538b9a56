# %% [markdown]
# # A custom loss on stored rollouts
#
# An objective of this library is a function of `[B, T]` arrays. It reads statistics of tokens and
# needs no model. A new loss can therefore be tried on a batch that was sampled once. This page has
# three steps:
#
# 1. Load a stored batch.
# 2. Define a new loss in ten lines.
# 3. Compare it with three published losses, token by token.
#
# It takes some seconds on a CPU. The batch is a file of the package.

# %%
# If rlvr_jax is not installed, use the path of a clone of the repository:
# %pip install /path/to/rlvr_jax

# %%
from importlib import resources

import jax
import matplotlib.pyplot as plt
import numpy as np

from rlvr_jax import methods
from rlvr_jax.analysis.colours import COLOURS, NEUTRAL
from rlvr_jax.objectives import (
    Spec,
    Transform,
    group_normalized,
    objective,
    part,
    ppo_clip,
    token_mean,
)
from rlvr_jax.rollout import load_rollouts
from rlvr_jax.types import Recipe, replace

# %% [markdown]
# ## The batch
#
# The batch has 64 prompts of the task *brackets* with 8 responses each. The base model that ships
# with the library sampled them.
#
# - `rollouts`: the responses with their records and grades.
# - `stats`: statistics of the same tokens under the policy after two GRPO updates. The ratios are
#   therefore not all 1.
# - `texts`: prompts and responses as text.
#
# The last lines of the output are the 8 responses to one prompt.

# %%
examples = resources.files("rlvr_jax") / "rollout/examples"
rollouts, stats, texts = load_rollouts(examples / "brackets_rollouts.npz")
mask = rollouts.mask
num_tokens = int(mask.sum())
ratio = np.exp(stats.logp - rollouts.old_logp)[mask]

print(f"{mask.shape[0]} rollouts, {num_tokens} tokens, {rollouts.outcome.mean():.0%} correct")
print(
    f"ratio {ratio.min():.2f} to {ratio.max():.2f}, entropy {stats.entropy[mask].mean():.2f} nats"
)
pass_rate = rollouts.outcome.reshape(-1, 8).mean(1)
mixed = np.flatnonzero((pass_rate > 0.3) & (pass_rate < 0.7))
for row in np.flatnonzero(rollouts.group == mixed[0]):
    verdict = "correct" if rollouts.outcome[row] else "incorrect"
    print(f"{verdict:<9}   {texts['prompt'][row]} {texts['response'][row]}")

# %% [markdown]
# ## A new loss
#
# Σ p² is the probability that two tokens, sampled independently at the same position, are equal. It
# is 1 if the policy is certain. This loss lowers the weight of certain tokens more than the weight
# of uncertain ones:
#
#     weight' = weight · (1 - strength · Σ p²)
#
# The argument `reads` of `@part` lists the statistics that a part needs. The log-prob is always
# available. A run measures the listed statistics.


# %%
@part(reads={"p_squared"})
def mild_on_habits(strength: float) -> Transform:
    """Multiplies weights by 1 - strength · Σ p²."""

    def apply(signals, context, state):
        weight = signals.weight * (1 - strength * context.stats.records["p_squared"])
        return replace(signals, weight=weight), state, {}

    return apply


def my_loss(strength: float = 0.8):
    """A clipped surrogate with the weights of `mild_on_habits`."""
    return Recipe(
        objective(
            advantage=group_normalized(),
            transforms=[mild_on_habits(strength)],
            surrogate=ppo_clip(low=0.2, high=0.28),
            aggregation=token_mean(),
        )
    )


# %% [markdown]
# ## The push on each token
#
# The *push* on a token is -∂loss/∂logp times the number of tokens. A positive push raises the
# log-prob of the token. For plain GRPO the push is advantage times ratio, and 0 where the clip
# acts.
#
# Two methods have other settings than their defaults, so that the losses differ mainly in their
# choice of tokens:
#
# - `grpo` has no KL term, and its loss is the mean over all tokens.
# - `clip_cov` drops 0.75 % of the tokens. Its default would drop one token of this small batch.

# %%
recipes = {
    "grpo": methods.recipe("grpo", kl_coefficient=0.0, aggregation=token_mean()),
    "clip_cov": methods.recipe("clip_cov", fraction=0.0075),
    "forking_tokens": methods.recipe("forking_tokens"),
    "my_loss": my_loss(),
}


def weights_and_push(recipe):
    """The weight of every token and the push on it, both [B, T]."""
    state = recipe.objective.init(Spec(len(set(rollouts.group.tolist())), *mask.shape))
    arguments = (rollouts, state, jax.random.key(0))

    @jax.jit
    def look(stats):
        gradient, _ = jax.grad(recipe.objective.loss, has_aux=True)(stats, *arguments)
        return recipe.objective.signals(stats, *arguments).weight, gradient.logp

    weight, gradient = jax.device_get(look(stats))
    return weight, -num_tokens * gradient


weights, push = {}, {}
for name, recipe in recipes.items():
    weights[name], push[name] = weights_and_push(recipe)

# %% [markdown]
# The next table is about one incorrect response. Clip-Cov drops two of its tokens, `6` and `*`:
# their push is 0. The last row, `.`, is the stop token.

# %%
dropped = mask & (weights["clip_cov"] == 0) & (rollouts.length <= 12)[:, None]
row = int(dropped.sum(1).argmax())
names = "".join(f"{name:>16}" for name in recipes)
print(texts["prompt"][row])
print(f"{'token':<6}{'entropy':>8}{'logp':>8}{names}   (push)")
for t, token in enumerate([*texts["response"][row].split(), "."]):
    numbers = "".join(f"{push[name][row, t]:>z16.2f}" for name in recipes)
    print(f"{token:<6}{stats.entropy[row, t]:>8.2f}{stats.logp[row, t]:>z8.2f}{numbers}")

# %% [markdown]
# The next table is about the whole batch:
#
# - `weight 0`: number of tokens with weight 0.
# - `mean |push|`: mean absolute push per token.
# - `of it on the uncertain fifth`: fraction of all absolute push that acts on the fifth of the
#   tokens with the highest entropy.
#
# In the plots, each dot is a token. Dots to the right are tokens at which the policy is uncertain.
# Dots at a push of 0 belong to groups of equal outcomes, or the method leaves them out.

# %%
uncertain = mask & (stats.entropy >= np.quantile(stats.entropy[mask], 0.8))
print(f"{'':<16}{'weight 0':>10}{'mean |push|':>14}{'of it on the uncertain fifth':>32}")
for name in recipes:
    size = np.abs(push[name])
    without = (weights[name] == 0)[mask].sum()
    fraction = size[uncertain].sum() / size[mask].sum()
    print(f"{name:<16}{without:>10}{size[mask].mean():>14.2f}{fraction:>32.0%}")

figure, axes = plt.subplots(
    1, len(recipes), figsize=(12, 3.4), sharex=True, sharey=True, layout="constrained"
)
correct = rollouts.outcome[:, None] > 0
for panel, name in zip(axes, recipes, strict=True):
    for label, rows, colour in (
        ("incorrect", ~correct, COLOURS[1]),
        ("correct", correct, COLOURS[0]),
    ):
        shown = mask & rows
        points = (stats.entropy[shown], push[name][shown])
        panel.plot(*points, ".", color=colour, markersize=3, alpha=0.4, label=label)
    panel.set(title=name, xlabel="entropy (nats)")
    panel.axhline(0, color=NEUTRAL, linewidth=0.5)
axes[0].set_ylabel("push = -∂loss/∂logp · tokens")
_ = figure.legend(*axes[0].get_legend_handles_labels(), title="response", loc="outside right upper")

# %% [markdown]
# If all responses of a group are correct, or all are incorrect, the push on their tokens is 0 with
# each of these losses.
#
# | loss | push |
# |---|---|
# | `grpo` | follows the outcome of the response, for certain and uncertain tokens alike |
# | `clip_cov` | like GRPO without its clip; 0 on 63 tokens of low log-prob (incorrect responses) |
# | `forking_tokens` | 0 on all tokens below an entropy threshold |
# | `my_loss` | no threshold: about a fifth of GRPO's push at entropy 0, more at higher entropy |
#
# On the uncertain fifth, `my_loss` has more than half of GRPO's push.
#
# ## Train with the loss
#
# Only a run shows the effect of a loss on entropy and pass@k. Write these lines, and the cell of
# the loss after them, to a file `my_loss.py`:
#
#     from rlvr_jax.objectives import Transform, group_normalized, objective, part
#     from rlvr_jax.objectives import ppo_clip, token_mean
#     from rlvr_jax.types import Recipe, replace
#
# Then run this command in the folder of the file:
#
#     python -m rlvr_jax train --method my_loss:my_loss --hyperparameters strength=0.8 \
#         --run-dir runs/mine
#
# A batch of another task or size is stored with:
#
#     python -m rlvr_jax store_rollouts --task operators --out batch.npz
#
# The tutorial `docs/tutorials/custom_loss.md` also checks a loss against the laws of objectives.
