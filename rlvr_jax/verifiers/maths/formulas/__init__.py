"""Formulas: reads TeX as trees, evaluates and compares them. Standard library only.

`reading` has the grammar. It uses `tokens`, `names` (tables), `symbols` (names and functions) and
  `commands` (names that begin with a backslash). The results are `trees`.
`evaluation` computes values at a point, with the functions of `elementary`.
`identity` compares two formulas at points, in double precision.
`calculus` computes derivatives, integrals, limits and infinite sums by sympy, in a worker.
"""
