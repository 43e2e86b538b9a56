"""Formulas: from TeX to trees, their values, and whether two are the same. Standard library only.

`reading`: the grammar, with `tokens`, `names` (tables), `symbols` (names and functions) and
  `commands` (which begin with a backslash); `trees` are the result.
`evaluation`: values at a point, with `elementary` functions.
`identity`: compares two formulas at points, in double precision.
`calculus`: derivatives, integrals, limits and endless sums, which sympy works out in a worker.
"""
