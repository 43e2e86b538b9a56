"""Formulas: from TeX to trees, their values, and whether two are the same. Standard library only.

`reading`: the grammar, with `tokens`, `names` (tables), `symbols` (names and functions) and
  `commands` (what begins with a backslash); `trees` holds what they make.
`evaluation`: values at a point, with `elementary` functions.
`identity`: compares two formulas at points, in double precision.
`calculus`: derivatives, integrals, limits and endless sums, which sympy works out in a worker.
"""
