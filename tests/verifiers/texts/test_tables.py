"""Tables in LaTeX: what is a cell, and the distance of two trees."""

import itertools

import pytest

from rlvr_jax.verifiers.texts import table2latex_dual_reward
from rlvr_jax.verifiers.texts.latex_table import spans
from rlvr_jax.verifiers.texts.tree_distance import Tree, tree_distance


def table(body, begin=r"\begin{tabular}{cc}", end=r"\end{tabular}"):
    return f"{begin}{body}{end}"


@pytest.mark.parametrize(
    ("body", "wanted"),
    (
        (r"a \\[2pt] b", [[(1, 1)], [(1, 1)]]),
        (r"a \\* b \tabularnewline c", [[(1, 1)]] * 3),
        (r"a \\ & b", [[(1, 1)], [(1, 1), (1, 1)]]),
        (r"a \\ \\ b", [[(1, 1)]] * 3),
        (r"a \\ \cmidrule(lr){1-2} \addlinespace[2pt]", [[(1, 1)]]),
        (r"\multicolumn{3}{|c|}{a & b} & c", [[(3, 1), (1, 1)]]),
        (r"\multicolumn{2}{c}{\multirow{2}{*}{a}} \\ & ", [[(2, 2)], []]),
        (r"\multicolumn{2}{c}{\multirow{2}{*}{a}} \\ \multicolumn{2}{c}{} ", [[(2, 2)], []]),
        (r"\multirow[t]{2}{*}{a} & b \\ & c", [[(1, 2), (1, 1)], [(1, 1)]]),
        (r" & b \\ \multirow{-2}{*}{a} & c", [[(1, 1)], [(1, 2), (1, 1)]]),
        (r"\begin{tabular}{c} x & y \\ z \end{tabular} & b", [[(1, 1), (1, 1)]]),
        (r"50\% & b", [[(1, 1), (1, 1)]]),
        ("a \\\\% & c\n", [[(1, 1)]]),
        (r"$\{$ & b", [[(1, 1), (1, 1)]]),
        ("a & b } c", None),
        (r"\begin{x} a & b", None),
    ),
)
def test_rows_end_at_line_ends_and_cells_at_ampersands(body, wanted):
    assert spans(table(body)) == wanted


@pytest.mark.parametrize(
    ("begin", "end"),
    (
        (r"\begin{tabular*}{\textwidth}{c@{\hspace{1pt}}c}", r"\end{tabular*}"),
        (r"\begin{tabularx}{5cm}{cX}", r"\end{tabularx}"),
        (r"\begin{tabular}[t]{c c}", r"\end{tabular}"),
        ("\\begin{tabular}%\n{cc}", r"\end{tabular}"),
    ),
)
def test_the_arguments_of_a_tabular_are_no_cells(begin, end):
    expected = None if "%" in begin else [[(1, 1), (1, 1)]]
    assert spans(table("a & b", begin, end)) == expected


@pytest.mark.parametrize("text", ("{" * 100_000, "\\begin{tabular}{c}" * 20_000, "\\" * 100_000))
def test_hostile_texts_are_no_tables(text):
    assert spans(table(text, begin=r"\begin{tabular}{")) is None


def trees(size):
    """All ordered trees of so many nodes whose labels are a and b by turns of depth."""

    def forests(count, depth):
        if count == 0:
            yield ()
        for first in range(1, count + 1):
            for children in forests(first - 1, depth + 1):
                for rest in forests(count - first, depth):
                    yield (Tree("ab"[depth % 2], children), *rest)

    return [forest[0] for forest in forests(size, 0) if len(forest) == 1]


def brute_force(a, b):
    """The distance of two forests by its recursion, the last trees apart."""
    if not a or not b:
        return sum(tree.size() for tree in (*a, *b))
    (*others, x), (*rest, y) = a, b
    return min(
        brute_force((*others, *x.children), b) + 1,
        brute_force(a, (*rest, *y.children)) + 1,
        brute_force(others, rest) + brute_force(x.children, y.children) + (x.label != y.label),
    )


def test_the_distance_is_that_of_brute_force():
    small = [tree for size in (1, 2, 3, 4) for tree in trees(size)]
    for a, b in itertools.product(small, small):
        assert tree_distance(a, b) == brute_force((a,), (b,))


def test_more_nodes_than_are_compared_are_no_verdict_or_worth_nothing():
    many = table(r"a & b \\ " * 400)
    assert table2latex_dual_reward.check(table("a & b"), many).outcome is None
    finding = table2latex_dual_reward.check(many, table("a & b"))
    assert (finding.outcome, finding.info["teds"]) == (0, 0)
    assert table2latex_dual_reward.check(table("a"), None).outcome is None
