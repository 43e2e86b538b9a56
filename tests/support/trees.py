"""A forest of two small trees."""

from rlvr_jax.experience.draws.trees.nodes import roots, with_nodes


def two_trees():
    """Two roots; 0 has the children 2 and 3, 3 has 4 and 5, 1 has 6."""
    nodes = with_nodes(roots(2), [0, 0], [2, 3])
    nodes = with_nodes(nodes, [3, 3], [5, 4])
    return with_nodes(nodes, [1], [2])
