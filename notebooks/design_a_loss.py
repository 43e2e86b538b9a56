# %% [markdown]
# # A loss of one's own, on stored rollouts
#
# Every method of this library is a function of `[B, T]` arrays: it sees tokens, not a model. So a
# loss can be designed on a batch that was sampled once. This page loads such a batch, writes a new
# loss in ten lines, and shows what it tells each token beside three published ones. It takes some
# seconds on a CPU, after `pip install -e .`, in this folder or in the root of the repository.

# %%
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np

from rlvr_jax import methods
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
# 64 prompts of the task *brackets* with 8 rollouts each, from the base model that ships with the
# library. `rollouts` is what was recorded when they were drawn and graded; `stats` is what the
# policy says about the same tokens two GRPO updates later, so that the ratios are not all 1.

# %%
folder = next(path for path in (Path("data"), Path("notebooks/data")) if path.is_dir())
rollouts, stats, texts = load_rollouts(folder / "brackets_rollouts.npz")
mask = rollouts.mask
num_tokens = int(mask.sum())
ratio = np.exp(stats.logp - rollouts.old_logp)[mask]

print(f"{mask.shape[0]} rollouts, {num_tokens} tokens, {rollouts.outcome.mean():.0%} right")
print(
    f"ratio {ratio.min():.2f} to {ratio.max():.2f}, entropy {stats.entropy[mask].mean():.2f} nats"
)
pass_rate = rollouts.outcome.reshape(-1, 8).mean(1)
mixed = np.flatnonzero((pass_rate > 0.3) & (pass_rate < 0.7))
for row in np.flatnonzero(rollouts.group == mixed[0]):
    verdict = "right" if rollouts.outcome[row] else "wrong"
    print(f"{verdict}   {texts['prompt'][row]} {texts['response'][row]}")

# %% [markdown]
# ## A new loss
#
# Σ p² is the chance that two draws from the policy agree at a token. Where it is near 1 the policy
# has a habit, and more of the same teaches little; this loss turns such tokens down and spares the
# open choices:
#
#     weight' = weight · (1 - strength · Σ p²)
#
# A part names what it reads beyond the log-prob in `reads`; a run measures it.


# %%
@part(reads={"p_squared"})
def mild_on_habits(strength: float) -> Transform:
    """Multiplies weights by 1 - strength · Σ p²."""

    def apply(signals, context, state):
        weight = signals.weight * (1 - strength * context.stats.records["p_squared"])
        return replace(signals, weight=weight), state, {}

    return apply


def my_loss(strength: float = 0.8):
    """The clipped surrogate with `mild_on_habits`."""
    return Recipe(
        objective(
            advantage=group_normalized(),
            transforms=[mild_on_habits(strength)],
            surrogate=ppo_clip(low=0.2, high=0.28),
            aggregation=token_mean(),
        )
    )


# %% [markdown]
# ## What it tells each token
#
# The push on a token is -∂loss/∂logp, times the number of tokens: how strongly an update wants to
# raise its log-prob. For plain GRPO it is advantage times ratio, and 0 where the clip decides. GRPO
# is taken here without its KL and with the mean over all tokens, and Clip-Cov with a quota that
# fits a batch of this size, so that what differs is the choice of tokens.

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
# One rollout, token by token: a wrong answer from which Clip-Cov drops a token.

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
# The whole batch: how many tokens have weight 0, and what share of all push, by size, falls on the
# fifth of the tokens with the highest entropy.

# %%
uncertain = mask & (stats.entropy >= np.quantile(stats.entropy[mask], 0.8))
print(f"{'':<16}{'weight 0':>10}{'mean |push|':>14}{'of it on the uncertain fifth':>32}")
for name in recipes:
    size = np.abs(push[name])
    without = (weights[name] == 0)[mask].sum()
    share = size[uncertain].sum() / size[mask].sum()
    print(f"{name:<16}{without:>10}{size[mask].mean():>14.2f}{share:>32.0%}")

figure, axes = plt.subplots(
    1, len(recipes), figsize=(12, 3.4), sharex=True, sharey=True, layout="constrained"
)
correct = rollouts.outcome[:, None] > 0
for panel, name in zip(axes, recipes, strict=True):
    for label, rows, colour in (("wrong", ~correct, "tab:red"), ("right", correct, "tab:blue")):
        shown = mask & rows
        points = (stats.entropy[shown], push[name][shown])
        panel.plot(*points, ".", color=colour, markersize=3, alpha=0.4, label=label)
    panel.set(title=name, xlabel="entropy (nats)")
    panel.axhline(0, color="gray", linewidth=0.5)
axes[0].set_ylabel("push = -∂loss/∂logp · tokens")
_ = axes[0].legend(title="answer")

# %% [markdown]
# On the line at 0 lie the groups whose answers were all right or all wrong. GRPO pushes the other
# tokens by how their answer did, however sure the policy was. Clip-Cov opens the ratio's clip and
# takes out a few points: unlikely tokens of wrong answers. Forking tokens leaves nothing below its
# threshold. `my_loss` has no threshold: it presses tokens of low entropy towards 0 and keeps more
# than half of the push on the uncertain ones.
#
# ## A run with it
#
# What a loss does to entropy and pass@k only a run can say. Put the cell of the loss into a file
# `my_loss.py`, under these lines,
#
#     from rlvr_jax.objectives import Transform, group_normalized, objective, part
#     from rlvr_jax.objectives import ppo_clip, token_mean
#     from rlvr_jax.types import Recipe, replace
#
# and give the method by name, from the folder of that file:
#
#     python -m experiments.train --method my_loss:my_loss --hyperparameters strength=0.8 \
#         --run-dir runs/mine
#
# Another batch, of other sizes or of another task, is stored by `python -m
# experiments.store_rollouts --out batch.npz`.
