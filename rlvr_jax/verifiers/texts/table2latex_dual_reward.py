r"""LaTeX tables: compares their structure, the half of the reward that needs no picture.

    teds = 1 − tree distance / nodes of the larger tree,   structure = 1[teds > 0.9]

The tree of a table has a root, its rows, and its cells labelled (width, height); the content of a
cell does not count. Below 0.3 the paper does not render the output (`visual_skipped`). The half for
the picture (CW-SSIM of two renderings, which requires LaTeX) is not here.

The release compares HTML with PubTabNet's TEDS, whose node count leaves out the root. Here the root
counts, and LaTeX is read directly (`latex_table`).

Source: Table2LaTeX-RL, https://github.com/newLLing/Table2LaTeX-RL, `plugin.py`.
"""

from typing import Any

from rlvr_jax.verifiers.fences import behind_thinking
from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.texts.latex_table import spans
from rlvr_jax.verifiers.texts.tree_distance import Tree, tree_distance

_ACCEPTED = 0.9
_RENDERED = 0.3
extract = behind_thinking  # the table is looked for in all of it
_MOST_NODES = 600  # a distance between two such trees takes half a second


def check(output: str, reference: Any) -> Grade:
    """1 if the structure of the table differs from the reference in at most a tenth, else 0.

    Args:
      output, reference: LaTeX with a tabular. A reference without one is ungraded.
    Metrics: teds (similarity of the structures, 0 to 1), visual_skipped (1 if teds is below 0.3).
    """
    wanted = spans(reference) if isinstance(reference, str) else None
    if wanted is None or _tree(wanted).size() > _MOST_NODES:
        return Grade(None, stage="gold")
    teds = structure_similarity(spans(output), wanted)
    info = {"teds": teds, "visual_skipped": float(teds < _RENDERED)}
    return Grade(float(teds > _ACCEPTED), answer=output, stage="structure", info=info)


def structure_similarity(
    a: list[list[tuple[int, int]]] | None, b: list[list[tuple[int, int]]]
) -> float:
    """teds of two tables as rows of (width, height); 0 for no table and for a table that is too
    large.

    Args:
      a: the result of `spans`; None for no table.
      b: the reference.
    """
    if a is None:
        return 0.0
    if a == b:
        return 1.0
    trees = _tree(a), _tree(b)
    larger = max(tree.size() for tree in trees)
    return 1 - tree_distance(*trees) / larger if larger <= _MOST_NODES else 0.0


def _tree(rows: list[list[tuple[int, int]]]) -> Tree:
    return Tree("table", [Tree("row", [Tree(cell) for cell in row]) for row in rows])
