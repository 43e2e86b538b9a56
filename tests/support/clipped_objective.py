"""The clipped objective with group-normalized advantages and further parts."""

from rlvr_jax.objectives import group_normalized, objective, ppo_clip, token_mean


def made(*transforms, regularizers=(), surrogate=None):
    return objective(
        advantage=group_normalized(),
        transforms=transforms,
        surrogate=surrogate or ppo_clip(0.2, 0.2),
        regularizers=regularizers,
        aggregation=token_mean(),
    )
